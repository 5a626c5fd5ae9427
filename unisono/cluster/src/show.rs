//! The effective configuration as text.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::Arc;

use crate::load::Effective;
use crate::problem::Findings;
use crate::source::Source;
use crate::tree::{Kind, Node, Path};
use crate::yaml;

/// The effective configuration as YAML, in the order of the documentation; with sources, each value
/// is followed by where it comes from, as a comment. Secrets are redacted.
pub fn show(effective: &Effective, with_sources: bool) -> String {
    let text = serde_saphyr::to_string(&effective.cluster).unwrap_or_default();
    if !with_sources {
        return text;
    }
    let sources = sources_by_line(&text, effective);
    let lines: Vec<&str> = text.lines().collect();
    let width = sources
        .keys()
        .filter_map(|line| lines.get(*line))
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = String::with_capacity(text.len() * 2);
    for (index, line) in lines.iter().enumerate() {
        match sources.get(&index) {
            Some(source) => out.push_str(&format!("{line:width$}  # {source}\n")),
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

/// The source of the value that begins on each line, from 0. The text is our own: it is read back to
/// learn where its values are.
fn sources_by_line(text: &str, effective: &Effective) -> HashMap<usize, String> {
    let mut sources = HashMap::new();
    let name: Arc<FilePath> = FilePath::new("").into();
    if let Some(root) = yaml::parse_file(text, &name, &mut Findings::default()) {
        collect(&root, &Path::default(), effective, &mut sources);
    }
    sources
}

fn collect(node: &Node, path: &Path, effective: &Effective, sources: &mut HashMap<usize, String>) {
    match &node.kind {
        Kind::Map(entries) if !entries.is_empty() => {
            for entry in entries {
                collect(&entry.value, &path.key(&entry.key), effective, sources);
            }
        }
        Kind::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &path.index(index), effective, sources);
            }
        }
        _ => {
            if let Source::File { line, .. } = node.place.source {
                let source = effective.source(path.as_str()).unwrap_or(&Source::Default);
                sources.insert(line.saturating_sub(1) as usize, source.to_string());
            }
        }
    }
}
