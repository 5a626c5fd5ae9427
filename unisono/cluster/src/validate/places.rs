//! Where each effective value was given.

use std::collections::HashMap;

use config::{Value, ValueKind};

use crate::problem::Place;
use crate::source::Source;
use crate::tree::Path;

/// The places of the values that some layer gave, by path.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<String, Place>);

impl Places {
    /// Reads the places off the merged layers. `origins` leads from the texts that the layers hold
    /// as origins back to the places.
    pub fn of(merged: &HashMap<String, Value>, origins: &HashMap<String, Place>) -> Places {
        let mut places = Places::default();
        for (key, value) in merged {
            places.collect(value, &Path::default().key(key), origins);
        }
        places
    }

    fn collect(&mut self, value: &Value, path: &Path, origins: &HashMap<String, Place>) {
        if let Some(place) = value.origin().and_then(|origin| origins.get(origin)) {
            self.0.insert(path.as_str().to_owned(), place.clone());
        }
        match &value.kind {
            ValueKind::Table(table) => {
                for (key, value) in table {
                    self.collect(value, &path.key(key), origins);
                }
            }
            ValueKind::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.collect(item, &path.index(index), origins);
                }
            }
            _ => {}
        }
    }

    /// Where this value was given.
    pub fn exact(&self, path: &str) -> Option<&Place> {
        self.0.get(path)
    }

    /// Where this value was given or, if it was not, what it is part of.
    pub fn at(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(place) = self.0.get(path) {
                return place.clone();
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return Place::of(Source::Default),
            }
        }
    }
}
