//! Whether a layer has the shape that the schema gives: keys, types, choices, units.
//!
//! All problems of a layer are found in one walk. What is wrong is taken out, so that the rest can
//! be looked at further.

use serde_json::Value;

use super::format;
use crate::problem::{Findings, Place, ProblemKind};
use crate::schema;
use crate::suggest;
use crate::tree::{Entry, Kind, Node, Path};

/// Checks a layer against the schema and gives what is right of it. Keys without a value are left
/// out: they count as not given.
pub(crate) fn check(layer: Node, found: &mut Findings) -> Option<Node> {
    match layer.kind {
        Kind::Null => None,
        _ => value(layer, &schema::SCHEMA, &Path::default(), found),
    }
}

fn value(node: Node, schema: &'static Value, path: &Path, found: &mut Findings) -> Option<Node> {
    let alternatives = schema::alternatives(schema);
    let fitting = alternatives.iter().find(|part| {
        types_of(&node.kind)
            .iter()
            .any(|one| schema::allows(part, one))
    });
    let Some(schema) = fitting else {
        wrong_type(&node, &alternatives, path, found);
        return None;
    };
    let place = node.place;
    let kind = match node.kind {
        Kind::Map(entries) => Kind::Map(map(entries, schema, &place, path, found)?),
        Kind::List(items) => Kind::List(list(items, schema, path, found)),
        kind => scalar(kind, schema, &place, path, found)?,
    };
    Some(Node { kind, place })
}

/// The JSON types that a value is of.
fn types_of(kind: &Kind) -> &'static [&'static str] {
    match kind {
        Kind::Null => &["null"],
        Kind::Bool(_) => &["boolean"],
        Kind::Int(_) | Kind::Large(_) => &["integer", "number"],
        Kind::Float(_) => &["number"],
        Kind::Text(_) => &["string"],
        Kind::List(_) => &["array"],
        Kind::Map(_) => &["object"],
    }
}

fn wrong_type(node: &Node, alternatives: &[&'static Value], path: &Path, found: &mut Findings) {
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
        Kind::Text(_)
            if alternatives
                .iter()
                .any(|schema| schema::allows(schema, "array")) =>
        {
            (
                ProblemKind::WrongType,
                "write it as a list: [a, b]".to_owned(),
            )
        }
        _ => (
            ProblemKind::WrongType,
            format!("give {}", wanted.join(" or ")),
        ),
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
            "{name} is {}, and wants {}",
            node.kind.describe(),
            wanted.join(" or ")
        )
    };
    found.problem(kind, path, &node.place, message, help);
}

fn wanted(schema: &'static Value) -> &'static str {
    let is_ours = schema["format"]
        .as_str()
        .is_some_and(|format| format.starts_with("unisono-"));
    match schema["description"].as_str() {
        Some(description) if is_ours && schema["format"] != "unisono-id" => description,
        _ if schema::choices(schema).is_some() => "one of its names",
        _ => match schema["type"].as_str() {
            Some("object") => "keys with values",
            Some("array") => "a list",
            Some("integer") => "a whole number",
            Some("number") => "a number",
            Some("boolean") => "true or false",
            Some("string") => "text",
            _ => "text, a number, or true or false",
        },
    }
}

fn map(
    entries: Vec<Entry>,
    schema: &'static Value,
    place: &Place,
    path: &Path,
    found: &mut Findings,
) -> Option<Vec<Entry>> {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let missing: Vec<&&str> = required
        .iter()
        .filter(|key| {
            !entries
                .iter()
                .any(|entry| entry.key == **key && !matches!(entry.value.kind, Kind::Null))
        })
        .collect();
    for key in &missing {
        found.problem(
            ProblemKind::MissingKey,
            path,
            place,
            format!("`{path}` has no `{key}`"),
            format!("add `{key}`"),
        );
    }
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        let Some(schema) = schema::property(schema, &entry.key) else {
            unknown_key(&entry, schema, path, found);
            continue;
        };
        if matches!(entry.value.kind, Kind::Null) {
            continue;
        }
        if let Some(value) = value(entry.value, schema, &path.key(&entry.key), found) {
            kept.push(Entry { value, ..entry });
        }
    }
    // A map without what it needs is taken out whole; its problem was told above.
    let complete = required
        .iter()
        .all(|key| kept.iter().any(|entry| entry.key == **key));
    complete.then_some(kept)
}

fn unknown_key(entry: &Entry, schema: &'static Value, path: &Path, found: &mut Findings) {
    let place = if path.as_str().is_empty() {
        String::new()
    } else {
        format!(" in `{path}`")
    };
    found.problem(
        ProblemKind::UnknownKey,
        path.key(&entry.key),
        &entry.key_place,
        format!("unknown key `{}`{place}", entry.key.escape_debug()),
        suggest::help(&entry.key, &schema::keys(schema), "known keys"),
    );
}

fn list(items: Vec<Node>, schema: &'static Value, path: &Path, found: &mut Findings) -> Vec<Node> {
    let each = &schema["items"];
    items
        .into_iter()
        .enumerate()
        .filter_map(|(index, item)| value(item, each, &path.index(index), found))
        .collect()
}

fn scalar(
    kind: Kind,
    schema: &'static Value,
    place: &Place,
    path: &Path,
    found: &mut Findings,
) -> Option<Kind> {
    let number = match kind {
        Kind::Int(value) => Some(i128::from(value)),
        Kind::Large(value) => Some(i128::from(value)),
        _ => None,
    };
    if let Some(number) = number {
        let least = schema["minimum"]
            .as_i64()
            .map_or(i128::from(i64::MIN), i128::from);
        let most = schema["maximum"]
            .as_i64()
            .map_or(greatest(schema), i128::from);
        if number < least || number > most {
            let message = format!("`{path}` is {number}: out of range");
            found.problem(
                ProblemKind::OutOfRange,
                path,
                place,
                message,
                format!("give {least} to {most}"),
            );
            return None;
        }
    }
    let text = match &kind {
        Kind::Text(text) => text.clone(),
        Kind::Int(value) => value.to_string(),
        Kind::Large(value) => value.to_string(),
        _ => return Some(kind),
    };
    if let Some(format) = schema["format"].as_str()
        && let Err(wrong) = format::check(format, &text)
    {
        found.problem(
            wrong.kind,
            path,
            place,
            format!("`{path}`: {}", wrong.message),
            wrong.help,
        );
        return None;
    }
    if let Some(names) = schema::choices(schema)
        && !names.contains(&text.as_str())
    {
        let message = format!("`{path}` cannot be `{}`", text.escape_debug());
        let help = suggest::help(&text, &names, "choose one of");
        found.problem(ProblemKind::UnknownValue, path, place, message, help);
        return None;
    }
    let least = schema["minLength"].as_u64().unwrap_or(0);
    if (text.chars().count() as u64) < least {
        let message = format!("`{path}` is too short");
        found.problem(
            ProblemKind::OutOfRange,
            path,
            place,
            message,
            format!("give at least {least} characters"),
        );
        return None;
    }
    Some(kind)
}

/// The largest number that the type behind the schema holds.
fn greatest(schema: &Value) -> i128 {
    match schema["format"].as_str() {
        Some("uint32") => i128::from(u32::MAX),
        Some("unisono-bytes") => i128::from(u64::MAX),
        _ => i128::from(i64::MAX),
    }
}
