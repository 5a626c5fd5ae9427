//! The JSON Schema of the cluster file: for editors, and for the first check of every layer.

use std::sync::LazyLock;

use serde_json::Value;

use crate::model::Cluster;

/// The JSON Schema (draft 2020-12) of the cluster file, for editors.
///
/// Units are given as `pattern` and as `format` names that begin with `unisono-`, which editors
/// ignore.
pub fn schema() -> Value {
    SCHEMA.clone()
}

pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(Cluster);
    schema.insert("title".to_owned(), "unisono cluster file".into());
    schema.to_value()
});

/// What a reference leads to. A schema that is no reference is itself.
pub(crate) fn resolve(schema: &'static Value) -> &'static Value {
    let mut schema = schema;
    // References of references: bounded, though the schema is ours.
    for _ in 0..8 {
        let target = schema["$ref"]
            .as_str()
            .and_then(|name| SCHEMA.pointer(name.strip_prefix('#')?));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// What a value may be: the alternatives of `anyOf`, without `null`, each resolved.
pub(crate) fn alternatives(schema: &'static Value) -> Vec<&'static Value> {
    let schema = resolve(schema);
    match schema["anyOf"].as_array() {
        Some(parts) => parts
            .iter()
            .flat_map(alternatives)
            .filter(|part| part["type"] != "null")
            .collect(),
        None => vec![schema],
    }
}

/// The names that a value may have, if it is one of some: `enum`, or `oneOf` with `const`.
pub(crate) fn choices(schema: &'static Value) -> Option<Vec<&'static str>> {
    let listed = |part: &'static Value| -> Vec<&'static str> {
        let one = part["const"].as_str();
        let many = part["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        one.into_iter().chain(many).collect()
    };
    if let Some(parts) = schema["oneOf"].as_array() {
        return Some(parts.iter().flat_map(listed).collect());
    }
    schema.get("enum").is_some().then(|| listed(schema))
}

/// Whether a value of this JSON type may stand here.
pub(crate) fn allows(schema: &Value, json_type: &str) -> bool {
    match &schema["type"] {
        Value::String(only) => only == json_type,
        Value::Array(types) => types.iter().any(|one| one == json_type),
        // A choice of names without a type is a choice of texts.
        _ => json_type == "string" && schema.get("oneOf").is_some(),
    }
}

/// The schema of a key's value: a property, or what other keys may hold.
pub(crate) fn property(schema: &'static Value, key: &str) -> Option<&'static Value> {
    schema["properties"].get(key).or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|other| other.is_object())
    })
}

/// The keys that a map may have.
pub(crate) fn keys(schema: &'static Value) -> Vec<&'static str> {
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keywords(schema: &Value, found: &mut BTreeSet<String>) {
        let Some(map) = schema.as_object() else {
            return;
        };
        for (key, value) in map {
            found.insert(key.clone());
            match key.as_str() {
                "properties" | "$defs" => value
                    .as_object()
                    .into_iter()
                    .flatten()
                    .for_each(|(_, v)| keywords(v, found)),
                "anyOf" | "oneOf" => value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .for_each(|v| keywords(v, found)),
                "items" | "additionalProperties" => keywords(value, found),
                _ => {}
            }
        }
    }

    /// A keyword that the check does not know would let everything pass.
    #[test]
    fn every_keyword_is_one_that_the_check_knows() {
        let known = [
            "$defs",
            "$ref",
            "$schema",
            "additionalProperties",
            "anyOf",
            "const",
            "default",
            "description",
            "enum",
            "examples",
            "format",
            "items",
            "maximum",
            "minLength",
            "minimum",
            "oneOf",
            "pattern",
            "properties",
            "required",
            "title",
            "type",
            "writeOnly",
        ];
        let mut found = BTreeSet::new();
        keywords(&SCHEMA, &mut found);
        let unknown: Vec<_> = found
            .iter()
            .filter(|key| !known.contains(&key.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// A text that is only held to a `pattern` would not be checked: there must be a format.
    #[test]
    fn every_pattern_has_a_format() {
        fn check(schema: &Value) {
            if let Some(map) = schema.as_object() {
                let format = map
                    .get("format")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                assert!(
                    !map.get("pattern").is_some_and(Value::is_string)
                        || format.starts_with("unisono-"),
                    "{schema}"
                );
                map.values().for_each(check);
            }
            schema.as_array().into_iter().flatten().for_each(check);
        }
        check(&SCHEMA);
    }

    #[test]
    fn unknown_keys_are_refused_in_every_map() {
        fn check(schema: &Value) {
            if let Some(map) = schema.as_object() {
                if map.get("properties").is_some_and(Value::is_object) && map.get("type").is_some()
                {
                    assert_eq!(
                        map.get("additionalProperties"),
                        Some(&Value::Bool(false)),
                        "{schema}"
                    );
                }
                map.values().for_each(check);
            }
            schema.as_array().into_iter().flatten().for_each(check);
        }
        check(&SCHEMA);
    }
}
