//! Texts with a form of their own: quantities, ranges, names of places.

use crate::model::{InterfacePattern, LinkEnd, RankRange, UsedDevice};
use crate::problem::ProblemKind;
use crate::units::{Bytes, Rate, TimeSpan, UnitError};

/// Why a text has not the form it should have.
pub(super) struct Wrong {
    pub kind: ProblemKind,
    pub message: String,
    pub help: String,
}

/// Checks a text against a `format` of the schema. Formats that are not ours say nothing.
pub(super) fn check(format: &str, text: &str) -> Result<(), Wrong> {
    match format {
        "unisono-bytes" => unit(text.parse::<Bytes>()),
        "unisono-rate" => unit(text.parse::<Rate>()),
        "unisono-time" => unit(text.parse::<TimeSpan>()),
        "unisono-ranks" => other(text.parse::<RankRange>()),
        "unisono-interface" => other(text.parse::<InterfacePattern>()),
        "unisono-device" => other(text.parse::<UsedDevice>()),
        "unisono-link-end" => other(text.parse::<LinkEnd>()),
        "unisono-id" => id(text),
        _ => Ok(()),
    }
}

fn unit<T>(result: Result<T, UnitError>) -> Result<(), Wrong> {
    result
        .map(drop)
        .map_err(|UnitError { message, help }| Wrong {
            kind: ProblemKind::WrongUnit,
            message,
            help,
        })
}

/// Errors of the form "what is wrong; what to do".
fn other<T>(result: Result<T, impl ToString>) -> Result<(), Wrong> {
    result.map(drop).map_err(|error| {
        let text = error.to_string();
        let (message, help) = text.split_once("; ").unwrap_or((&text, ""));
        Wrong {
            kind: ProblemKind::UnknownValue,
            message: message.to_owned(),
            help: help.to_owned(),
        }
    })
}

fn id(text: &str) -> Result<(), Wrong> {
    if text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(Wrong {
        kind: ProblemKind::UnknownValue,
        message: format!("`{}` is no identity", text.escape_debug()),
        help: "give 32 hexadecimal digits, as `unisono topo` shows them".to_owned(),
    })
}
