//! Layers: defaults, file, environment, code; the later ones win, key by key.
//!
//! The `config` crate merges them. It keeps an *origin* text with each value, and through that the
//! place of every effective value is found again; maps merge, lists are replaced whole.

mod code;
mod env;

use std::collections::HashMap;
use std::sync::Arc;

use config::{Config, ConfigError, Map, Value, ValueKind};

pub use code::Overrides;
pub(crate) use env::layer as env_layer;
pub use env::{Environment, VARIABLES};

use crate::problem::Place;
use crate::tree::{Kind, Node};

/// What the layers come to.
pub(crate) struct Merged {
    pub config: Config,
    /// The places that the origins in `config` stand for.
    pub origins: HashMap<String, Place>,
}

/// Merges layers that passed the check of their shape, in rising order.
pub(crate) fn merge(layers: impl IntoIterator<Item = Node>) -> Result<Merged, ConfigError> {
    let mut origins = HashMap::new();
    let mut builder = Config::builder();
    for layer in layers {
        if let Kind::Map(entries) = layer.kind {
            let values = entries
                .into_iter()
                .map(|entry| (entry.key, value(entry.value, &mut origins)))
                .collect();
            builder = builder.add_source(Layer(Arc::new(values)));
        }
    }
    let config = builder.build()?;
    Ok(Merged { config, origins })
}

fn value(node: Node, origins: &mut HashMap<String, Place>) -> Value {
    let kind = match node.kind {
        Kind::Null => ValueKind::Nil,
        Kind::Bool(value) => ValueKind::Boolean(value),
        Kind::Int(value) => ValueKind::I64(value),
        Kind::Large(value) => ValueKind::U64(value),
        Kind::Float(value) => ValueKind::Float(value),
        Kind::Text(text) => ValueKind::String(text),
        Kind::List(items) => {
            ValueKind::Array(items.into_iter().map(|item| value(item, origins)).collect())
        }
        Kind::Map(entries) => ValueKind::Table(
            entries
                .into_iter()
                .map(|entry| (entry.key, value(entry.value, origins)))
                .collect(),
        ),
    };
    let origin = node.place.source.to_string();
    let value = Value::new(Some(&origin), kind);
    origins.insert(origin, node.place);
    value
}

/// One layer as `config` takes it.
#[derive(Clone)]
struct Layer(Arc<Map<String, Value>>);

impl std::fmt::Debug for Layer {
    /// The keys alone: a value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl config::Source for Layer {
    fn clone_into_box(&self) -> Box<dyn config::Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(Map::clone(&self.0))
    }
}
