//! What is said of a value whose type does not fit.

use serde_json::Value;

use crate::problem::{Findings, ProblemKind};
use crate::schema;
use crate::tree::{Kind, Node, Path};

/// Tells what the value is and what is wanted, never the value itself.
pub(super) fn wrong_type(
    node: &Node,
    alternatives: &[&'static Value],
    path: &Path,
    found: &mut Findings,
) {
    let wanted: Vec<&str> = alternatives.iter().map(|schema| wanted(schema)).collect();
    let text_wanted = alternatives
        .iter()
        .any(|schema| schema::allows(schema, "string"));
    let quantity = alternatives.iter().any(|schema| {
        ["unisono-rate", "unisono-time"]
            .iter()
            .any(|format| schema["format"] == *format)
    });
    let number = matches!(node.kind, Kind::Int(_) | Kind::Large(_) | Kind::Float(_));
    let (kind, help) = match &node.kind {
        _ if quantity && number => (
            ProblemKind::WrongUnit,
            "write the unit after the number".to_owned(),
        ),
        Kind::Int(_) | Kind::Large(_) | Kind::Float(_) | Kind::Bool(_) if text_wanted => (
            ProblemKind::WrongType,
            "put it in quotes if it is meant as text".to_owned(),
        ),
        _ => {
            let as_list = match node.kind {
                Kind::Text(_) | Kind::Map(_) => as_list(alternatives),
                _ => None,
            };
            let help = as_list.unwrap_or_else(|| format!("give {}", wanted.join(" or ")));
            (ProblemKind::WrongType, help)
        }
    };
    let name = if path.as_str().is_empty() {
        "a cluster file".to_owned()
    } else {
        format!("`{path}`")
    };
    let message = if quantity && number {
        format!("{name} has no unit: it wants {}", wanted.join(" or "))
    } else {
        format!(
            "{name} is {}; it wants {}",
            node.kind.describe(),
            wanted.join(" or ")
        )
    };
    found.problem(kind, path, &node.place, message, help);
}

/// How the list is written that is wanted, if one is.
fn as_list(alternatives: &[&'static Value]) -> Option<String> {
    let list = (alternatives.iter()).find(|schema| schema::allows(schema, "array"))?;
    let items = schema::alternatives(&list["items"]);
    let keys = items.iter().find_map(|item| item["properties"].as_object());
    Some(match keys {
        Some(keys) => {
            let keys: Vec<&str> = keys.keys().map(String::as_str).collect();
            let keys = keys.join(", ");
            format!("write it as a list: [{{KEY: VALUE, ...}}, ...]; the keys are {keys}")
        }
        None => "write it as a list: [a, b]".to_owned(),
    })
}

fn wanted(schema: &'static Value) -> &'static str {
    let is_ours = schema["format"]
        .as_str()
        .is_some_and(|format| format.starts_with("unisono-") && format != "unisono-id");
    match schema["description"].as_str() {
        Some(description) if is_ours => return description,
        _ if schema::choices(schema).is_some() => return "one of its names",
        _ => {}
    }
    let names = [
        ("object", "keys with values"),
        ("array", "a list"),
        ("integer", "a whole number"),
        ("boolean", "true or false"),
        ("string", "text"),
    ];
    let mut fitting = names
        .iter()
        .filter(|(json_type, _)| schema::allows(schema, json_type));
    match (fitting.next(), fitting.next()) {
        (Some((_, name)), None) => name,
        _ => "text, a number, or true or false",
    }
}
