//! Rings and trees for a communicator whose ranks are joined by links of unequal width.
//!
//! On a cube mesh, or a full mesh with a dead link, the flat algorithms send over pairs that have no
//! link of their own, and the slowest pair sets their pace. Rings and trees are packed into the direct
//! links alone. They are found from the frozen graph by IEEE 754's four operations in a fixed order, none
//! fused and no library's functions, so that every rank finds the same; should a machine round differently
//! after all, the digests differ, and a call is refused and not wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use unisono_network::{Builder, Network};
use unisono_pack as pack;
use unisono_plan::Template;
use unisono_plan::cost::{Link, Port};
use unisono_plan::template::{Ring, Rings, TemplateError, Tree, Trees};

/// The most ranks for which they are packed while a communicator forms: some ten milliseconds.
const MOST_RANKS: u32 = 16;
/// A link that is so many times narrower than the widest is left out.
const NARROW: u64 = 8;

/// How one rank reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// What it costs.
    pub(super) link: Link,
    /// Whether nothing stands between the two.
    pub(super) direct: bool,
    /// By what the first leaves for the second and others, if that is known: a port, a card.
    pub(super) leaves_by: Option<Port>,
}

/// Rings, then trees; or why there are none.
pub(super) fn packed(
    ranks: u32,
    pair: impl Fn(u32, u32) -> Pair,
) -> Result<(Option<Template>, Vec<Template>), String> {
    if ranks < 3 {
        return Err("fewer than three ranks have nothing to pack".into());
    }
    if ranks > MOST_RANKS {
        return Err(format!(
            "they are packed for at most {MOST_RANKS} ranks while a communicator forms: ask `unisono \
             plan` what they would be worth"
        ));
    }
    let all = || (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
    let all = || all().filter(|(from, to)| from != to);
    let seen = |from: u32, to: u32| (pair(from, to).link, pair(from, to).direct);
    let alike = seen(0, 1);
    if all().all(|(from, to)| seen(from, to) == alike) {
        return Err(
            "every two ranks are joined alike: the flat algorithms use the links as well".into(),
        );
    }
    let direct: Vec<(u32, u32, u64)> = all()
        .filter_map(|(from, to)| {
            let Pair { link, direct, .. } = pair(from, to);
            Some((from, to, link.rate.get().filter(|_| direct)?))
        })
        .collect();
    let widest = direct.iter().map(|(.., rate)| *rate).max().unwrap_or(0);
    let wide = direct.iter().filter(|(.., rate)| *rate >= widest / NARROW);
    let network = network(ranks, wide)
        .filter(joins_all)
        .ok_or("no wide direct links join all ranks: islands suit them better")?;
    let rings = rings(&network);
    let trees = trees(&network);
    Ok((rings, trees))
}

fn network<'a>(ranks: u32, links: impl Iterator<Item = &'a (u32, u32, u64)>) -> Option<Network> {
    let mut builder = Builder::new(ranks);
    for &(from, to, rate) in links {
        builder.edge(from, to, rate, 0);
    }
    builder.build().ok()
}

fn joins_all(network: &Network) -> bool {
    let reaches = |next: &dyn Fn(u32) -> Vec<u32>| {
        let mut seen = vec![false; network.ranks() as usize];
        let mut stack = vec![0];
        while let Some(at) = stack.pop() {
            if !std::mem::replace(&mut seen[at as usize], true) {
                stack.extend(next(at));
            }
        }
        seen.iter().all(|seen| *seen)
    };
    let out = |at| {
        network
            .out_edges(at)
            .iter()
            .map(|&edge| network.edge(edge).to)
    };
    let into = |at| {
        network
            .in_edges(at)
            .iter()
            .map(|&edge| network.edge(edge).from)
    };
    reaches(&|at| out(at).collect()) && reaches(&|at| into(at).collect())
}

/// The rings, the widest first: those that no hop has more than twice, which is what programs can do.
fn rings(network: &Network) -> Option<Template> {
    let mut found = pack::rings(network).ok()?.rings;
    found.retain(|ring| ring.paths.iter().all(|path| path.len() == 1));
    found.sort_by_key(|ring| std::cmp::Reverse(ring.weight));
    let mut uses: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut kept = Vec::new();
    for ring in found {
        let next = ring.order.iter().cycle().skip(1);
        let hops: Vec<(u32, u32)> = ring.order.iter().copied().zip(next.copied()).collect();
        if hops
            .iter()
            .all(|hop| uses.get(hop).is_none_or(|uses| *uses < 2))
        {
            for hop in hops {
                *uses.entry(hop).or_default() += 1;
            }
            kept.push(Ring::new(ring.order, ring.weight));
        }
    }
    let rings: Result<Vec<Ring>, TemplateError> = kept.into_iter().collect();
    Some(Template::Rings(Arc::new(Rings::new(rings.ok()?).ok()?)))
}

/// Trees for equal blocks of all ranks, then those for one message of all where that is faster with
/// unequal shares.
fn trees(network: &Network) -> Vec<Template> {
    let ranks = network.ranks();
    let tree = |tree: &pack::Tree| Tree::new(tree.root, tree.weight, tree.parents.clone());
    let all = |trees: &[pack::Tree]| trees.iter().map(tree).collect::<Vec<Tree>>();
    let blocks = || {
        let outs = pack::all_gather(network).ok()?;
        let ins = pack::reduce_scatter(network).ok()?;
        Trees::new(ranks, all(&outs.trees), all(&ins.trees)).ok()
    };
    let whole = || {
        let pairs = pack::all_reduce(network).ok()?.pairs;
        let outs: Vec<Tree> = pairs.iter().map(|pair| tree(&pair.distribute)).collect();
        let ins: Vec<Tree> = pairs.iter().map(|pair| tree(&pair.reduce)).collect();
        Trees::new(ranks, outs, ins).ok()
    };
    let unequal = whole().filter(|trees| !trees.roots_are_alike());
    let found = blocks().into_iter().chain(unequal);
    found
        .map(|trees| Template::Trees(Arc::new(trees)))
        .collect()
}
