//! Names: of plugins, nodes, devices, switches. Each names one thing, and what is named is there.

use std::collections::HashMap;

use super::meaning::Context;
use crate::model::SecurityMode;
use crate::problem::ProblemKind;
use crate::suggest;

/// The longest name that is taken, in bytes.
const MAX_NAME: usize = 255;

pub(super) fn check(context: &mut Context<'_>) {
    let cluster = context.cluster;
    let plugins = cluster.plugins.iter().map(|plugin| plugin.name.as_str());
    distinct(context, "plugin", plugins, |index| {
        format!("plugins[{index}].name")
    });
    let nodes = cluster.nodes.iter().map(|node| node.name.as_str());
    distinct(context, "node", nodes, |index| {
        format!("nodes[{index}].name")
    });
    let switches = cluster.switches.iter().map(String::as_str);
    distinct(context, "switch", switches, |index| {
        format!("switches[{index}]")
    });
    for (at, node) in cluster.nodes.iter().enumerate() {
        let devices = node.devices.iter().map(|device| device.name.as_str());
        distinct(context, "device", devices, |index| {
            device_path(context.places, at, index)
        });
    }
    separators(context);
    identities(context);
    security(context);
}

/// A device is a name alone, or has a name.
fn device_path(places: &super::Places, node: usize, device: usize) -> String {
    let named = format!("nodes[{node}].devices[{device}].name");
    if places.exact(&named).is_some() {
        named
    } else {
        format!("nodes[{node}].devices[{device}]")
    }
}

fn distinct<'n>(
    context: &mut Context<'_>,
    what: &str,
    names: impl Iterator<Item = &'n str>,
    path: impl Fn(usize) -> String,
) {
    let mut first = HashMap::new();
    for (index, name) in names.enumerate() {
        let path = path(index);
        if name.trim() != name
            || name.is_empty()
            || name.len() > MAX_NAME
            || name.contains(char::is_control)
        {
            let message = format!("`{}` is no name of a {what}", name.escape_debug());
            let help =
                format!("give 1 to {MAX_NAME} bytes without control characters or spaces around");
            context.problem(ProblemKind::UnknownValue, &path, message, help);
        } else if let Some(before) = first.get(name) {
            let message = format!("two are named {what} `{name}`, the first at {before}");
            context.problem(
                ProblemKind::Duplicate,
                &path,
                message,
                "give each its own name",
            );
        } else {
            first.insert(name, context.place(&path));
        }
    }
}

/// Names that an end of a link could not be written with.
fn separators(context: &mut Context<'_>) {
    let cluster = context.cluster;
    for (index, node) in cluster.nodes.iter().enumerate() {
        if node.name.contains('/') {
            let message = format!(
                "the node's name `{}` has a `/`, which parts NODE/DEVICE",
                node.name
            );
            context.problem(
                ProblemKind::UnknownValue,
                &format!("nodes[{index}].name"),
                message,
                "leave it out",
            );
        }
    }
    for (index, switch) in cluster.switches.iter().enumerate() {
        if switch.contains('/') || switch.contains(char::is_whitespace) {
            let message = format!("the switch's name `{switch}` has a `/` or a space");
            context.problem(
                ProblemKind::UnknownValue,
                &format!("switches[{index}]"),
                message,
                "leave them out",
            );
        }
    }
}

fn identities(context: &mut Context<'_>) {
    let mut first = HashMap::new();
    for (index, node) in context.cluster.nodes.iter().enumerate() {
        let Some(id) = &node.id else { continue };
        let path = format!("nodes[{index}].id");
        if let Some(before) = first.insert(id.to_ascii_lowercase(), context.place(&path)) {
            let message = format!("two nodes have the identity {id}, the first at {before}");
            context.problem(
                ProblemKind::Duplicate,
                &path,
                message,
                "leave it out, or give each node its own",
            );
        }
    }
}

/// A plugin that is named must be among `plugins`, if any are listed there.
pub(super) fn known_plugin(context: &mut Context<'_>, name: &str, path: &str) {
    let listed: Vec<&str> = context
        .cluster
        .plugins
        .iter()
        .map(|plugin| plugin.name.as_str())
        .collect();
    if !listed.is_empty() && !listed.contains(&name) && context.is_whole("plugins") {
        let help = match suggest::closest(name, listed.iter().copied()) {
            Some(candidate) => format!("did you mean `{candidate}`?"),
            None => format!("add it to `plugins`, which has: {}", listed.join(", ")),
        };
        let message = format!("the plugin `{}` is not in `plugins`", name.escape_debug());
        context.problem(ProblemKind::UnknownValue, path, message, help);
    }
}

fn security(context: &mut Context<'_>) {
    let security = &context.cluster.security;
    let given = match (&security.secret, &security.secret_file) {
        (Some(_), Some(_)) => {
            let message = format!(
                "both `secret` and `secret_file` are given, the latter at {}",
                context.place("security.secret_file")
            );
            context.problem(
                ProblemKind::Contradiction,
                "security.secret",
                message,
                "keep `secret_file`",
            );
            return;
        }
        (Some(_), None) => "security.secret",
        (None, Some(_)) => "security.secret_file",
        (None, None) => return,
    };
    if security.mode == SecurityMode::None {
        let message = "the secret is not used: `security.mode` is `none`";
        context.warning(given, message, "remove one of the two");
    }
}
