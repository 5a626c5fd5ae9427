//! The table for terminals: machines with their devices, the ways between ranks, the links.

mod columns;
mod links;
mod matrix;

use std::fmt::Write as _;

use super::words;
use crate::{LinkGraph, NicClass, Vertex, VertexKind, units};
use columns::{Align, Columns};

/// The graph as text, meant for 100 columns.
pub fn table(graph: &LinkGraph) -> String {
    let mut out = format!(
        "Link graph {}: {}\n",
        words::short_hash(graph),
        words::summary(graph)
    );
    for node in graph.nodes() {
        let machine = words::machine(graph, node);
        let separator = if machine.is_empty() { "" } else { "  " };
        let _ = writeln!(out, "\nNode {}{separator}{machine}", node.name);
        let of_node: Vec<&Vertex> = words::of_node(graph, node.id).collect();
        devices(&mut out, &of_node);
        nics(&mut out, &of_node);
    }
    let elsewhere: Vec<&Vertex> = graph
        .vertices()
        .iter()
        .filter(|vertex| vertex.node.is_none())
        .collect();
    if elsewhere.iter().any(|vertex| vertex.device().is_some()) {
        out.push('\n');
        devices(&mut out, &elsewhere);
    }
    switches(&mut out, graph);
    matrix::write(&mut out, graph);
    links::write(&mut out, graph);
    out
}

fn devices(out: &mut String, vertices: &[&Vertex]) {
    use Align::{Left, Right};
    let mut columns = Columns::new(&[
        ("rank", Right),
        ("device", Left),
        ("plugin", Left),
        ("class", Left),
        ("numa", Right),
        ("pci", Left),
        ("memory", Right),
    ]);
    for vertex in vertices {
        let Some(device) = vertex.device() else {
            continue;
        };
        let number =
            |value: Option<u32>| value.map(|number| number.to_string()).unwrap_or_default();
        columns.row([
            number(device.rank),
            vertex.name.clone(),
            device.plugin.clone(),
            device.class.as_str().to_owned(),
            number(device.numa),
            device.pci.clone().unwrap_or_default(),
            if device.memory_bytes > 0 {
                units::size(device.memory_bytes)
            } else {
                String::new()
            },
        ]);
    }
    columns.write(out);
}

fn nics(out: &mut String, vertices: &[&Vertex]) {
    let nics = vertices.iter().filter_map(|vertex| match &vertex.kind {
        VertexKind::Nic(nic) if nic.class != NicClass::Loopback => {
            let mut text = vertex.name.clone();
            if let Some(speed) = nic.bytes_per_second {
                let _ = write!(text, " {}", units::bandwidth(speed));
            }
            let notes = [
                (nic.class == NicClass::Virtual, "virtual"),
                (!nic.up, "down"),
            ];
            let notes: Vec<&str> = notes
                .into_iter()
                .filter(|(holds, _)| *holds)
                .map(|(_, note)| note)
                .collect();
            if !notes.is_empty() {
                let _ = write!(text, " ({})", notes.join(", "));
            }
            Some(text)
        }
        _ => None,
    });
    list(out, "  nics: ", nics);
}

fn switches(out: &mut String, graph: &LinkGraph) {
    let switches = graph
        .vertices()
        .iter()
        .filter_map(|vertex| match &vertex.kind {
            VertexKind::Switch(switch) => Some(format!(
                "{}{}",
                vertex.name,
                if switch.reduces { " (reduces)" } else { "" }
            )),
            _ => None,
        });
    let mut text = String::new();
    list(&mut text, "Switches: ", switches);
    if !text.is_empty() {
        let _ = write!(out, "\n{text}");
    }
}

/// Items behind a head, broken before they leave the screen; nothing if there are none.
fn list(out: &mut String, head: &str, items: impl Iterator<Item = String>) {
    let mut line = head.to_owned();
    let mut empty = true;
    for item in items {
        let separator = if empty { "" } else { ", " };
        if !empty && line.chars().count() + item.chars().count() + 2 > columns::WIDTH {
            let _ = writeln!(out, "{line},");
            line = " ".repeat(head.len()) + &item;
        } else {
            let _ = write!(line, "{separator}{item}");
        }
        empty = false;
    }
    if !empty {
        let _ = writeln!(out, "{line}");
    }
}
