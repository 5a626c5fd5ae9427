//! What must hold of each part by itself. Files are checked part by part, so that an error can say
//! where the part stands.

use crate::link::{MAX_BYTES_PER_SECOND, MAX_LATENCY_NS};
use crate::{
    Builder, CapacityGroup, GraphError, LinkType, NewLink, Node, Vertex, VertexId, VertexKind,
};

/// The longest name of a plugin or of a kind of link, in bytes.
const MAX_KEYWORD: usize = 64;
/// The longest name of anything else, in bytes.
const MAX_NAME: usize = 255;
/// More of anything are refused; numbers stay far from 32 bits.
const MAX_ITEMS: usize = 1 << 28;

impl Builder {
    pub(super) fn check(&self) -> Result<(), GraphError> {
        let sizes = [
            ("nodes", self.nodes.len()),
            ("vertices", self.vertices.len()),
            ("links", self.links.len()),
            ("capacity groups", self.groups.len()),
        ];
        if let Some((what, _)) = sizes.into_iter().find(|(_, len)| *len > MAX_ITEMS) {
            return Err(GraphError::TooMany {
                what,
                max: MAX_ITEMS,
            });
        }
        self.nodes.iter().try_for_each(Self::check_node)?;
        self.vertices.iter().try_for_each(Self::check_vertex)?;
        self.groups.iter().try_for_each(Self::check_group)?;
        self.links.iter().try_for_each(|link| self.check_link(link))
    }

    pub(crate) fn check_node(node: &Node) -> Result<(), GraphError> {
        name("node", &node.name, MAX_NAME)
    }

    pub(crate) fn check_vertex(vertex: &Vertex) -> Result<(), GraphError> {
        name("vertex", &vertex.name, MAX_NAME)?;
        let VertexKind::Device(device) = &vertex.kind else {
            return Ok(());
        };
        plugin(&device.plugin)?;
        device
            .pci
            .as_ref()
            .map_or(Ok(()), |pci| name("PCI address", pci, MAX_KEYWORD))
    }

    pub(crate) fn check_group(group: &CapacityGroup) -> Result<(), GraphError> {
        name("capacity group", &group.name, MAX_NAME)?;
        if group.bytes_per_second == 0 || group.bytes_per_second > MAX_BYTES_PER_SECOND {
            let given = group.bytes_per_second;
            let problem = format!("a capacity of {given} B/s: give 1 to {MAX_BYTES_PER_SECOND}");
            return Err(GraphError::CapacityGroup {
                group: group.name.clone(),
                problem,
            });
        }
        Ok(())
    }

    pub(crate) fn check_link(&self, link: &NewLink) -> Result<(), GraphError> {
        name("link kind", &link.kind, MAX_KEYWORD)?;
        plugin(&link.plugin)?;
        let text = || {
            format!(
                "{} -> {} ({})",
                self.label(link.from),
                self.label(link.to),
                link.kind
            )
        };
        for end in [link.from, link.to] {
            if end.index() >= self.vertices.len() {
                return Err(GraphError::DanglingLink {
                    link: text(),
                    vertex: self.label(end),
                });
            }
        }
        if link.from == link.to {
            return Err(GraphError::SelfLink {
                link: text(),
                vertex: self.label(link.from),
            });
        }
        let bytes_per_second = link.bytes_per_second;
        if bytes_per_second == 0 || bytes_per_second > MAX_BYTES_PER_SECOND {
            return Err(GraphError::Bandwidth {
                link: text(),
                bytes_per_second,
            });
        }
        if let Some(written) = link.written_bytes_per_second
            && (!(1..bytes_per_second).contains(&written) || link.link_type != LinkType::Mapped)
        {
            return Err(GraphError::Written {
                link: text(),
                written,
                bytes_per_second,
            });
        }
        let latency_ns = link.latency_ns;
        if latency_ns > MAX_LATENCY_NS {
            return Err(GraphError::Latency {
                link: text(),
                latency_ns,
            });
        }
        if link
            .shared
            .is_some_and(|group| group.index() >= self.groups.len())
        {
            let problem = format!("link {} names it, and there is none", text());
            return Err(GraphError::CapacityGroup {
                group: "unknown".into(),
                problem,
            });
        }
        Ok(())
    }

    fn label(&self, id: VertexId) -> String {
        self.vertices
            .get(id.index())
            .map_or_else(|| format!("#{}", id.0), Vertex::label)
    }
}

/// A plugin's name, which planning graphs leave empty.
fn plugin(text: &str) -> Result<(), GraphError> {
    if text.is_empty() {
        Ok(())
    } else {
        name("plugin", text, MAX_KEYWORD)
    }
}

fn name(what: &'static str, name: &str, max: usize) -> Result<(), GraphError> {
    if name.is_empty() || name.len() > max || name.chars().any(char::is_control) {
        let name = name
            .chars()
            .take(max)
            .collect::<String>()
            .escape_debug()
            .to_string();
        return Err(GraphError::Name { what, name, max });
    }
    Ok(())
}
