//! Links: both ends are there and differ, the figures can be, and nothing is said twice.

use std::collections::HashMap;

use super::meaning::Context;
use super::names::known_plugin;
use crate::model::{Link, LinkEnd};
use crate::problem::ProblemKind;
use crate::suggest;
use crate::units::{Rate, TimeSpan};

/// The fastest link that is believed.
const MAX_BANDWIDTH: Rate = Rate(1_000_000_000_000_000);
/// The slowest answer that is believed.
const MAX_LATENCY: TimeSpan = TimeSpan::secs(1000);

pub(super) fn check(context: &mut Context<'_>) {
    for (index, link) in context.cluster.links.iter().enumerate() {
        let path = format!("links[{index}]");
        end(context, &link.from, &format!("{path}.from"));
        end(context, &link.to, &format!("{path}.to"));
        if link.from == link.to {
            context.problem(
                ProblemKind::ImpossibleLink,
                &format!("{path}.to"),
                format!("the link joins {} to itself", link.from),
                "give two different ends, or remove it",
            );
        }
        if link.kind.trim().is_empty() {
            let message = "the link's kind is empty";
            let help = "name it as its plugin does: nvlink, xgmi, hccs, shm, tcp, roce";
            context.problem(
                ProblemKind::UnknownValue,
                &format!("{path}.kind"),
                message,
                help,
            );
        }
        figures(context, link, &path);
        action(context, link, &path);
    }
    twice(context);
    shared(context);
}

/// An end must be there, as far as the file says what is there.
fn end(context: &mut Context<'_>, end: &LinkEnd, path: &str) {
    let wrong = match end {
        LinkEnd::Rank(_) => None,
        LinkEnd::Switch(name) => switch_end(context, name),
        LinkEnd::Device { node, device } => device_end(context, node, device),
    };
    if let Some((message, help)) = wrong {
        context.problem(ProblemKind::ImpossibleLink, path, message, help);
    }
}

/// What is wrong, and what to do.
type Wrong = Option<(String, String)>;

fn switch_end(context: &Context<'_>, name: &str) -> Wrong {
    let cluster = context.cluster;
    let known = cluster.switches.iter().any(|switch| switch == name);
    if known || !context.is_whole("switches") {
        return None;
    }
    let is_node = cluster.nodes.iter().any(|node| node.name == name);
    let switches = cluster.switches.iter().map(String::as_str);
    let help = match suggest::closest(name, switches) {
        _ if is_node => format!("`{name}` is a node: name one of its devices, {name}/DEVICE"),
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("add it to `switches`, or name a device: {name}/DEVICE"),
    };
    Some((format!("there is no switch `{name}`"), help))
}

fn device_end(context: &Context<'_>, name: &str, device: &str) -> Wrong {
    let nodes = &context.cluster.nodes;
    let Some((index, node)) = nodes.iter().enumerate().find(|(_, node)| node.name == name) else {
        if !context.is_whole("nodes") {
            return None;
        }
        let names = nodes.iter().map(|node| node.name.as_str());
        let help = match suggest::closest(name, names) {
            Some(candidate) => format!("did you mean `{candidate}/{device}`?"),
            None => format!("add a node of the name `{name}` to `nodes`"),
        };
        return Some((format!("there is no node `{name}`"), help));
    };
    let names: Vec<&str> = node
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    // A node that lists no devices leaves it to the plugins.
    let unlisted = names.is_empty() || !context.is_whole(&format!("nodes[{index}].devices"));
    if unlisted || names.contains(&device) {
        return None;
    }
    let help = match suggest::closest(device, names.iter().copied()) {
        Some(candidate) => format!("did you mean `{name}/{candidate}`?"),
        None => format!("`{name}` has: {}", names.join(", ")),
    };
    Some((format!("the node `{name}` has no device `{device}`"), help))
}

fn figures(context: &mut Context<'_>, link: &Link, path: &str) {
    if let Some(bandwidth) = link.bandwidth
        && !(Rate(1)..=MAX_BANDWIDTH).contains(&bandwidth)
    {
        let message = format!("no link carries {bandwidth}");
        let help =
            format!("give up to {MAX_BANDWIDTH}, or say `remove: true` if there is no such link");
        context.problem(
            ProblemKind::ImpossibleLink,
            &format!("{path}.bandwidth"),
            message,
            help,
        );
    }
    if let Some(latency) = link.latency
        && latency > MAX_LATENCY
    {
        let message = format!("no link takes {latency}");
        let help = format!("give at most {MAX_LATENCY}");
        context.problem(
            ProblemKind::ImpossibleLink,
            &format!("{path}.latency"),
            message,
            help,
        );
    }
}

/// A link is added, corrected or removed: not two of these, and not none.
fn action(context: &mut Context<'_>, link: &Link, path: &str) {
    if let Some(plugin) = &link.plugin {
        known_plugin(context, plugin, &format!("{path}.plugin"));
    }
    if !context.is_whole(path) {
        return;
    }
    let figures = [
        ("plugin", link.plugin.is_some()),
        ("transport", link.transport.is_some()),
        ("bandwidth", link.bandwidth.is_some()),
        ("latency", link.latency.is_some()),
        ("shared", link.shared.is_some()),
    ];
    let given = |key: &str| figures.iter().any(|(name, given)| *name == key && *given);
    if link.remove {
        if let Some((key, _)) = figures.iter().find(|(_, given)| *given) {
            let message = format!("the link is removed and has a `{key}`");
            let help = "keep only `from`, `to`, `kind` and `remove`, or leave `remove` out";
            context.problem(
                ProblemKind::Contradiction,
                &format!("{path}.{key}"),
                message,
                help,
            );
        }
    } else if given("plugin") {
        for key in ["transport", "bandwidth"] {
            if !given(key) {
                let message = format!("the link is added by `plugin` and has no `{key}`");
                let help = format!(
                    "add `{key}`, or leave `plugin` out to correct a link that is reported"
                );
                context.problem(ProblemKind::MissingKey, path, message, help);
            }
        }
    } else if given("transport") {
        let message = "a `transport` is for links that are added, and there is no `plugin`";
        let help = "add `plugin`, or leave `transport` out";
        context.problem(
            ProblemKind::MissingKey,
            &format!("{path}.transport"),
            message,
            help,
        );
    } else if !["bandwidth", "latency", "shared"].into_iter().any(given) {
        let message = "the link says nothing";
        let help =
            "give what is to be corrected (`bandwidth`, `latency`), or `plugin`, or `remove: true`";
        context.problem(ProblemKind::MissingKey, path, message, help);
    }
}

/// The same direction of the same link, said twice.
fn twice(context: &mut Context<'_>) {
    let links = &context.cluster.links;
    let mut first = HashMap::new();
    for (index, link) in links.iter().enumerate() {
        let path = format!("links[{index}]");
        let mut ways = vec![(&link.from, &link.to)];
        if link.both_ways && link.from != link.to {
            ways.push((&link.to, &link.from));
        }
        let before = ways
            .iter()
            .find_map(|(from, to)| first.get(&(*from, *to, &link.kind)));
        if let Some(before) = before {
            let place = context.place(&format!("links[{before}]"));
            let message = format!(
                "{} from {} to {} is given twice, first at {place}",
                link.kind, link.from, link.to
            );
            let help =
                "keep one of them, or say `both_ways: false` on each if each is one direction";
            context.problem(ProblemKind::Duplicate, &path, message, help);
        }
        for (from, to) in ways {
            first.entry((from, to, &link.kind)).or_insert(index);
        }
    }
}

/// All links of one shared capacity state the same bandwidth.
fn shared(context: &mut Context<'_>) {
    let mut first: HashMap<&str, (usize, Rate)> = HashMap::new();
    for (index, link) in context.cluster.links.iter().enumerate() {
        let Some(name) = link.shared.as_deref() else {
            continue;
        };
        if link.remove {
            continue;
        }
        let path = format!("links[{index}].shared");
        let Some(bandwidth) = link.bandwidth else {
            let message = format!("the link shares the capacity `{name}` and has no `bandwidth`");
            context.problem(
                ProblemKind::MissingKey,
                &path,
                message,
                "add the bandwidth that all of them share",
            );
            continue;
        };
        let (before, expected) = *first.entry(name).or_insert((index, bandwidth));
        if bandwidth != expected {
            let place = context.place(&format!("links[{before}].bandwidth"));
            let message =
                format!("the capacity `{name}` is {bandwidth} here and {expected} at {place}");
            let help = "give all links that share a capacity the same bandwidth";
            context.problem(
                ProblemKind::Contradiction,
                &format!("links[{index}].bandwidth"),
                message,
                help,
            );
        }
    }
}
