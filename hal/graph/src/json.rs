//! Graphs as files: the full format, in and out, and the short planning format, in.
//!
//! A text is of the full format if it says `"format": "unisono-link-graph"`. Both formats refuse
//! fields that they do not know, and every error says line, column and field.

mod full;
mod place;
mod simple;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{GraphError, JsonError, LinkGraph};
use place::Step;

/// Every file that this library writes; the number behind it counts layouts.
const FORMAT: &str = "unisono-link-graph";
const VERSION: u32 = 1;

impl LinkGraph {
    /// Reads a graph from a file's text, in either format.
    ///
    /// The planning format is `{"nodes": [{"id": 0, "compute": true, "reduces": false}], "edges":
    /// [{"src": 0, "dst": 1, "GBps": 50.0, "latency_us": 1.0}]}`: ranks are the computing nodes in
    /// the order given, everything else is a switch. An id is a number, a text or a list of those.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line, column and field.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        #[derive(Deserialize)]
        struct Probe {
            format: Option<String>,
            version: Option<u32>,
        }
        let probe: Probe = parse(text)?;
        match (probe.format.as_deref(), probe.version) {
            (None, _) => simple::read(text),
            (Some(FORMAT), Some(VERSION)) => full::read(text),
            (Some(FORMAT), version) => Err(error(
                text,
                &[Step::Key("version")],
                match version {
                    Some(version) => format!("version {version}, this library reads {VERSION}"),
                    None => format!("no version: add \"version\": {VERSION}"),
                },
            )),
            (Some(other), _) => Err(error(
                text,
                &[Step::Key("format")],
                format!("`{other}` is not `{FORMAT}`"),
            )),
        }
    }

    /// The graph in the full format, indented, for a file. [`from_json`](Self::from_json) gives the
    /// same graph back.
    pub fn to_json(&self) -> String {
        full::write(self)
    }
}

/// Parses a text whose fields all matter.
fn parse<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let located = |error: serde_json::Error, field: String| {
        let message = error.to_string();
        // serde_json repeats the place at the end of the text.
        let place = format!(" at line {} column {}", error.line(), error.column());
        JsonError {
            line: error.line(),
            column: error.column(),
            field,
            message: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
        }
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        located(
            error.into_inner(),
            if path == "." { String::new() } else { path },
        )
    })?;
    deserializer
        .end()
        .map_err(|error| located(error, String::new()))?;
    Ok(value)
}

/// An error about something that was parsed well and is wrong all the same.
fn error(text: &str, path: &[Step<'_>], message: String) -> JsonError {
    let (line, column) = place::find(text, path);
    JsonError {
        line,
        column,
        field: place::field(path),
        message,
    }
}

/// A graph error about one part of a text.
fn wrong(text: &str, path: &[Step<'_>]) -> impl FnOnce(GraphError) -> JsonError {
    move |graph_error| error(text, path, graph_error.to_string())
}
