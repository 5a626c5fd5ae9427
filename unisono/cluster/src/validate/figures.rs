//! Times, sizes, interfaces: figures that work alone and together.

use super::meaning::Context;
use crate::model::Interfaces;
use crate::problem::ProblemKind::{Contradiction, OutOfRange};
use crate::units::{Bytes, TimeSpan};

/// The longest time that anything may take: far from where clocks overflow.
const LONGEST: TimeSpan = TimeSpan::secs(30 * 24 * 3600);
/// The shortest interval between signs of life.
const SHORTEST_HEARTBEAT: TimeSpan = TimeSpan::millis(10);
/// The longest that a wait may keep a processor busy.
const LONGEST_SPIN: TimeSpan = TimeSpan::secs(1);
/// Slots are whole cache lines.
const LINE: u64 = 64;

pub(super) fn check(context: &mut Context<'_>) {
    timeouts(context);
    memory(context);
    progress(context);
    let cluster = context.cluster;
    interfaces(context, &cluster.interfaces, "interfaces");
    for (index, node) in cluster.nodes.iter().enumerate() {
        if let Some(own) = &node.interfaces {
            interfaces(context, own, &format!("nodes[{index}].interfaces"));
        }
    }
}

fn timeouts(context: &mut Context<'_>) {
    let timeouts = &context.cluster.timeouts;
    let all = [
        ("init", timeouts.init),
        ("op", timeouts.op),
        ("heartbeat_interval", timeouts.heartbeat_interval),
        ("heartbeat_timeout", timeouts.heartbeat_timeout),
        ("abort_drain", timeouts.abort_drain),
        ("finalize", timeouts.finalize),
    ];
    for (key, span) in all {
        let least = if key == "heartbeat_interval" {
            SHORTEST_HEARTBEAT
        } else {
            TimeSpan::millis(1)
        };
        if span < least || span > LONGEST {
            let message = format!("`{key}` is {span}: out of range");
            let help = format!("give {least} to {LONGEST}");
            context.problem(OutOfRange, &format!("timeouts.{key}"), message, help);
        }
    }
    let (interval, timeout) = (timeouts.heartbeat_interval, timeouts.heartbeat_timeout);
    if timeout.nanos() < interval.nanos().saturating_mul(3) {
        // The one that was given is the one to point at.
        let given = context
            .places
            .at("timeouts.heartbeat_timeout")
            .source
            .precedence();
        let other = context
            .places
            .at("timeouts.heartbeat_interval")
            .source
            .precedence();
        let key = if given >= other {
            "heartbeat_timeout"
        } else {
            "heartbeat_interval"
        };
        let message = format!(
            "`heartbeat_timeout` is {timeout}, less than three times `heartbeat_interval`, {interval}"
        );
        let help =
            "give the timeout at least three intervals, so that one lost message kills nobody";
        context.problem(Contradiction, &format!("timeouts.{key}"), message, help);
    }
}

fn memory(context: &mut Context<'_>) {
    let memory = &context.cluster.memory;
    // Without it slots shrink to the budget, down to this.
    let size = memory.slot.unwrap_or(Bytes::kib(4));
    let slot = size.get();
    if slot == 0 || !slot.is_multiple_of(LINE) {
        let message = format!("a slot of {size} is no whole number of {LINE}-byte lines");
        let help = format!(
            "give a multiple of {LINE} B, such as {}",
            Bytes(slot.div_ceil(LINE).max(1).saturating_mul(LINE))
        );
        context.problem(OutOfRange, "memory.slot", message, help);
    }
    if slot.saturating_mul(u64::from(memory.slots)) > memory.budget.get() {
        let paths = ["memory.budget", "memory.slot", "memory.slots"];
        let path = paths
            .into_iter()
            .max_by_key(|path| context.places.at(path).source.precedence())
            .unwrap_or("memory");
        let message = format!(
            "the {} slots of one channel, {size} each, exceed the budget of {}",
            memory.slots, memory.budget
        );
        context.problem(
            Contradiction,
            path,
            message,
            "give a larger budget, or smaller or fewer slots",
        );
    }
}

fn progress(context: &mut Context<'_>) {
    let progress = &context.cluster.progress;
    for (key, span) in [("spin", progress.spin), ("yield", progress.yield_for)] {
        if span > LONGEST_SPIN {
            let message = format!("`{key}` is {span}: waits would burn a processor");
            let help = format!("give at most {LONGEST_SPIN}");
            context.problem(OutOfRange, &format!("progress.{key}"), message, help);
        }
    }
}

fn interfaces(context: &mut Context<'_>, interfaces: &Interfaces, path: &str) {
    for (index, pattern) in interfaces.exclude.iter().enumerate() {
        if let Some(included) = interfaces.include.iter().position(|other| other == pattern) {
            let place = context.place(&format!("{path}.include[{included}]"));
            let message = format!("`{pattern}` is both included, at {place}, and excluded");
            context.problem(
                Contradiction,
                &format!("{path}.exclude[{index}]"),
                message,
                "remove one of them",
            );
        }
    }
}
