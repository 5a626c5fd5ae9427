//! SVG.
use crate::LinkGraph;
/// The graph as an SVG document.
pub fn svg(_graph: &LinkGraph) -> String {
    String::new()
}
