//! A document as a tree in which every key and value knows where it comes from.

use crate::problem::Place;
use crate::source::Source;

/// A value and its place.
#[derive(Clone)]
pub(crate) struct Node {
    pub kind: Kind,
    pub place: Place,
}

// No `Debug`: a tree may hold a secret.
#[derive(Clone)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number that no `Int` holds.
    Large(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub key_place: Place,
    pub value: Node,
}

impl Kind {
    /// What it is, for messages; never the value.
    pub fn describe(&self) -> &'static str {
        match self {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Int(_) | Kind::Large(_) => "a whole number",
            Kind::Float(_) => "a number with a fraction",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "keys with values",
        }
    }
}

impl Node {
    pub fn new(kind: Kind, source: &Source) -> Node {
        Node {
            kind,
            place: Place::of(source.clone()),
        }
    }

    /// A tree from values that are given by code, or are defaults.
    pub fn from_json(value: &serde_json::Value, source: &Source) -> Node {
        use serde_json::Value;
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(value) => Kind::Bool(*value),
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(value), _, _) => Kind::Int(value),
                (None, Some(value), _) => Kind::Large(value),
                (None, None, value) => Kind::Float(value.unwrap_or(f64::NAN)),
            },
            Value::String(text) => Kind::Text(text.clone()),
            Value::Array(items) => Kind::List(
                items
                    .iter()
                    .map(|item| Node::from_json(item, source))
                    .collect(),
            ),
            Value::Object(map) => Kind::Map(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_place: Place::of(source.clone()),
                        value: Node::from_json(value, source),
                    })
                    .collect(),
            ),
        };
        Node::new(kind, source)
    }

    /// Puts `value` where `keys` lead, making maps on the way; what is in the way is replaced.
    pub fn insert(&mut self, keys: &[String], value: Node) {
        let Some((first, rest)) = keys.split_first() else {
            *self = value;
            return;
        };
        if !matches!(self.kind, Kind::Map(_)) {
            self.kind = Kind::Map(Vec::new());
        }
        let Kind::Map(entries) = &mut self.kind else {
            return;
        };
        let place = value.place.clone();
        let index = entries
            .iter()
            .position(|entry| entry.key == *first)
            .unwrap_or_else(|| {
                entries.push(Entry {
                    key: first.clone(),
                    key_place: place.clone(),
                    value: Node {
                        kind: Kind::Null,
                        place: place.clone(),
                    },
                });
                entries.len() - 1
            });
        entries[index].key_place = place;
        entries[index].value.insert(rest, value);
    }
}

/// A key's path, as people write it: `links[2].bandwidth`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Path(String);

impl Path {
    pub fn key(&self, key: &str) -> Path {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let quoted;
        let key = if !key.is_empty() && key.chars().all(plain) {
            key
        } else {
            quoted = format!("\"{}\"", key.escape_debug());
            &quoted
        };
        if self.0.is_empty() {
            Path(key.to_owned())
        } else {
            Path(format!("{}.{key}", self.0))
        }
    }

    pub fn index(&self, index: usize) -> Path {
        Path(format!("{}[{index}]", self.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
