//! What all handles of one communicator share, and how failures reach it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use unisono_bootstrap::{Directory, Event, Tag, Wait};
use unisono_plan::cost::Fabric;
use unisono_plan::select::Overrides;

use super::fetched::Fetches;
use super::let_go::LetGo;
use super::linked;
use super::plans::Plans;
use super::refused::Refused;
use super::stopped::Stopped;
use super::support::Support;
use super::wire;
use crate::error::{Error, Mismatch, RankStatus, Result, Timeout};
use crate::execute::{Asides, Lane, OnFailure, Windows, is_abort};
use crate::progress::{Policy, Watch};
use crate::signature::{Call, CallKind};
use crate::world::World;

/// Tags of a communicator's own exchanges; those above are numbered.
const STATUS: u64 = 0;
const FIRST_EXCHANGE: u64 = 16;
const SHRINKS: u64 = 1 << 62;

/// How often deadlines of calls that nobody waits for are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How often, while this rank's queues are to become quiet after a failure.
const SOON: Duration = Duration::from_millis(1);

/// How long closing waits for links to send what they hold.
const FLUSH: Duration = Duration::from_secs(5);

/// How long ranks may take to tell what they are doing once a deadline has passed.
const TELL: Duration = Duration::from_millis(500);

pub(crate) struct Shared {
    /// The same on all ranks, unique in the job.
    pub id: u64,
    pub name: String,
    pub rank: u32,
    /// Ranks of the job, by rank of the communicator.
    pub members: Vec<u32>,
    pub world: Arc<World>,
    pub lane: Arc<Lane>,
    pub fabric: Fabric,
    /// What the user forces in this communicator.
    pub overrides: Overrides,
    pub plans: Plans,
    pub windows: Arc<Windows>,
    pub asides: Asides,
    /// Who has let go of windows since a failure.
    let_go: LetGo,
    stopped: Stopped,
    /// By rank: whether its memory is mapped here.
    mapped: Vec<bool>,
    pub policy: Policy,
    pub slot_bytes: u64,
    /// By rank: what its device can compute.
    pub(super) supports: Vec<Support>,
    /// Pairs that go another way than the graph says.
    pub(super) refused: Refused,
    /// Why its calls cannot be recorded into graphs, the same on all ranks.
    pub(super) unrecorded: Option<String>,
    /// Whether the device of each rank is its CPU.
    pub(super) all_cpus: bool,
    /// Whether the CPU sees what peers tell in their signals, and may act on it: on all ranks.
    pub(super) tells: bool,
    /// What receivers fetch.
    pub(super) fetches: Fetches,
    /// By rank: where links find its bytes.
    pub(super) linked: Vec<linked::Told>,
    pub generation: u32,
    exchanges: AtomicU64,
    shrinks: AtomicU64,
    children: AtomicU64,
    telling: Mutex<Option<Telling>>,
}

/// A deadline has passed: what the ranks say that they are doing.
struct Telling {
    until: Instant,
    after: Duration,
    ranks: BTreeMap<u32, Told>,
}

/// What one rank says.
#[derive(Clone)]
pub(super) struct Told {
    status: RankStatus,
    /// The collective of the number that was asked about.
    called: Option<Call>,
}

impl Shared {
    #[allow(
        clippy::too_many_arguments,
        reason = "called once, by the code that forms communicators"
    )]
    pub(super) fn new(
        id: u64,
        name: String,
        members: Vec<u32>,
        world: Arc<World>,
        lane: Arc<Lane>,
        fabric: Fabric,
        policy: Policy,
        slot_bytes: u64,
        exchanges: u64,
        mapped: Vec<bool>,
        supports: Vec<Support>,
        refused: Refused,
        unrecorded: Option<String>,
        fetches: Fetches,
        linked: Vec<linked::Told>,
    ) -> Arc<Self> {
        let position = members.iter().position(|m| *m == world.rank);
        let let_go = LetGo::new(lane.lock().fetching());
        let stopped = Stopped::new(&world.graph, &members, lane.lock().sharing());
        let asides = Asides::new(world.options.memory.budget);
        let windows = lane.lock().windows().clone();
        let all_cpus = members.iter().all(|member| world.is_cpu(*member));
        // A recorded call has no work of the host's.
        let tells = unrecorded.is_some() && all_cpus;
        let shared = Arc::new(Self {
            id,
            rank: position.unwrap_or(0) as u32,
            overrides: world.options.rules.find(&name, members.len() as u32),
            members,
            world,
            lane,
            fabric,
            plans: Plans::default(),
            windows,
            asides,
            let_go,
            stopped,
            mapped,
            policy,
            name,
            slot_bytes,
            supports,
            refused,
            unrecorded,
            all_cpus,
            tells,
            fetches,
            linked,
            generation: crate::fork::generation(),
            exchanges: AtomicU64::new(exchanges),
            shrinks: AtomicU64::new(0),
            children: AtomicU64::new(0),
            telling: Mutex::new(None),
        });
        shared
            .lane
            .set_on_failure(Box::new(Tell(Arc::downgrade(&shared))));
        shared.world.add(&shared);
        shared
    }

    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// The ranks of this one's machine, with itself.
    pub(crate) fn neighbours(&self) -> u32 {
        let node = |member: u32| self.world.graph.node_of_rank(member);
        let own = node(self.world.rank);
        let here = self.members.iter().filter(|member| node(**member) == own);
        here.count() as u32
    }

    /// Fails at once if a member is known to be dead already.
    pub(crate) fn check_dead(&self, dead: &[u32]) {
        if let Some(rank) = dead.iter().find_map(|member| self.rank_of(*member)) {
            self.lane.fail(Error::RankDied {
                rank,
                reason: "it had died before the communicator was formed".to_owned(),
                call: None,
            });
        }
    }

    /// Whether a peer's memory can be mapped here.
    pub(super) fn is_mapped(&self, rank: u32) -> bool {
        self.mapped.get(rank as usize).copied().unwrap_or(false)
    }

    /// The next number for a collective exchange over the control channel.
    pub(super) fn tag(&self) -> Tag {
        first_exchange(self.id, self.exchanges.fetch_add(1, Ordering::Relaxed))
    }

    /// The tag of the next shrink: apart from exchanges, whose numbers may differ after a death.
    pub(super) fn shrink_tag(&self) -> Tag {
        Tag {
            communicator: self.id,
            sequence: SHRINKS | self.shrinks.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Ends the communicator on this rank, once its links have sent what peers still need. False in
    /// a forked child, which must touch nothing.
    pub(super) fn close(&self) -> bool {
        if !crate::fork::is(self.generation) {
            return false;
        }
        self.flush(FLUSH);
        // Who fails later need not wait for this rank.
        self.let_go.tell(self, &self.lane.lock());
        crate::execute::sweep();
        let failed = self.lane.failure().is_some();
        let lingering = match failed {
            true => self.let_go.lingering(self),
            false => Vec::new(),
        };
        let unheard = !lingering.is_empty();
        if unheard {
            log::warn!(
                "communicator {:?}, rank {}: ranks {lingering:?} did not say after the failure that they let go of this \
                 rank's memory: it is kept until the process ends",
                self.name,
                self.rank
            );
        }
        if !failed || unheard {
            self.lane.lock().leave_memory(unheard);
        }
        self.lane.end_links();
        self.world.control.forget(self.id);
        true
    }

    /// Gives the links what peers still need, at most for `limit`, and for no longer than a close takes:
    /// a peer that has all it needs looks at its links no more.
    pub(super) fn flush(&self, limit: Duration) {
        if self.lane.failure().is_none() {
            self.lane.flush(limit.min(FLUSH));
        }
    }

    /// Gives every rank the bytes of all.
    pub(super) fn exchange(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.exchange_within(bytes, &Wait::at_most(self.world.options.timeouts.init))
    }

    pub(super) fn exchange_within(&self, bytes: &[u8], wait: &Wait) -> Result<Vec<Vec<u8>>> {
        let control = &self.world.control;
        Ok(control.all_gather(&self.members, self.tag(), bytes, wait)?)
    }

    /// An id for the next communicator made from this one; `salt` tells apart those made at once.
    pub(super) fn child_id(&self, salt: u64) -> u64 {
        let n = self.children.fetch_add(1, Ordering::Relaxed) + 1;
        mix(mix(self.id ^ n.rotate_left(32)) ^ salt)
    }

    fn rank_of(&self, member: u32) -> Option<u32> {
        let position = self.members.iter().position(|m| *m == member)?;
        Some(position as u32)
    }

    fn call(&self) -> Option<crate::signature::Call> {
        self.lane.try_lock().and_then(|state| state.current_call())
    }

    /// News from the control channel.
    pub(crate) fn handle(&self, event: &Event) {
        self.take_in(event);
        if self.lane.failure().is_some() {
            self.stopped.advance(self);
        }
    }

    fn take_in(&self, event: &Event) {
        match event {
            Event::Dead { rank, reason, .. } => {
                if let Some(rank) = self.rank_of(*rank) {
                    self.lane.fail(Error::RankDied {
                        rank,
                        reason: reason.clone(),
                        call: self.call(),
                    });
                }
            }
            Event::Abort {
                origin,
                communicator,
                text,
                ..
            } if *communicator == self.id || *communicator == 0 => {
                self.lane.fail(Error::Aborted {
                    by: self.rank_of(*origin).unwrap_or(*origin),
                    why: text.clone(),
                    call: self.call(),
                });
            }
            Event::Mismatch {
                communicator,
                bytes,
                ..
            } if *communicator == self.id => {
                if let Some(mismatch) = wire::decode_mismatch(bytes) {
                    self.lane.fail(Error::Mismatch(mismatch));
                }
            }
            Event::Broadcast { tag, bytes, .. }
                if tag.communicator == self.id && tag.sequence == STATUS =>
            {
                let Some(told) = wire::Telling::decode(bytes) else {
                    return;
                };
                let from = Told {
                    status: told.status,
                    called: told.called,
                };
                self.tell(told.after, told.about, Some(from));
            }
            Event::Broadcast { tag, bytes, .. } if *tag == self.recorded_tag() => {
                self.hear_recorded(bytes);
            }
            _ => {}
        }
    }

    /// Looks at deadlines, or after a failure at what is left; how soon to look again.
    pub(crate) fn look(&self, now: Instant) -> Option<Duration> {
        if self.lane.failure().is_some() {
            let is_waiting = self.stopped.advance(self);
            let replays = self.wind_down_replays(SOON, LOOK);
            return if self.wind_down() || is_waiting {
                Some(SOON)
            } else {
                replays
            };
        }
        let replays = self.look_at_replays(now);
        let calls = (self.look_at_calls(now) || replays).then_some(LOOK);
        self.lane.look_at_answers().or(calls)
    }

    /// After a failure: ends what is under way and tells the peers once it has ended. True while it
    /// has not.
    fn wind_down(&self) -> bool {
        if !self.let_go.is_due(self) {
            return false;
        }
        let Some(mut state) = self.lane.try_lock() else {
            return true;
        };
        self.lane.advance(&mut state);
        !self.let_go.tell(self, &state)
    }

    fn look_at_calls(&self, now: Instant) -> bool {
        if self.telling().is_some() {
            self.conclude(now);
            return true;
        }
        if self.lane.look_at_suspicion(now) {
            return true;
        }
        let overdue = match self.lane.try_lock() {
            None => return true,
            Some(mut state) if state.is_held() => {
                // Its time begins anew once the stream has come to it.
                if let Some(op) = state.current() {
                    op.started = None;
                }
                return true;
            }
            Some(mut state) => {
                let Some(op) = state.current() else {
                    return false;
                };
                let started = *op.started.get_or_insert(now);
                let passed = now.saturating_duration_since(started) >= op.deadline;
                let overdue = passed.then_some((op.deadline, op.call.sequence));
                if self.lane.look_elsewhere(&mut state, started, now) {
                    return true;
                }
                overdue
            }
        };
        if let Some((deadline, about)) = overdue {
            self.tell(deadline, about, None);
        }
        true
    }

    /// Begins to gather what the ranks are doing, and what they called as their collective number
    /// `about`; tells them the same of this one.
    pub(super) fn tell(&self, after: Duration, about: u32, from: Option<Told>) {
        if let Some(error) = self.lane.failure() {
            // Who asks may have missed why.
            self.announce(error);
            return;
        }
        let own = {
            let state = self.lane.lock();
            Told {
                status: state.status(self.lane.completed()),
                called: state.called(about),
            }
        };
        self.tell_of(own, after, about, from);
    }

    fn tell_of(&self, own: Told, after: Duration, about: u32, from: Option<Told>) {
        let mut telling = self.telling();
        let begun = telling.is_some();
        let now = Instant::now();
        let gathered = telling.get_or_insert_with(|| Telling {
            until: now + TELL,
            after,
            ranks: BTreeMap::new(),
        });
        gathered.ranks.entry(own.status.rank).or_insert(own.clone());
        if let Some(told) = from {
            gathered.ranks.insert(told.status.rank, told);
        }
        drop(telling);
        if !begun {
            let bytes = wire::Telling {
                after,
                about,
                status: own.status,
                called: own.called,
            }
            .encode();
            let tag = Tag {
                communicator: self.id,
                sequence: STATUS,
            };
            if let Err(error) = self.world.control.broadcast(tag, &bytes) {
                log::warn!("telling the others what this rank does: {error}");
            }
        }
        crate::progress::progress().kick();
    }

    /// Once all ranks have told, or have had the time to: fail.
    fn conclude(&self, now: Instant) {
        let mut telling = self.telling();
        let Some(gathered) = telling.as_ref() else {
            return;
        };
        if gathered.ranks.len() < self.members.len() && now < gathered.until {
            return;
        }
        let Some(gathered) = telling.take() else {
            return;
        };
        drop(telling);
        if let Some(mismatch) = gathered.mismatch() {
            self.lane.fail(Error::Mismatch(mismatch));
            return;
        }
        // A peer that has concluded already aborts its links: that is no cause of its own.
        let suspicion = self.lane.take_suspicion();
        if let Some(error) = suspicion.filter(|error| !is_abort(error)) {
            self.end_with(error);
            return;
        }
        let silent = (0..self.size())
            .filter(|rank| !gathered.ranks.contains_key(rank))
            .collect();
        self.lane.fail(Error::Timeout(Arc::new(Timeout {
            after: gathered.after,
            ranks: gathered
                .ranks
                .into_values()
                .map(|told| told.status)
                .collect(),
            silent,
        })));
    }

    /// Ends the communicator on all ranks for what has failed on this one. Returns what it keeps, which is what the caller is
    /// to be told: a peer may have ended it before, and each later call gives that error.
    pub(crate) fn end_with(&self, error: Error) -> Error {
        if self.lane.fail(error.clone()) {
            self.announce(&error);
            return error;
        }
        let kept = self
            .lane
            .failure()
            .cloned()
            .unwrap_or_else(|| error.clone());
        if kept.to_string() != error.to_string() {
            log::warn!(
                "communicator {:?}, rank {}: {error}; it had failed already: {kept}",
                self.name,
                self.rank
            );
        }
        kept
    }

    /// Tells the other ranks why this one's lane has failed.
    pub(crate) fn announce(&self, error: &Error) {
        let control = &self.world.control;
        let told = match error {
            Error::Mismatch(mismatch) => {
                control.mismatch(self.id, &wire::encode_mismatch(mismatch))
            }
            other => control.abort(self.id, -1, &other.to_string()),
        };
        if let Err(error) = told {
            log::warn!("telling the others of a failure: {error}");
        }
    }

    fn telling(&self) -> std::sync::MutexGuard<'_, Option<Telling>> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Telling {
    /// The first two ranks that called different things as the collective that was asked about, or, if they remember that
    /// no more, that are in different ones of one number.
    fn mismatch(&self) -> Option<Mismatch> {
        let called = (self.ranks.iter()).filter_map(|(rank, told)| Some((*rank, told.called?)));
        let current =
            (self.ranks.iter()).filter_map(|(rank, told)| Some((*rank, told.status.call?)));
        let is_collective = |(_, call): &(u32, Call)| call.kind != CallKind::SendRecv;
        different(called).or_else(|| different(current.filter(is_collective)))
    }
}

/// The first rank and the next that called something else as the collective of the same number.
fn different(mut calls: impl Iterator<Item = (u32, Call)>) -> Option<Mismatch> {
    let (rank, ours) = calls.next()?;
    let is_other = |call: &Call| call.sequence == ours.sequence && *call != ours;
    let (peer, theirs) = calls.find(|(_, call)| is_other(call))?;
    Some(Mismatch {
        rank,
        ours,
        peer,
        theirs,
    })
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !crate::fork::is(self.generation) {
            // A forked child's links are its parent's too: closing one here would end it there.
            std::mem::forget(self.lane.clone());
            std::mem::forget(self.world.clone());
        } else {
            self.world.forget(self.id);
            self.lane.orphan();
            // What its links have still to send goes out, or fails in time.
            crate::progress::progress().activate(&self.lane);
        }
    }
}

impl Watch for Shared {
    fn look(&self, now: Instant) {
        Self::look(self, now);
    }

    fn lingering(&self) -> Vec<u32> {
        self.let_go.tell(self, &self.lane.lock());
        self.let_go.lingering(self)
    }
}

/// Tells the other ranks when the lane fails by itself.
struct Tell(Weak<Shared>);

impl OnFailure for Tell {
    fn failed(&self, error: &Error) {
        if let Some(shared) = self.0.upgrade() {
            shared.announce(error);
        }
    }

    fn suspects(&self, error: &Error) -> bool {
        let Some(shared) = self.0.upgrade() else {
            return false;
        };
        if let Error::Mismatch(mismatch) = error {
            // One of the two is ahead; what it called before, others will tell.
            let about = mismatch.ours.sequence.min(mismatch.theirs.sequence);
            let called = (mismatch.ours.sequence == about).then_some(mismatch.ours);
            let own = Told {
                status: RankStatus {
                    rank: shared.rank,
                    call: Some(mismatch.ours),
                    finished: shared.lane.completed(),
                    waits_for: None,
                },
                called,
            };
            shared.tell_of(own, shared.world.options.timeouts.op, about, None);
        }
        true
    }
}

/// The id of a job's first communicator, from which those of all others follow. No other job has
/// it, since each rank makes a new key when it joins: a process may be in several jobs, whose links
/// share a port.
pub(super) fn first_id(table: &Directory) -> u64 {
    let keys = table
        .entries()
        .iter()
        .flat_map(|entry| entry.public_key.as_chunks().0);
    keys.fold(0, |id, key| mix(id ^ u64::from_le_bytes(*key)))
}

/// The tag of a communicator's n-th exchange.
pub(super) fn first_exchange(communicator: u64, number: u64) -> Tag {
    Tag {
        communicator,
        sequence: FIRST_EXCHANGE + number,
    }
}

/// SplitMix64's finaliser (Steele, Lea and Flood, 2014): spreads ids over 64 bits.
pub(super) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    // 0 means "all communicators" on the control channel.
    (x ^ (x >> 31)).max(1)
}
