//! The planning format: nodes that compute or forward, and edges in GB/s.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::place::Step;
use super::{error, parse, wrong};
use crate::{
    Builder, Device, DeviceClass, DeviceId, JsonError, LinkGraph, LinkType, NewLink, Source,
    Switch, Vertex, VertexId, VertexKind,
};

/// What edges are called, since the format does not say.
const KIND: &str = "link";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    nodes: Vec<FileNode>,
    edges: Vec<FileEdge>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    id: Value,
    compute: bool,
    #[serde(default)]
    reduces: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEdge {
    src: Value,
    dst: Value,
    #[serde(rename = "GBps")]
    gigabytes_per_second: f64,
    #[serde(default)]
    latency_us: f64,
}

pub(super) fn read(text: &str) -> Result<LinkGraph, JsonError> {
    let file: File = parse(text)?;
    let mut builder = Builder::new();
    let mut known: BTreeMap<String, VertexId> = BTreeMap::new();
    let mut ranks = 0u32..;
    for (index, node) in file.nodes.iter().enumerate() {
        let path = [Step::Key("nodes"), Step::Index(index), Step::Key("id")];
        let name = id_text(&node.id).ok_or_else(|| {
            error(
                text,
                &path,
                "an id is a number, a text, or a list of those".into(),
            )
        })?;
        let kind = if node.compute {
            if node.reduces {
                let path = [Step::Key("nodes"), Step::Index(index), Step::Key("reduces")];
                let message =
                    "only a switch (\"compute\": false) can reduce what passes".to_owned();
                return Err(error(text, &path, message));
            }
            let rank = ranks.next();
            let number = u128::from(rank.unwrap_or(u32::MAX));
            VertexKind::Device(Device {
                id: DeviceId(number.to_be_bytes()),
                plugin: String::new(),
                class: DeviceClass::Other,
                rank,
                numa: None,
                pci: None,
                memory_bytes: 0,
            })
        } else {
            VertexKind::Switch(Switch {
                reduces: node.reduces,
            })
        };
        let vertex = Vertex {
            name: name.clone(),
            node: None,
            kind,
        };
        Builder::check_vertex(&vertex).map_err(wrong(text, &path))?;
        if known.insert(name.clone(), builder.vertex(vertex)).is_some() {
            return Err(error(
                text,
                &path,
                format!("a second node `{name}`: ids must differ"),
            ));
        }
    }
    for (index, edge) in file.edges.iter().enumerate() {
        let at = |key| [Step::Key("edges"), Step::Index(index), Step::Key(key)];
        let end = |key, id: &Value| {
            let found = id_text(id).and_then(|name| known.get(&name).copied());
            found.ok_or_else(|| {
                error(
                    text,
                    &at(key),
                    format!("there is no node {id}: add it to `nodes`"),
                )
            })
        };
        let (from, to) = (end("src", &edge.src)?, end("dst", &edge.dst)?);
        let scaled = |key, value: f64, unit: f64| {
            let scaled = (value * unit).round();
            // Larger values are exact neither here nor believed later.
            if value.is_finite() && (0.0..=1e18).contains(&scaled) {
                Ok(scaled as u64)
            } else {
                Err(error(text, &at(key), format!("{value:?} is out of range")))
            }
        };
        let link = NewLink {
            from,
            to,
            plugin: String::new(),
            kind: KIND.to_owned(),
            link_type: LinkType::Mapped,
            bytes_per_second: scaled("GBps", edge.gigabytes_per_second, 1e9)?,
            written_bytes_per_second: None,
            latency_ns: scaled("latency_us", edge.latency_us, 1e3)?,
            shared: None,
            rail: 0,
            source: Source::Given,
        };
        let path = [Step::Key("edges"), Step::Index(index)];
        builder.check_link(&link).map_err(wrong(text, &path))?;
        builder.link(link);
    }
    builder.build().map_err(wrong(text, &[]))
}

/// An id as a name: `3`, `sw`, `sw.0`. None for what is no id.
fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if !items.is_empty() => {
            let parts: Option<Vec<String>> = items.iter().map(id_text).collect();
            Some(parts?.join("."))
        }
        _ => None,
    }
}
