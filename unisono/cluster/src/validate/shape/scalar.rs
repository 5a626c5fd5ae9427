//! Single values: in range, of the right form, one of the choices.

use serde_json::Value;

use crate::problem::{Findings, Place, ProblemKind};
use crate::schema;
use crate::suggest;
use crate::tree::{Kind, Path};
use crate::validate::format;

/// Checks a value that is no map or list and whose type fits, and gives it if it is right.
pub(super) fn scalar(
    kind: Kind,
    schema: &'static Value,
    place: &Place,
    path: &Path,
    found: &mut Findings,
) -> Option<Kind> {
    let number = match kind {
        Kind::Int(value) => Some(i128::from(value)),
        Kind::Large(value) => Some(i128::from(value)),
        _ => None,
    };
    if let Some(number) = number {
        let least = schema["minimum"]
            .as_i64()
            .map_or(i128::from(i64::MIN), i128::from);
        let most = schema["maximum"]
            .as_i64()
            .map_or(greatest(schema), i128::from);
        if number < least || number > most {
            let message = format!("`{path}` is {number}: out of range");
            found.problem(
                ProblemKind::OutOfRange,
                path,
                place,
                message,
                format!("give {least} to {most}"),
            );
            return None;
        }
    }
    let text = match &kind {
        Kind::Text(text) => text.clone(),
        Kind::Int(value) => value.to_string(),
        Kind::Large(value) => value.to_string(),
        _ => return Some(kind),
    };
    if let Some(format) = schema["format"].as_str()
        && let Err(wrong) = format::check(format, &text)
    {
        found.problem(
            wrong.kind,
            path,
            place,
            format!("`{path}`: {}", wrong.message),
            wrong.help,
        );
        return None;
    }
    if let Some(names) = schema::choices(schema)
        && !names.contains(&text.as_str())
    {
        let message = format!("`{path}` cannot be `{}`", text.escape_debug());
        let help = suggest::help(&text, &names, "choose one of");
        found.problem(ProblemKind::UnknownValue, path, place, message, help);
        return None;
    }
    let least = schema["minLength"].as_u64().unwrap_or(0);
    if (text.chars().count() as u64) < least {
        let message = format!("`{path}` is too short");
        found.problem(
            ProblemKind::OutOfRange,
            path,
            place,
            message,
            format!("give at least {least} characters"),
        );
        return None;
    }
    Some(kind)
}

/// The largest number that the type behind the schema holds.
fn greatest(schema: &Value) -> i128 {
    match schema["format"].as_str() {
        Some("uint32") => i128::from(u32::MAX),
        Some("unisono-bytes") => i128::from(u64::MAX),
        _ => i128::from(i64::MAX),
    }
}
