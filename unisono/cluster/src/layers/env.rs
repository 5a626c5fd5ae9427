//! Values from the environment.

mod unknown;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use serde_json::Value;

use crate::problem::{Findings, Place, ProblemKind};
use crate::schema;
use crate::source::Source;
use crate::tree::{Kind, Node, Path};
use crate::yaml;
use unknown::unknown;

const PREFIX: &str = "UNISONO_";

/// Short names of variables, and the keys that they set. Besides these, every key has a name made of
/// its path: `UNISONO_TIMEOUTS__OP` is `timeouts.op`.
pub const VARIABLES: &[(&str, &str)] = &[
    ("UNISONO_SECRET_FILE", "security.secret_file"),
    ("UNISONO_PLUGIN_PATH", "plugin_path"),
    ("UNISONO_INTERFACES", "interfaces.include"),
    ("UNISONO_TIMEOUT", "timeouts.op"),
    ("UNISONO_LOG", "log.level"),
];

/// The variables that a load sees: those of the process, or others for tests and tools.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The process's variables as they are now: those that begin with `UNISONO_`, and those that
    /// say where configuration lies.
    pub fn process() -> Environment {
        let ours = |name: &OsStr| {
            name == "HOME"
                || name == "XDG_CONFIG_HOME"
                || name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
        };
        std::env::vars_os().filter(|(name, _)| ours(name)).collect()
    }

    /// No variables.
    pub fn empty() -> Environment {
        Environment::default()
    }

    /// The value of a variable, if it is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Environment {
        Environment(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl fmt::Debug for Environment {
    /// The names alone: a value may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The layer of the environment. Variables that name no key are findings if they have a path
/// (`__`), or look like a slip; others belong to other parts of the library.
pub(crate) fn layer(environment: &Environment, found: &mut Findings) -> Node {
    let mut root = Node::new(Kind::Map(Vec::new()), &Source::Default);
    let mut set_by: BTreeMap<String, (String, OsString)> = BTreeMap::new();
    for (name, value) in &environment.0 {
        let Some(variable) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        let place = Place::of(Source::Env {
            variable: variable.to_owned(),
        });
        let Some(target) = target(variable, &place, found) else {
            continue;
        };
        if let Some((other, _)) = set_by
            .get(&target.path)
            .filter(|(_, before)| before != value)
        {
            let message = format!("`{}` is set to another value by {other}", target.path);
            found.problem(
                ProblemKind::Contradiction,
                &target.path,
                &place,
                message,
                "unset one of the two",
            );
            continue;
        }
        set_by.insert(target.path.clone(), (variable.to_owned(), value.clone()));
        let Some(text) = value.to_str() else {
            let message = format!("{variable} is not UTF-8");
            found.problem(
                ProblemKind::WrongType,
                &target.path,
                &place,
                message,
                "give it as UTF-8",
            );
            continue;
        };
        if let Some(node) = typed(text, &target, &place, found) {
            root.insert(&target.keys, node);
        }
    }
    root
}

/// A key that a variable sets.
struct Target {
    keys: Vec<String>,
    path: String,
    schema: &'static Value,
}

fn target(variable: &str, place: &Place, found: &mut Findings) -> Option<Target> {
    let short = VARIABLES.iter().find(|(name, _)| *name == variable);
    let rest = &variable[PREFIX.len()..];
    let keys: Vec<String> = match short {
        Some((_, path)) => path.split('.').map(str::to_owned).collect(),
        None => rest.split("__").map(str::to_ascii_lowercase).collect(),
    };
    let mut schema: &'static Value = &schema::SCHEMA;
    let mut path = Path::default();
    for (depth, key) in keys.iter().enumerate() {
        let here = schema::alternatives(schema);
        let Some(next) = here.iter().find_map(|part| schema::property(part, key)) else {
            let known: Vec<&str> = here.iter().flat_map(|part| schema::keys(part)).collect();
            unknown(variable, &keys, depth, &known, place, found);
            return None;
        };
        schema = next;
        path = path.key(key);
    }
    Some(Target {
        keys,
        path: path.to_string(),
        schema,
    })
}

/// A text as the type that its key wants. What it cannot be is left as text: the check of the shape
/// says so.
fn typed(text: &str, target: &Target, place: &Place, found: &mut Findings) -> Option<Node> {
    let alternatives = schema::alternatives(target.schema);
    let wants = |json_type: &str| {
        alternatives
            .iter()
            .any(|part| schema::allows(part, json_type))
    };
    let as_text = || Node {
        kind: Kind::Text(text.to_owned()),
        place: place.clone(),
    };
    if wants("string") {
        return Some(as_text());
    }
    let texts = alternatives.iter().any(|part| {
        part.get("items").is_some_and(|items| {
            schema::alternatives(items)
                .iter()
                .any(|item| schema::allows(item, "string"))
        })
    });
    if wants("array") && texts && !text.trim_start().starts_with('[') {
        let separator = if target.path == "plugin_path" {
            ':'
        } else {
            ','
        };
        let items = text
            .split(separator)
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| Node {
                kind: Kind::Text(item.to_owned()),
                place: place.clone(),
            })
            .collect();
        return Some(Node {
            kind: Kind::List(items),
            place: place.clone(),
        });
    }
    if wants("array") || wants("object") || wants("integer") || wants("boolean") || wants("number")
    {
        let path = target
            .keys
            .iter()
            .fold(Path::default(), |path, key| path.key(key));
        return yaml::parse_value(text, &place.source, &path, found);
    }
    Some(as_text())
}
