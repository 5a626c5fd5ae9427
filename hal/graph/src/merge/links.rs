//! Reported links, spread over the devices that they join.

use std::collections::BTreeMap;

use super::Place;
use super::found::Links;
use crate::{
    Builder, DeviceId, GraphError, LinkReport, NodeReport, PluginReport, Scope, Switch, Vertex,
    VertexKind,
};

pub(super) fn add(
    builder: &mut Builder,
    reports: &[&NodeReport],
    places: &[Place<'_>],
) -> Result<(), GraphError> {
    let mut links = Links::default();
    for report in reports {
        for plugin in &report.plugins {
            for (index, link) in numbered(plugin).filter(|(_, link)| link.scope == Scope::Pair) {
                pair(&mut links, report, plugin, link, index, places)?;
            }
        }
    }
    // Between all devices only when nobody uses one: a look at a machine, not a job.
    let in_use = places.iter().any(|place| place.ranked);
    let ends: Vec<&Place<'_>> = places
        .iter()
        .filter(|place| place.ranked || !in_use)
        .collect();
    for from in &ends {
        for plugin in &from.report.plugins {
            for (index, link) in numbered(plugin) {
                match link.scope {
                    Scope::Node => node(&mut links, from, plugin, link, index, &ends),
                    Scope::Network => network(&mut links, builder, from, plugin, link, index),
                    Scope::Pair => {}
                }
            }
        }
    }
    links.finish(builder);
    Ok(())
}

/// The links of a plugin, each with its number among those that are alike but for their figures.
fn numbered(plugin: &PluginReport) -> impl Iterator<Item = (usize, &LinkReport)> {
    let mut counts = BTreeMap::new();
    plugin.links.iter().map(move |link| {
        let count = counts.entry(likeness(link)).or_insert(0usize);
        *count += 1;
        (*count - 1, link)
    })
}

fn likeness(link: &LinkReport) -> (&str, Scope, DeviceId, DeviceId, u32) {
    (&link.kind, link.scope, link.from, link.to, link.rail)
}

/// Links between the two devices named, for all ranks that use them.
fn pair(
    links: &mut Links,
    report: &NodeReport,
    plugin: &PluginReport,
    link: &LinkReport,
    index: usize,
    places: &[Place<'_>],
) -> Result<(), GraphError> {
    let ends = |field, id: DeviceId| {
        let of_node = || {
            places
                .iter()
                .filter(|place| place.report.node == report.node && place.device == id)
        };
        let own: Vec<_> = of_node()
            .filter(|place| place.plugin == plugin.plugin)
            .collect();
        let found: Vec<_> = if own.is_empty() {
            of_node().collect()
        } else {
            own
        };
        if found.is_empty() {
            let (plugin, device) = (plugin.plugin.clone(), id.to_string());
            return Err(GraphError::UnknownDevice {
                rank: report.rank,
                field,
                plugin,
                device,
            });
        }
        Ok(found)
    };
    let (starts, ends) = (
        ends("a link's `from`", link.from)?,
        ends("a link's `to`", link.to)?,
    );
    for from in &starts {
        for to in ends.iter().filter(|to| to.vertex != from.vertex) {
            links.put(
                from.vertex,
                to.vertex,
                &plugin.plugin,
                link,
                index,
                group(from, &plugin.plugin, link, ""),
            );
        }
    }
    Ok(())
}

/// A link between any two processes of a node, where both ends report it.
fn node(
    links: &mut Links,
    from: &Place<'_>,
    plugin: &PluginReport,
    link: &LinkReport,
    index: usize,
    ends: &[&Place<'_>],
) {
    if !serves(plugin, from, link.from) {
        return;
    }
    let near = ends
        .iter()
        .filter(|to| to.report.node == from.report.node && to.vertex != from.vertex);
    for to in near {
        let Some(theirs) = to.plugin_report(&plugin.plugin) else {
            continue;
        };
        let answer =
            numbered(theirs).find(|(i, other)| *i == index && likeness(other) == likeness(link));
        let Some((_, answer)) = answer.filter(|_| serves(theirs, to, link.to)) else {
            continue;
        };
        for told in [link, answer] {
            links.put(
                from.vertex,
                to.vertex,
                &plugin.plugin,
                told,
                index,
                group(from, &plugin.plugin, link, ""),
            );
        }
    }
}

/// A link to whoever is on the network: half of the way up to it, half down.
fn network(
    links: &mut Links,
    builder: &mut Builder,
    from: &Place<'_>,
    plugin: &PluginReport,
    link: &LinkReport,
    index: usize,
) {
    if !serves(plugin, from, link.from) {
        return;
    }
    let name = network_name(&plugin.plugin, link);
    let switch = *links
        .switches
        .entry((plugin.plugin.clone(), link.kind.clone(), link.rail))
        .or_insert_with(|| {
            builder.vertex(Vertex {
                name,
                node: None,
                kind: VertexKind::Switch(Switch::default()),
            })
        });
    let up = LinkReport {
        latency_ns: link.latency_ns / 2,
        ..link.clone()
    };
    let down = LinkReport {
        latency_ns: link.latency_ns - up.latency_ns,
        ..link.clone()
    };
    links.put(
        from.vertex,
        switch,
        &plugin.plugin,
        &up,
        index,
        group(from, &plugin.plugin, link, "/out"),
    );
    links.put(
        switch,
        from.vertex,
        &plugin.plugin,
        &down,
        index,
        group(from, &plugin.plugin, link, "/in"),
    );
}

/// Whether a plugin's link begins or ends at a place: where it names no device, at its own devices,
/// or, if it has none, at every device.
fn serves(plugin: &PluginReport, place: &Place<'_>, named: DeviceId) -> bool {
    let own = place.plugin == plugin.plugin;
    if named.is_zero() {
        own || plugin.devices.is_empty()
    } else {
        named == place.device && (own || plugin.devices.iter().all(|device| device.id != named))
    }
}

/// The capacity that a link shares with others of its plugin and node.
fn group(from: &Place<'_>, plugin: &str, link: &LinkReport, way: &str) -> Option<String> {
    (link.shared != 0).then(|| format!("{}/{plugin}/{}{way}", from.report.node, link.shared))
}

fn network_name(plugin: &str, link: &LinkReport) -> String {
    let mut name = link.kind.clone();
    if plugin != link.kind {
        name = format!("{name} ({plugin})");
    }
    if link.rail != 0 {
        name = format!("{name} rail {}", link.rail);
    }
    name
}
