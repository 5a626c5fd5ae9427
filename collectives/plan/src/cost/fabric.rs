//! What the cost model knows of the machines: a summary of the frozen link graph.
//!
//! The summary keeps, for each *pattern* of messages that an algorithm uses, the slowest link in
//! it and how many of its messages leave one node at the same time. So it is small, and choosing
//! an algorithm costs no look at single links.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::algorithms::{Algorithm, neighbours, pairwise};
use crate::builder::wrap;
use crate::template::{Family, Order};

use super::measured::Measurements;
use super::pattern::{Pattern, Survey, crowding, scaled};
use super::rate::{Rate, Ratio};
use super::shaped::Shaped;

/// What a core has of cache for itself, in bytes, where nobody tells: 512 KiB to 2 MiB on today's servers.
const CORE_CACHE: u128 = 1 << 20;
/// What cores of a machine have of cache together, in bytes: 16 MiB of four cores and more on today's servers. Where it is
/// much more, `unisono tune` measures from where on to do without slots.
const SHARED_CACHE: u128 = 16 << 20;
/// What a core's cache of the first level holds, in bytes: 32 to 64 KiB on today's servers.
const FIRST_LEVEL: u128 = 64 << 10;
/// What a core reads of lines that another core of its machine has just written and still holds, in bytes a second, where
/// that core will write them again: each line is asked for, handed over, and taken back. Measured on a Xeon of 2 cores:
/// 3.1 to 4.4 GB/s for 256 KiB and 1 MiB. `unisono tune --ranks 2` measures such plans; its calibration calls them
/// `windowed`.
const FRESH_BYTES_PER_SECOND: u64 = 4_000_000_000;
/// The same where the reader's core takes each line over, which the writer then fetches back: a Xeon with AMX-FP16, 256 KiB
/// and 1 MiB (`cargo xtask peers -- --dirty --own-memory --ranks 2 --ops reduce,send_recv --sizes 256K,1M` with slots
/// that do not change hands, where such calls go over windows).
const HANDED_BYTES_PER_SECOND: u64 = 3_300_000_000;
/// What of the time that links take, by what they say, short messages take that stay in the caches of processors whose cores
/// hand lines on: on a Xeon with AMX-FP16 two ranks' collectives of 256 KiB took 0.33 to 0.47 of it, of 1 MiB 0.4 to 0.9, of
/// 4 MiB 0.5 to 0.95 (`cargo xtask peers -- --dirty --ranks 2 --sizes 256K,1M,4M`, beside `unisono explain`).
const IN_CACHES: (u128, u128) = (9, 20);
/// The same where slots change hands, and some of who filled them shares the reader's core. With three to eight ranks on two
/// cores an all_reduce by `mesh_two_shot` took 0.75 to 0.95 as long as by `mesh_shared`, whose lines many read, as long as
/// each core had 256 KiB of it, and 1.05 to 1.15 times from 512 KiB (`--ranks 3,4,6,8 --ops all_reduce --sizes
/// 16K,64K,128K,256K,512K` with either forced).
const HANDED: (u128, u128) = (7, 20);
/// A rank of a ring adds its own to what it is handed and hands the sum on, in one pass: it reads no input twice, and of
/// others' only the sum. With three to eight ranks on two cores of a Xeon with AMX-FP16 that took 0.75 to 0.99 as long as
/// what was chosen without this, once 1.03 times (`--ranks 3,4,5,6,7,8 --ops reduce_scatter --sizes 1M,2M,4M,16M,64M`, in
/// turns with the build before it).
const ADDED_ON: (u128, u128) = (17, 20);
/// Slots of one partner stay in its core's cache. By pairs all_to_alls of 4 to 64 MiB took 0.81 to 1.04 of what was predicted
/// without this, among four and eight ranks on two cores of a Xeon with AMX-FP16 (`--ranks 4,8 --ops all_to_all --sizes
/// 4M,16M,64M` with `pairwise` forced, beside `unisono explain`).
const BY_PAIRS: (u128, u128) = (7, 8);
/// As many bytes make the mean of two rates exact enough.
const READ_SAMPLE: u128 = 1 << 30;
/// Puts of each rank of a ring whose sums are shown that are under way: two to its neighbour, and two shown.
const UNDER_WAY: u128 = 4;
/// Puts are not made smaller than this to stay in a cache: ranks would do little but take turns.
const SMALL_PUT: u64 = 8 << 10;

/// A link from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Time from the start of an empty message to its arrival, in picoseconds.
    pub alpha_ps: u64,
    /// Bandwidth in this direction.
    pub rate: Rate,
    /// Whether the rank's own core moves the bytes, as over shared memory between processes.
    /// Then a rank serves one link at a time, and slows down where ranks share cores.
    pub by_core: bool,
    /// Time in picoseconds that a rank's core spends on sending, and as much on receiving, one message over it, besides
    /// the bytes, where that is more than [`Speeds::message_ps`]: calls of the operating system. 0 where it is not.
    pub message_ps: u64,
    /// What it shares with other links, if it does: a device's way into a switch, or to the host.
    pub port: Option<Port>,
}

/// A capacity that links share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port {
    /// Which one: links with the same number share it.
    pub id: u32,
    /// Bandwidth of all its links together.
    pub rate: Rate,
}

/// A machine with some of the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Cores that its ranks may use; 0 is unknown, and enough.
    pub cores: u32,
    /// Bandwidth of everything that leaves the node, in all.
    pub exit: Rate,
}

/// What the ranks themselves can do; of unequal ranks the slowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speeds {
    /// Time that a rank spends on sending or on receiving one message, besides the bytes.
    pub message_ps: u64,
    /// Time to switch from one rank to another that shares its core.
    pub switch_ps: u64,
    /// Reduction, in bytes of result.
    pub reduce: Rate,
    /// Copies between the buffers of one rank.
    pub copy: Rate,
    /// Bandwidth of everything that leaves a rank, in all.
    pub port: Rate,
}

/// A fabric that can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// A communicator has a rank.
    #[error("a fabric needs at least one rank")]
    Empty,
    /// More ranks than can be numbered.
    #[error("a fabric of {ranks} ranks is too large")]
    TooLarge {
        /// How many.
        ranks: usize,
    },
    /// A rank is on a node that isn't described.
    #[error("rank {rank} is on node {node}, but only {nodes} nodes are described")]
    NoSuchNode {
        /// The rank.
        rank: usize,
        /// Its node.
        node: u32,
        /// How many nodes there are.
        nodes: usize,
    },
}

/// The fabric of one communicator, as every rank sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fabric {
    ranks: u32,
    pub(super) speeds: Speeds,
    /// Everybody to everybody.
    pub(super) mesh: Pattern,
    /// Everybody to the next.
    pub(super) ring_up: Pattern,
    /// Everybody to the one before.
    pub(super) ring_down: Pattern,
    /// Everybody to the rank `2^k` above, for each `k` with `2^k < ranks`.
    pub(super) shifts: Vec<Pattern>,
    /// Everybody to the rank `2^k` below.
    pub(super) shifts_down: Vec<Pattern>,
    /// Everybody to the one that it meets in a round of [`pairwise`], equal ones together with their number.
    pub(super) rounds: Vec<(Pattern, u64)>,
    /// The exchanges of halving, the widest first.
    pub(super) halvings: Vec<Pattern>,
    /// Between the neighbours of two binary trees, both ways.
    pub(super) trees: Pattern,
    /// The exchange of the core at distance `2^k`.
    pub(super) exchanges: Vec<Pattern>,
    /// Between the ranks outside the core and those that speak for them.
    pub(super) fold: Pattern,
    /// The largest put to everybody at once that stays in the caches of cores.
    cached_put: Option<u64>,
    measured: Option<Arc<Measurements>>,
    shaped: Arc<[Shaped]>,
    missing: Arc<[(Family, String)]>,
    /// What links carry where a rank writes into a peer's window, if that is less.
    pub(super) written: Rate,
    /// Ranks on each core, where these are more.
    pub(super) crowd: Ratio,
    /// Whether all are on one machine.
    together: bool,
    /// How ranks read each other's memory, or why they do not.
    reads: Result<Reads, Arc<str>>,
    /// Nothing if all ranks' cores work in memory that all map, or why not.
    shares_memory: Result<(), Arc<str>>,
    /// What a core's own cache holds of what the core has just written.
    core_cache: u128,
    /// Whether a core that reads what another has just written takes the lines over, and ranks have theirs by that.
    hands_on: bool,
    /// Whether most ranks that follow each other share a core.
    near: bool,
    /// The fingerprint of the fabric of which this one is a calibrated version.
    origin: Option<u64>,
}

/// How fast a rank reads its peers' memory, where all ranks can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// What a core spends at each end of one read, besides the bytes, in picoseconds.
    pub call_ps: u64,
    /// Bytes read where each rank reads another's, on another core.
    pub rate: Rate,
    /// Bytes read where the two share a core, whose cache has what another rank there has read before.
    pub of_own_core: Rate,
    /// Bytes read where all read the memory of one rank, which copies it meanwhile.
    pub from_one: Rate,
    /// Bytes that a core reads of its own memory, where no cache holds them, to add them up.
    pub from_memory: Rate,
    /// The same to copy them to a slot.
    pub copied_from_memory: Rate,
    /// What nobody else reads, where caches do not hold it.
    pub alone: Uncached,
    /// Bytes added up that have just been read, hence lie in the core's cache.
    pub added: Rate,
    /// Bytes of a rank's own operand of them, and of the sums, where no cache holds these.
    pub summed: Rate,
    /// Bytes read from the first-level cache of the core that has just written them: each line comes from there, and has
    /// to be taken back when that core writes it again.
    pub from_cache: Rate,
}

/// What it takes to read what caches do not hold, beside what it takes to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uncached {
    /// Bytes of all ranks' messages together that caches hold.
    pub held: u64,
    /// By the bytes of the rest. Unknown where there is nothing besides.
    pub rate: Rate,
}

impl Uncached {
    /// For `part` of each rank's `bytes`, where so many ranks have as much.
    pub(super) fn time_ps(&self, part: Ratio, bytes: Ratio, ranks: u32) -> u128 {
        let beyond = beyond(self.held.into(), bytes, ranks);
        let part = beyond.times(part.num).over(part.den);
        self.rate.time(part.times(bytes.den).over(bytes.num.max(1)))
    }
}

impl Reads {
    /// How much longer it takes at `rate` to read so many bytes, as what was written last lies in the cache of the core
    /// that wrote it.
    pub(super) fn fetched_ps(&self, bytes: Ratio, rate: Rate) -> u128 {
        let all = bytes.num >= FIRST_LEVEL * bytes.den;
        let cached = if all {
            Ratio::new(FIRST_LEVEL, 1)
        } else {
            bytes
        };
        let times = [self.from_cache, rate].map(|rate| rate.time(cached));
        times[0].saturating_sub(times[1])
    }
}

impl Fabric {
    /// Summarises a fabric. `node_of` gives the node of each rank, and `link` the link between any
    /// two different ranks; it is asked once for every ordered pair, and more often for some.
    pub fn new(
        node_of: &[u32],
        nodes: &[Node],
        speeds: Speeds,
        link: impl Fn(u32, u32) -> Link,
    ) -> Result<Self, FabricError> {
        let count = node_of.len();
        let ranks = u32::try_from(count)
            .ok()
            .filter(|&ranks| ranks < 1 << 31)
            .ok_or(FabricError::TooLarge { ranks: count })?;
        if ranks == 0 {
            return Err(FabricError::Empty);
        }
        if let Some((rank, &node)) =
            (node_of.iter().enumerate()).find(|&(_, &node)| node as usize >= nodes.len())
        {
            let nodes = nodes.len();
            return Err(FabricError::NoSuchNode { rank, node, nodes });
        }
        let crowd = crowding(node_of, nodes);
        let survey = Survey {
            node_of,
            nodes,
            crowd,
            switch_ps: speeds.switch_ps,
            link: &link,
        };
        let all = 0..ranks;
        let shift = |by: u32| {
            let to = |r: u32| wrap(r, by, ranks);
            survey.pattern(1, all.clone().map(|r| (r, to(r))))
        };
        let mut rounds: Vec<(Pattern, u64)> = Vec::new();
        for round in 0..pairwise::rounds(ranks) {
            let met = |rank| pairwise::partner(ranks, rank, round).map(|met| (rank, met));
            let pattern = survey.pattern(1, all.clone().filter_map(met));
            match rounds.iter_mut().find(|(known, _)| *known == pattern) {
                Some((_, count)) => *count += 1,
                None => rounds.push((pattern, 1)),
            }
        }
        let powers = || (0..u32::BITS - (ranks - 1).leading_zeros()).map(|k| 1u32 << k);
        let core = 1u32 << ranks.ilog2();
        let extra = ranks - core;
        let member = |number: u32| number + number.min(extra) + u32::from(number < extra);
        let exchange = |k: u32| {
            let pairs = (0..core).map(|number| (member(number), member(number ^ (1 << k))));
            survey.pattern(1, pairs)
        };
        let pairs = all.clone().flat_map(|a| (0..ranks).map(move |b| (a, b)));
        let mesh = survey.pattern(u64::from(ranks) - 1, pairs);
        let folded = (0..extra).flat_map(|i| [(2 * i, 2 * i + 1), (2 * i + 1, 2 * i)]);
        Ok(Self {
            ranks,
            mesh,
            ring_up: shift(1),
            ring_down: shift(ranks - 1),
            shifts: powers().map(shift).collect(),
            shifts_down: powers().map(|by| shift(ranks - by)).collect(),
            rounds,
            halvings: neighbours::halvings(ranks)
                .into_iter()
                .map(|halving| {
                    let pairs = halving.gifts.into_iter().map(|(from, to, _)| (from, to));
                    survey.pattern(halving.most, pairs)
                })
                .collect(),
            trees: survey.pattern(1, neighbours::tree_edges(ranks).into_iter()),
            exchanges: (0..core.ilog2()).map(exchange).collect(),
            fold: survey.pattern(1, folded),
            speeds: Speeds {
                message_ps: scaled(speeds.message_ps, crowd),
                reduce: speeds.reduce.shared(crowd),
                copy: speeds.copy.shared(crowd),
                ..speeds
            },
            cached_put: (mesh.by_core && mesh.message_ps == 0 && crowd.num > crowd.den)
                .then(|| cached_put(node_of, nodes.len(), crowd)),
            measured: None,
            shaped: Arc::default(),
            missing: Arc::default(),
            written: Rate::UNKNOWN,
            crowd,
            together: node_of.iter().all(|node| *node == node_of[0]),
            reads: Err("nobody has said that its ranks can read each other's memory".into()),
            shares_memory: Err("nobody has said that its ranks share memory".into()),
            core_cache: CORE_CACHE,
            hands_on: false,
            near: false,
            origin: None,
        })
    }

    /// A fabric of equal links between ranks that each have a node of their own.
    pub fn uniform(ranks: u32, speeds: Speeds, link: Link) -> Result<Self, FabricError> {
        let nodes: Vec<u32> = (0..ranks).collect();
        let node = Node {
            cores: 0,
            exit: Rate::UNKNOWN,
        };
        Self::new(&nodes, &vec![node; nodes.len()], speeds, |_, _| link)
    }

    /// Ranks of the communicator.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    pub(super) fn set_templates(&mut self, shaped: Vec<Shaped>, missing: Vec<(Family, String)>) {
        self.shaped = shaped.into();
        self.missing = missing.into();
    }

    /// The largest put, where every rank sends to every other at once, of which what all ranks of a
    /// core have sent is still in its cache when they read. None where no core moves bytes, and where
    /// ranks share none: these read while others write. Nor where messages are calls of the operating system, of
    /// which fewer are better.
    pub(crate) fn cached_put(&self) -> Option<u64> {
        self.cached_put
    }

    /// The largest put of a ring whose sums are shown, of which what a core's ranks have under way, in the ring and shown,
    /// stays in its cache: seen where cores hand lines on. With eight ranks on two cores of a Xeon with AMX-FP16 all_reduces
    /// of 1 to 64 MiB took 0.88 to 0.98 of the time in puts of 64 KiB that they take in puts of 128 KiB; with three to six
    /// ranks 1.0 to 1.07 of it (`cargo xtask peers -- --dirty --ranks 3,4,6,8 --ops all_reduce --sizes 1M,4M,16M,64M` with
    /// `UNISONO_MEMORY='{slot: 64K}'`).
    pub(crate) fn shown_ring_put(&self) -> Option<u64> {
        if !(self.hands_on && self.shares_cores()) {
            return None;
        }
        let put = self.core_cache * self.crowd.den / (UNDER_WAY * self.crowd.num);
        u64::try_from(put).ok().map(|put| put.max(SMALL_PUT))
    }

    /// Whether cores move the bytes, and not devices.
    pub(crate) fn is_by_core(&self) -> bool {
        self.mesh.by_core
    }

    /// The templates that were made for this fabric.
    #[must_use]
    pub fn templates(&self) -> &[Shaped] {
        &self.shaped
    }

    /// Why there are no templates of a name.
    #[must_use]
    pub fn why_missing(&self, family: Family) -> Option<&str> {
        if family == Family::from(Algorithm::MeshRead) {
            return self.reads.as_ref().err().map(|why| &**why);
        }
        if (Algorithm::ALL.into_iter())
            .any(|algorithm| algorithm.shows_puts() && family == Family::from(algorithm))
        {
            return self.shares_memory.as_ref().err().map(|why| &**why);
        }
        let mut missing = self.missing.iter();
        let found = missing.find(|(other, _)| *other == family)?;
        Some(&found.1)
    }

    /// The same fabric with what plans really took on it, which selection then goes by.
    #[must_use]
    pub fn with_measurements(mut self, measured: Measurements) -> Self {
        self.measured = (!measured.is_empty()).then(|| Arc::new(measured));
        self
    }

    /// The same fabric, on which links carry so much where a rank writes into a peer's window: less than their rate, which
    /// is that of their receivers' reads.
    #[must_use]
    pub fn with_written(mut self, rate: Rate) -> Self {
        self.written = rate;
        self
    }

    /// The same fabric, whose ranks all can read each other's memory, or why not.
    #[must_use]
    pub fn with_reads(mut self, reads: Result<Reads, String>) -> Self {
        self.reads = reads.map_err(Arc::from);
        self
    }

    /// The same fabric, whose ranks all map each other's memory and read it with cores of their own, or why not.
    #[must_use]
    pub fn with_shared_memory(mut self, shares: Result<(), String>) -> Self {
        self.shares_memory = shares.map_err(Arc::from);
        self
    }

    /// The same fabric, whose cores have a cache of so many bytes each for themselves: what they have just written and lies
    /// there takes peers longer to fetch. 0 if that is not known. How puts are cut, and what is handed on, does not hang on
    /// it.
    #[must_use]
    pub fn with_core_cache(mut self, bytes: u64) -> Self {
        if bytes > 0 {
            self.core_cache = bytes.into();
        }
        self
    }

    /// The same fabric, on whose processors a core that reads what another has just written takes the lines over, and whose
    /// ranks each fill the slots that they have read: what caches hold passes slots faster than links say, and is read where
    /// it lies as slowly as ever. What its fingerprint says does not hang on it.
    #[must_use]
    pub fn that_hands_lines_on(mut self, hands_on: bool) -> Self {
        self.hands_on = hands_on;
        self
    }

    /// The same fabric, each of whose ranks is bound to one core: `core_of` has a number for each, alike for those that share
    /// one; it is empty where that is not so, which changes nothing. If all ranks share memory, and cores, which hand lines on,
    /// what goes from neighbour to neighbour may go core by core: there are then templates of that order, if it is not the
    /// ranks' own, and in any case of a tree that takes each core's ranks as one, if all but the last have as many. Whether
    /// they do has to be said before. What the fingerprint says does not hang on it.
    #[must_use]
    pub fn with_cores(mut self, core_of: &[u32]) -> Self {
        let is_known = core_of.len() == self.ranks as usize;
        if !(is_known && self.hands_on && self.shares_cores() && self.shares_memory()) {
            return self;
        }
        let mut first_of = BTreeMap::new();
        for (rank, core) in (0u32..).zip(core_of) {
            first_of.entry(core).or_insert(rank);
        }
        let mut ranks: Vec<u32> = (0..self.ranks).collect();
        ranks.sort_by_key(|&rank| first_of.get(&core_of[rank as usize]));
        self.near = ranks.is_sorted();
        let run = run_of(&ranks, core_of);
        if let Ok(order) = Order::new(ranks) {
            let in_runs = (run > 1).then(|| Shaped::in_runs(order.clone().in_runs(run)));
            // In the ranks' own order there are plans for neighbours without it.
            let others = (!self.near).then(|| Shaped::by_core(order));
            let shaped = self.shaped.iter().cloned();
            let shaped = shaped.chain(others.into_iter().flatten()).chain(in_runs);
            self.shaped = shaped.collect();
        }
        self
    }

    /// Whether most ranks that follow each other share a core.
    pub(super) fn has_neighbours_on_a_core(&self) -> bool {
        self.near
    }

    /// Whether all ranks map each other's memory and read it with cores of their own.
    #[must_use]
    pub fn shares_memory(&self) -> bool {
        self.shares_memory.is_ok()
    }

    /// Whether the ranks are all on one machine, with fewer cores than ranks.
    #[must_use]
    pub fn shares_cores(&self) -> bool {
        self.together && self.crowd.num > self.crowd.den
    }

    /// How ranks read each other's memory, if all can.
    #[must_use]
    pub fn reads(&self) -> Option<Reads> {
        self.reads.as_ref().ok().copied()
    }

    /// The same while all ranks work: those of a core one after the other.
    pub(super) fn crowded_reads(&self) -> Option<Reads> {
        let reads = self.reads()?;
        Some(Reads {
            call_ps: scaled(reads.call_ps, self.crowd),
            rate: reads.rate.shared(self.crowd),
            of_own_core: reads.of_own_core.shared(self.crowd),
            from_one: reads.from_one.shared(self.crowd),
            from_memory: reads.from_memory.shared(self.crowd),
            copied_from_memory: reads.copied_from_memory.shared(self.crowd),
            alone: Uncached {
                rate: reads.alone.rate.shared(self.crowd),
                ..reads.alone
            },
            added: reads.added.shared(self.crowd),
            summed: reads.summed.shared(self.crowd),
            // Once for all of a core: then its own cache has them.
            from_cache: reads.from_cache,
        })
    }

    /// What a rank reads of all others alike, of which some share its core, where they read the same.
    pub(super) fn read_of_all(&self, reads: &Reads) -> Rate {
        let others = Ratio::new(u128::from(self.ranks).saturating_sub(1), 1);
        let (here, of) = (self.crowd.num - self.crowd.den, self.crowd.den);
        let (near, all) = (here.min(others.num * of), others.num * of);
        let part = |ranks: u128| Ratio::new(READ_SAMPLE * ranks, all);
        let took = reads.of_own_core.time(part(near)) + reads.rate.time(part(all - near));
        Rate::that_takes(took, Ratio::new(READ_SAMPLE, 1))
    }

    /// How much longer than at `rate` a rank's core takes to read `bytes` from peers' buffers that are `whole` bytes long
    /// each, and which their ranks have just written: a core's cache holds all of short buffers. Of long ones the start,
    /// which is read first, is gone from it when the end has been written.
    pub(super) fn fresh_ps(&self, whole: Ratio, bytes: Ratio, rate: Rate) -> u128 {
        let over = self.on_a_core(whole).saturating_sub(self.core_cache);
        let left = self.core_cache.saturating_sub(over);
        let fresh = bytes.times(left).over(self.core_cache);
        let fetched = match self.hands_on {
            // Those that share a core fetch one after the other, as they do all else.
            true => Rate::bytes_per_second(HANDED_BYTES_PER_SECOND).shared(self.crowd),
            false => Rate::bytes_per_second(FRESH_BYTES_PER_SECOND),
        };
        let times = [fetched, rate].map(|rate| rate.time(fresh));
        times[0].saturating_sub(times[1])
    }

    /// Whole bytes that a core's ranks have together, of which each has so many.
    fn on_a_core(&self, bytes: Ratio) -> u128 {
        let all = bytes.times(self.crowd.num).over(self.crowd.den);
        all.num / all.den
    }

    /// [`fresh_ps`](Self::fresh_ps) where the system reads them; where lines are not handed on it copies those of another
    /// core's cache at `rate`, too.
    pub(super) fn fresh_read_ps(&self, whole: Ratio, bytes: Ratio, rate: Rate) -> u128 {
        match self.hands_on {
            true => self.fresh_ps(whole, bytes, rate),
            false => 0,
        }
    }

    /// What of the time that links take for a message of so many bytes it takes where its lines stay in the ranks' caches:
    /// the least as long as they hold it, all of it from twice what one holds. `handed` if it passes slots that change hands.
    pub(super) fn in_caches(&self, bytes: Ratio, handed: bool) -> Ratio {
        if !(self.hands_on && self.together && self.mesh.by_core) {
            return Ratio::new(1, 1);
        }
        let (least, (num, den)) = match handed && self.shares_cores() {
            true => (self.core_cache / 4, HANDED),
            false => (self.core_cache / 2, IN_CACHES),
        };
        let most = 2 * self.core_cache;
        let gone = self.on_a_core(bytes).clamp(least, most) - least;
        // More and more of it leaves the caches.
        Ratio::new(
            num * (most - least) + (den - num) * gone,
            den * (most - least),
        )
    }

    /// What of the time that links take it takes a ring to add up a message that no cache holds: [`ADDED_ON`] where cores
    /// hand lines on and ranks share them.
    pub(super) fn added_on(&self, bytes: Ratio) -> Ratio {
        self.of_long(bytes, ADDED_ON)
    }

    /// The same of an all_to_all by pairs: [`BY_PAIRS`].
    pub(super) fn by_pairs(&self, bytes: Ratio) -> Ratio {
        self.of_long(bytes, BY_PAIRS)
    }

    fn of_long(&self, bytes: Ratio, (num, den): (u128, u128)) -> Ratio {
        let is_long = self.on_a_core(bytes) > 2 * self.core_cache;
        match self.hands_on && self.shares_cores() && self.mesh.by_core && is_long {
            true => Ratio::new(num, den),
            false => Ratio::new(1, 1),
        }
    }

    /// Whether so many bytes of each of its ranks are more than a core's cache holds.
    pub(super) fn overflows_a_core(&self, bytes: Ratio) -> bool {
        self.on_a_core(bytes) > self.core_cache
    }

    /// What an inner rank of a tree, of the message's half that passes there, writes and reads once more, as it keeps what it
    /// has got of its first child until the second's is there: seen where cores hand lines on, by what a chain takes less. On
    /// a Xeon with AMX-FP16 the two trees of a reduce of 1 to 64 MiB took 0.95 to 1.2 times as long as the chain, with three
    /// to eight ranks on two cores (`cargo xtask peers -- --dirty --ranks 3,4,6,8 --ops reduce --sizes 1M,4M,16M,64M` with
    /// either forced). Of others nothing is known.
    pub(super) fn kept_between_children(&self, half: Ratio) -> Ratio {
        match self.hands_on && self.trees.is_filled() {
            true => half.over(2),
            false => Ratio::ZERO,
        }
    }

    /// What plans really took on this fabric, if that is known.
    #[must_use]
    pub fn measurements(&self) -> Option<&Measurements> {
        self.measured.as_deref()
    }

    /// The same fabric, known by the fingerprint of `reported`: what links report stays the name of
    /// a fabric when measured figures take its place.
    #[must_use]
    pub fn in_place_of(mut self, reported: &Fabric) -> Self {
        self.origin = Some(reported.fingerprint());
        self
    }

    /// A number that fabrics have in common if they look alike to the cost model: the same on
    /// every host and architecture. Measurements don't count, nor does what ranks tell of their caches and reads.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        if let Some(origin) = self.origin {
            return origin;
        }
        let mut hash = Fingerprint::default();
        let speeds = &self.speeds;
        hash.add(u64::from(self.ranks));
        hash.add(speeds.message_ps);
        hash.add(speeds.switch_ps);
        for rate in [speeds.reduce, speeds.copy, speeds.port] {
            hash.add(rate.get().unwrap_or(0));
        }
        let patterns = [
            self.mesh,
            self.ring_up,
            self.ring_down,
            self.fold,
            self.trees,
        ];
        let lists = [
            &self.shifts,
            &self.shifts_down,
            &self.exchanges,
            &self.halvings,
        ];
        let rounds = self.rounds.iter().map(|(pattern, _)| pattern);
        let all = (patterns.iter()).chain(lists.into_iter().flatten());
        for pattern in all.chain(rounds) {
            hash.add(pattern.alpha_ps as u64);
            hash.add(pattern.rate.get().unwrap_or(0));
            hash.add(u64::from(pattern.by_core));
            hash.add(pattern.exit.messages);
            hash.add(pattern.exit.rate.get().unwrap_or(0));
            if pattern.message_ps > 0 {
                hash.add(pattern.message_ps as u64);
            }
            // Fabrics without ports keep the names under which they were measured.
            if let Some(rate) = pattern.port.rate.get() {
                hash.add(pattern.port.messages);
                hash.add(pattern.port.of);
                hash.add(rate);
            }
        }
        hash.0
    }
}

/// What of a message a core's cache does not hold: who hands it on fetches it from memory again.
pub(super) fn beyond_cache(bytes: Ratio) -> Ratio {
    let held = CORE_CACHE * bytes.den;
    Ratio::new(bytes.num.saturating_sub(held), bytes.den)
}

/// What of each rank's `bytes` is in no cache of the machine, where so many ranks have as much.
pub(super) fn in_memory(bytes: Ratio, ranks: u32) -> Ratio {
    beyond(SHARED_CACHE, bytes, ranks)
}

/// The same where caches hold so many bytes of all ranks' together.
fn beyond(held: u128, bytes: Ratio, ranks: u32) -> Ratio {
    let ranks = u128::from(ranks);
    let all = bytes.times(ranks);
    let held = held * all.den;
    Ratio::new(all.num.saturating_sub(held), all.den * ranks)
}

/// Whether messages of so many bytes of each of a machine's `ranks` ranks are more than its caches hold together: 16 MiB, as
/// costs are counted, whatever the machine has. Any thread.
#[must_use]
pub fn exceeds_caches(bytes: u64, ranks: u32) -> bool {
    u128::from(bytes) * u128::from(ranks) > SHARED_CACHE
}

/// What a core's cache holds, for each put that its ranks have under way if all send to all.
fn cached_put(node_of: &[u32], nodes: usize, crowd: Ratio) -> u64 {
    let mut ranks = vec![0u64; nodes];
    node_of.iter().for_each(|&node| ranks[node as usize] += 1);
    let together = ranks.into_iter().max().unwrap_or(0);
    let puts = crowd.times(together.saturating_sub(1).max(1).into());
    let bytes = CORE_CACHE * puts.den / puts.num;
    u64::try_from(bytes).map_or(u64::MAX, |bytes| bytes.max(SMALL_PUT))
}

/// FNV-1a over 64-bit words: stable, and collisions only cost a worse choice.
struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// How many of `ranks` that follow each other share a core, if all cores but the last have so many; 1 if not, or if that
/// makes no tree, as only the first has several.
fn run_of(ranks: &[u32], core_of: &[u32]) -> u32 {
    let core = |rank: &u32| core_of[*rank as usize];
    let runs = ranks.chunk_by(|a, b| core(a) == core(b));
    let mut lengths: Vec<u32> = runs.map(|run| run.len() as u32).collect();
    let last = lengths.pop().unwrap_or(1);
    match lengths.first() {
        Some(&first)
            if lengths.iter().all(|&length| length == first)
                && last <= first
                && lengths.len() as u32 + last > 2 =>
        {
            first
        }
        _ => 1,
    }
}
