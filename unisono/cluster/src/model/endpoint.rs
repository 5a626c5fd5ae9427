//! Where links begin and end.

use std::fmt;
use std::str::FromStr;

/// One end of a link: `NODE/DEVICE`, `rank N`, or the name of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkEnd {
    /// The device of a rank.
    Rank(u32),
    /// A device or network card of a node.
    Device {
        /// The node's name.
        node: String,
        /// The device's name on that node.
        device: String,
    },
    /// A switch between nodes.
    Switch(String),
}

/// A text that is no end of a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no end of a link; write NODE/DEVICE, `rank N` or the name of a switch")]
pub struct LinkEndError(String);

impl FromStr for LinkEnd {
    type Err = LinkEndError;

    fn from_str(text: &str) -> Result<LinkEnd, LinkEndError> {
        let error = || LinkEndError(text.escape_debug().to_string());
        if text.is_empty() || text.contains(char::is_control) {
            return Err(error());
        }
        if let Some(rank) = text.strip_prefix("rank ") {
            return rank.parse().map(LinkEnd::Rank).map_err(|_| error());
        }
        match text.split_once('/') {
            Some((node, device)) if node.is_empty() || device.is_empty() => Err(error()),
            Some((node, device)) => Ok(LinkEnd::Device {
                node: node.to_owned(),
                device: device.to_owned(),
            }),
            None if text.contains(char::is_whitespace) => Err(error()),
            None => Ok(LinkEnd::Switch(text.to_owned())),
        }
    }
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkEnd::Rank(rank) => write!(f, "rank {rank}"),
            LinkEnd::Device { node, device } => write!(f, "{node}/{device}"),
            LinkEnd::Switch(name) => f.write_str(name),
        }
    }
}

super::interfaces::text_form!(
    LinkEnd,
    "unisono-link-end",
    "an end of a link: NODE/DEVICE, `rank N`, or the name of a switch",
    r"^(rank [0-9]+|[^/\s]+|[^/]+/.+)$",
    ["box0/gpu3", "rank 2", "leaf0"]
);
