//! Whether a layer has the shape that the schema gives: keys, types, choices, units.
//!
//! All problems of a layer are found in one walk. What is wrong is taken out, so that the rest can
//! be looked at further.

mod scalar;
mod wrong_type;

use serde_json::Value;

use scalar::scalar;
use wrong_type::wrong_type;

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
        Kind::List(items) => Kind::List(list(items, schema, &place, path, found)),
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
            maim(place, path, found);
            continue;
        };
        if matches!(entry.value.kind, Kind::Null) {
            continue;
        }
        match value(entry.value, schema, &path.key(&entry.key), found) {
            Some(value) => kept.push(Entry { value, ..entry }),
            None => maim(place, path, found),
        }
    }
    // A map without what it needs is taken out whole; its problem was told above.
    let complete = required
        .iter()
        .all(|key| kept.iter().any(|entry| entry.key == **key));
    complete.then_some(kept)
}

/// Notes that something is missing here now.
fn maim(place: &Place, path: &Path, found: &mut Findings) {
    found.maimed.insert(place.source.clone());
    found.root_maimed |= path.as_str().is_empty();
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

fn list(
    items: Vec<Node>,
    schema: &'static Value,
    place: &Place,
    path: &Path,
    found: &mut Findings,
) -> Vec<Node> {
    let (each, count) = (&schema["items"], items.len());
    let kept: Vec<Node> = items
        .into_iter()
        .enumerate()
        .filter_map(|(index, item)| value(item, each, &path.index(index), found))
        .collect();
    if kept.len() < count {
        maim(place, path, found);
    }
    kept
}
