//! YAML text to a located tree.

use std::path::Path as FilePath;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use crate::problem::{Findings, Place, ProblemKind, SourceText};
use crate::source::Source;
use crate::tree::{Entry, Kind, Node, Path};

/// No cluster file nests deeper; it bounds the recursion of everything that walks a tree.
const MAX_DEPTH: usize = 32;
/// Aliases may multiply a file's content up to this many nodes.
const MAX_NODES: usize = 500_000;

/// A value as the parser gives it.
enum Raw {
    Null,
    Bool(bool),
    Int(i64),
    Large(u64),
    Float(f64),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(i64::try_from(value).map_or(Raw::Large(value), Raw::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key()? {
            entries.push((key, access.next_value()?));
        }
        Ok(Raw::Map(entries))
    }
}

/// Where the nodes of a text come from.
enum Origin<'a> {
    File(&'a Arc<FilePath>),
    /// A value of a variable or the like: all of it is one place.
    Inside(&'a Source),
}

impl Origin<'_> {
    fn place(&self, location: Location) -> Place {
        match self {
            Origin::File(path) => Place {
                source: Source::File {
                    path: Arc::clone(path),
                    line: u32::try_from(location.line()).unwrap_or(u32::MAX).max(1),
                    column: u32::try_from(location.column()).unwrap_or(u32::MAX).max(1),
                },
                length: u32::try_from(location.span().len()).unwrap_or(1).max(1),
            },
            Origin::Inside(source) => Place::of((*source).clone()),
        }
    }
}

/// Reads a file's text. What is no YAML is a finding and gives nothing; a key that is given twice is
/// a finding and counts as first given.
pub(crate) fn parse_file(text: &str, path: &Arc<FilePath>, found: &mut Findings) -> Option<Node> {
    parse(text, &Origin::File(path), &Path::default(), found)
}

/// Reads a value that is written as YAML in a variable.
pub(crate) fn parse_value(
    text: &str,
    source: &Source,
    path: &Path,
    found: &mut Findings,
) -> Option<Node> {
    parse(text, &Origin::Inside(source), path, found)
}

fn parse(text: &str, origin: &Origin<'_>, path: &Path, found: &mut Findings) -> Option<Node> {
    let mut options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
    };
    let mut budget = options.budget.take().unwrap_or_default();
    budget.max_depth = MAX_DEPTH;
    budget.max_nodes = MAX_NODES;
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = MAX_NODES;
    match serde_saphyr::from_str_with_options::<Option<Spanned<Raw>>>(text, options) {
        Ok(root) => root.map(|root| convert(root, origin, path, found)),
        Err(error) => {
            syntax_problem(text, &error, origin, path, found);
            None
        }
    }
}

fn syntax_problem(
    text: &str,
    error: &serde_saphyr::Error,
    origin: &Origin<'_>,
    path: &Path,
    found: &mut Findings,
) {
    let error = error.without_snippet();
    let (line, place) = match error.location() {
        Some(location) => (
            u32::try_from(location.line()).unwrap_or(0),
            origin.place(location),
        ),
        None => (0, origin.place(Location::UNKNOWN)),
    };
    // The parser may quote what it stumbled over.
    let secret = SourceText::new(text).is_hidden(line) || path.as_str().starts_with("security");
    let reason = if secret {
        "this is not valid YAML".to_owned()
    } else {
        first_line(&error.to_string())
    };
    found.problem(
        ProblemKind::Syntax,
        path,
        &Place { length: 1, ..place },
        format!("not a YAML document: {reason}"),
        "check the indentation (spaces, no tabs), the quotes and the brackets here and on the line above",
    );
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}

fn convert(node: Spanned<Raw>, origin: &Origin<'_>, path: &Path, found: &mut Findings) -> Node {
    let place = origin.place(node.referenced);
    let kind = match node.value {
        Raw::Null => Kind::Null,
        Raw::Bool(value) => Kind::Bool(value),
        Raw::Int(value) => Kind::Int(value),
        Raw::Large(value) => Kind::Large(value),
        Raw::Float(value) => Kind::Float(value),
        Raw::Text(value) => Kind::Text(value),
        Raw::List(items) => Kind::List(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| convert(item, origin, &path.index(index), found))
                .collect(),
        ),
        Raw::Map(entries) => Kind::Map(convert_entries(entries, origin, path, found)),
    };
    Node { kind, place }
}

fn convert_entries(
    raw: Vec<(Spanned<String>, Spanned<Raw>)>,
    origin: &Origin<'_>,
    path: &Path,
    found: &mut Findings,
) -> Vec<Entry> {
    let mut first = std::collections::HashMap::new();
    let mut entries = Vec::with_capacity(raw.len());
    for (key, value) in raw {
        let place = origin.place(key.referenced);
        let path = path.key(&key.value);
        if let Some(before) = first.insert(key.value.clone(), place.source.clone()) {
            found.problem(
                ProblemKind::Duplicate,
                &path,
                &place,
                format!("the key `{}` is given twice, first at {before}", key.value),
                "keep one of them",
            );
            first.insert(key.value, before);
            continue;
        }
        let value = convert(value, origin, &path, found);
        entries.push(Entry {
            key: key.value,
            key_place: place,
            value,
        });
    }
    entries
}
