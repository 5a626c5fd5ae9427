//! The table of parameters.

use unisono_hal::{ParamKind, ParamSpec};

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure};

const G: &str = "params";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "described",
        "Each parameter has a good name and a sentence of help.",
        described,
    ),
    Check::one(
        G,
        "defaults",
        "Each default is a value that the host would accept.",
        defaults,
    ),
    Check::one(
        G,
        "extremes",
        "Any value in bounds makes an instance, or an error with words.",
        extremes,
    ),
];

fn described(case: &Case) -> Checked {
    let plugin = case.plugin()?;
    for spec in plugin.params() {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        ensure!(
            !spec.name.is_empty() && spec.name.chars().all(good),
            "`{}` is no lower_snake_case",
            spec.name
        );
        ensure!(
            spec.help.ends_with('.'),
            "the help of `{}` is no sentence",
            spec.name
        );
        ensure!(
            spec.min <= spec.max,
            "`{}` has no value between its bounds",
            spec.name
        );
    }
    Ok(())
}

fn defaults(case: &Case) -> Checked {
    let plugin = case.plugin()?;
    plugin.parse_params(&[])?;
    plugin.instantiate(case.params())?;
    Ok(())
}

fn extremes(case: &Case) -> Checked {
    let plugin = case.plugin()?;
    for spec in plugin.params() {
        for text in values(spec) {
            let given = vec![(spec.name.clone(), text.clone())];
            let Err(error) = plugin.instantiate(&given) else {
                continue;
            };
            if error.message.trim().is_empty() {
                return Err(Stop::failed(format!(
                    "{} = {text} is refused ({}) without a message",
                    spec.name, error.status
                )));
            }
        }
    }
    Ok(())
}

/// Values at the edges of what a parameter may be.
fn values(spec: &ParamSpec) -> Vec<String> {
    match spec.kind {
        ParamKind::Bool => vec!["true".to_owned(), "false".to_owned()],
        ParamKind::String => vec![
            String::new(),
            "x".repeat(300),
            "no such thing, ü".to_owned(),
        ],
        ParamKind::Int => vec![spec.min.to_string(), spec.max.to_string()],
        ParamKind::Bytes => vec![spec.min.to_string(), spec.max.to_string()],
        ParamKind::Duration => vec![format!("{} ns", spec.min), format!("{} ns", spec.max)],
    }
}
