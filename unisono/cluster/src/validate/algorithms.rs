//! Rules for algorithms: each can decide for some call, and none asks for what cannot be.

use super::meaning::Context;
use crate::model::{AlgorithmRule, AlgorithmUse, Collective, RankRange};
use crate::problem::ProblemKind;

pub(super) fn check(context: &mut Context<'_>) {
    let rules = &context.cluster.algorithms;
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("algorithms[{index}]");
        if !context.is_whole(&path) {
            continue;
        }
        if bytes(rule).0 > bytes(rule).1 {
            let message = "`min_bytes` is larger than `max_bytes`: the rule matches nothing";
            let help = "exchange them";
            context.problem(
                ProblemKind::Contradiction,
                &format!("{path}.min_bytes"),
                message,
                help,
            );
            continue;
        }
        ordered(context, rule, &path);
        for (before, earlier) in rules[..index].iter().enumerate() {
            let sound = bytes(earlier).0 <= bytes(earlier).1
                && context.is_whole(&format!("algorithms[{before}]"));
            if sound && overlap(context, rule, earlier, &path, before) {
                break;
            }
        }
    }
}

/// All but the meshes add up in an order of their own, never in that of the ranks.
fn ordered(context: &mut Context<'_>, rule: &AlgorithmRule, path: &str) {
    let own_order = !matches!(
        rule.use_,
        AlgorithmUse::Auto
            | AlgorithmUse::MeshOneShot
            | AlgorithmUse::MeshTwoShot
            | AlgorithmUse::MeshRead
            | AlgorithmUse::MeshShared
            | AlgorithmUse::MeshSharedOneShot
    );
    let reduces = rule.op.is_none_or(Collective::reduces);
    if rule.deterministic == Some(true) && own_order && reduces {
        let message = format!(
            "`{}` does not add up in the order of the ranks, as `deterministic` asks",
            rule.use_
        );
        let help = "use a mesh (mesh_one_shot, mesh_two_shot, mesh_read, mesh_shared, mesh_shared_one_shot) or auto, or leave `deterministic` out";
        context.problem(
            ProblemKind::Contradiction,
            &format!("{path}.use"),
            message,
            help,
        );
    }
}

/// Tells if an earlier rule leaves this one little or nothing. True if it leaves nothing.
fn overlap(
    context: &mut Context<'_>,
    rule: &AlgorithmRule,
    earlier: &AlgorithmRule,
    path: &str,
    before: usize,
) -> bool {
    let alike = rule.use_ == earlier.use_ && rule.deterministic == earlier.deterministic;
    let place = context.place(&format!("algorithms[{before}]"));
    if covers(earlier, rule) {
        if alike {
            let message = format!("the rule says again what the one at {place} says");
            context.warning(path, message, "remove one of them");
        } else {
            let message = format!(
                "the rule asks for {} and can never decide: the one at {place} comes first, matches all of its calls \
                 and asks for {}",
                described(rule),
                described(earlier)
            );
            let help =
                "put it before the other one, or change the conditions so that they do not overlap";
            context.problem(ProblemKind::Contradiction, path, message, help);
        }
        return true;
    }
    let partly = !alike
        && !covers(rule, earlier)
        && rule.communicator == earlier.communicator
        && meet(rule, earlier);
    if partly {
        let message =
            format!("the rule overlaps the one at {place}, which decides where both match");
        context.warning(
            path,
            message,
            "make the ranges meet without overlapping, if that is not meant",
        );
    }
    false
}

fn described(rule: &AlgorithmRule) -> String {
    match rule.deterministic {
        None => format!("`{}`", rule.use_),
        Some(deterministic) => format!("`{}` with deterministic: {deterministic}", rule.use_),
    }
}

fn bytes(rule: &AlgorithmRule) -> (u64, u64) {
    let least = rule.min_bytes.map_or(0, |bytes| bytes.get());
    let most = rule.max_bytes.map_or(u64::MAX, |bytes| bytes.get());
    (least, most)
}

fn ranks(rule: &AlgorithmRule) -> (u32, u32) {
    let RankRange { min, max } = rule.ranks.unwrap_or(RankRange {
        min: 1,
        max: u32::MAX,
    });
    (min, max)
}

/// Whether every call that `inner` matches is matched by `outer`.
fn covers(outer: &AlgorithmRule, inner: &AlgorithmRule) -> bool {
    let op = outer.op.is_none() || outer.op == inner.op;
    let communicator = match (outer.communicator.as_deref(), inner.communicator.as_deref()) {
        (None | Some("*"), _) => true,
        (Some(outer), Some(inner)) if inner.contains('*') => outer == inner,
        (Some(outer), Some(inner)) => crate::model::glob(outer.as_bytes(), inner.as_bytes()),
        (Some(_), None) => false,
    };
    let ((least, most), (inner_least, inner_most)) = (bytes(outer), bytes(inner));
    let ((few, many), (inner_few, inner_many)) = (ranks(outer), ranks(inner));
    op && communicator
        && least <= inner_least
        && inner_most <= most
        && few <= inner_few
        && inner_many <= many
}

/// Whether some call is matched by both, their communicators aside.
fn meet(one: &AlgorithmRule, other: &AlgorithmRule) -> bool {
    let op = one.op.is_none() || other.op.is_none() || one.op == other.op;
    let ((a, b), (c, d)) = (bytes(one), bytes(other));
    let ((e, f), (g, h)) = (ranks(one), ranks(other));
    op && a <= d && c <= b && e <= h && g <= f
}
