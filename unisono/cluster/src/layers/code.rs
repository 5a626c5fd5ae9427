//! Values that a program gives.

use std::fmt;

use crate::source::Source;
use crate::tree::{Kind, Node};

/// Values that a program gives; they win over all others.
///
/// ```
/// let code = unisono_cluster::Overrides::new()
///     .set("timeouts.op", "10s")
///     .set("memory.slots", 4);
/// ```
#[derive(Clone, Default)]
pub struct Overrides(Vec<(String, serde_json::Value)>);

impl Overrides {
    /// No values.
    pub fn new() -> Overrides {
        Overrides::default()
    }

    /// Gives the key at this path, such as `timeouts.op`, a value. Lists are given whole. Whether
    /// there is such a key, and whether it takes the value, is checked at load.
    #[must_use]
    pub fn set(
        mut self,
        path: impl Into<String>,
        value: impl Into<serde_json::Value>,
    ) -> Overrides {
        self.0.push((path.into(), value.into()));
        self
    }

    pub(crate) fn layer(&self) -> Node {
        let mut root = Node::new(Kind::Map(Vec::new()), &Source::Code);
        for (path, value) in &self.0 {
            let keys: Vec<String> = path.split('.').map(str::to_owned).collect();
            root.insert(&keys, Node::from_json(value, &Source::Code));
        }
        root
    }
}

impl fmt::Debug for Overrides {
    /// The paths alone: a value may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.0.iter().map(|(path, _)| path))
            .finish()
    }
}
