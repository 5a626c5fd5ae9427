//! What a lane's lock guards: the tracks, the links, and what was called.

mod elsewhere;
mod ending;

use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_hal::{Device, Queue, Recording, Stream};
use unisono_plan::Op as PlanOp;

use super::calls::Calls;
use super::common::Common;
use super::group::{Beside, Messages};
use super::holdings::{Bells, Holdings};
use super::mark::{Gate, Mark};
use super::op::Op;
use super::peer::{Ended, Own, Peer, Posted, Way};
use super::pointed::LONG_HANDED_MESSAGE;
use super::recorded::Recorded;
use super::repeat::Repeats;
use super::track::{BUDGET, Fed, Track};
use super::windows::Windows;
use crate::error::{Error, Mismatch, RankStatus, Result};
use crate::progress::Lag;
use crate::signature::{Call, CallKind};
pub(crate) use ending::HEARD;

/// So many commands of answers are sent by a rank that waits in any case.
const MANY: usize = 20;

/// In a short call, every so many polls all links are looked at.
const GLANCE: u32 = 16;

/// How long the news that explains a suspicious error may take to arrive.
pub(super) const GRACE: Duration = Duration::from_secs(1);

pub(crate) struct State {
    pub(super) common: Common,
    pub(super) main: Track,
    beside: Beside,
    /// Polls of the links so far.
    polls: u32,
    /// Ops and groups of messages that the main track and those beside it have completed.
    completed: u64,
    pub(super) calls: Calls,
    pub(super) repeats: Repeats,
    pub(super) lag: Lag,
    /// Where streams of the user's and this lane wait for each other.
    gates: Vec<Arc<Gate>>,
    /// Calls that the program recorded, once there are any.
    pub(super) recorded: Option<Box<Recorded>>,
    /// After a failure: until when the waits are held at most.
    held: Option<Instant>,
    /// When it was last looked whether a peer has called something else.
    looked_elsewhere: Option<Instant>,
    /// Freed after the streams and the links.
    holdings: Holdings,
}

impl State {
    pub(super) fn new(
        own: Own,
        peers: Vec<Peer>,
        device: Device,
        stream: Stream,
        holdings: Holdings,
    ) -> Self {
        let common = Common::new(own, peers, device);
        Self {
            main: Track::main(stream, &common.device),
            common,
            beside: Beside::default(),
            polls: 0,
            completed: 0,
            calls: Calls::default(),
            repeats: Repeats::default(),
            lag: Lag::default(),
            gates: Vec::new(),
            recorded: None,
            held: None,
            looked_elsewhere: None,
            holdings,
        }
    }

    /// The communicator's windows.
    pub(crate) fn windows(&self) -> &Arc<Windows> {
        &self.common.windows
    }

    /// Whether what is sent to a rank may lie in a window.
    pub(crate) fn may_point(&self, to: u32) -> bool {
        self.common
            .peers
            .get(to as usize)
            .is_some_and(Peer::may_point)
    }

    /// Whether the next message of so many bytes to a rank should lie in a window.
    pub(crate) fn should_point(&mut self, to: u32, bytes: u64) -> bool {
        let common = &mut self.common;
        let is_handed = common.own.swaps && bytes < LONG_HANDED_MESSAGE;
        let peer = common.peers.get_mut(to as usize).filter(|_| !is_handed);
        peer.is_some_and(|peer| peer.may_point() && peer.should_point(bytes))
    }

    /// Appends an op.
    pub(super) fn push(&mut self, op: Op) {
        self.calls.remember(self.common.own.rank, op.words);
        let behind = self.beside.behind();
        behind.unwrap_or(&mut self.main.queue).push_back(op);
    }

    /// Whether a call may run at once: nothing is before it.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.beside.is_idle() && self.main.is_idle()
    }

    /// A call that no track knows of is complete; the number of all that are.
    #[inline]
    pub(super) fn complete(&mut self) -> u64 {
        self.completed += 1;
        self.completed
    }

    /// Whether waits are owed, or may be once what is called has run.
    pub(crate) fn may_owe(&self) -> bool {
        self.common.owed.count > 0 || !self.is_free()
    }

    /// Whether no link is to bring what is owed; takes what it has brought. For an idle lane.
    pub(super) fn is_even(&mut self) -> bool {
        !self.is_free() || self.common.is_even()
    }

    /// Appends messages that run beside each other.
    pub(super) fn push_messages(&mut self, ops: Vec<Op>) {
        let (rank, ranks) = (self.common.own.rank, self.common.peers.len() as u32);
        let messages = Messages::new(ops, rank, ranks);
        self.beside.waiting.push_back(messages);
    }

    /// A failure of the lane will release this gate too.
    pub(crate) fn add_gate(&mut self, gate: &Arc<Gate>) {
        // Those that no stream and no op holds any more.
        self.gates.retain(|gate| Arc::strong_count(gate) > 1);
        self.gates.push(gate.clone());
    }

    /// Whether the oldest op waits for a stream of the user's: its time has not begun.
    pub(crate) fn is_held(&self) -> bool {
        !self.beside.running && self.main.is_held()
    }

    /// Whether the stream has taken all that was called.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.main.is_handed_over() && self.beside.is_idle()
    }

    /// Whether recordings of events, or waits for such, are among what the stream has not taken.
    pub(crate) fn has_events(&self) -> bool {
        let ops = self.main.queue.iter().chain(&self.beside.then);
        let mut marks = ops.flat_map(|op| op.before.iter().chain(&op.after));
        marks.any(|mark| matches!(mark, Mark::Record(_) | Mark::WaitEvent(_)))
    }

    /// The recording for replay into which what is put on the main stream goes; none if it runs.
    pub(crate) fn recording(&mut self) -> Option<Recording> {
        self.main.stream.capturing()
    }

    /// The vendor's handle of the main stream, 0 if there is none.
    pub(crate) fn native(&mut self) -> u64 {
        self.main.stream.native()
    }

    /// Bytes of memory that this rank owns for the lane.
    pub(super) fn held_bytes(&self) -> u64 {
        self.holdings.arena_bytes + self.common.scratch_bytes()
    }

    /// The number of this rank's next call, which it is about to make.
    pub(crate) fn next_sequence(&mut self, op: PlanOp) -> u32 {
        self.calls.next(op, &mut self.common.peers)
    }

    /// Before a thread sleeps until a queue can go on: a run that no queue knows of is given to one.
    /// False if it could not be.
    pub(crate) fn hand_over(&mut self) -> bool {
        let goes_on = self.main.goes_on() || self.beside.tracks.iter().any(Track::goes_on);
        !goes_on && self.main.hand_over(&mut self.common).is_ok()
    }

    /// Whether a direct run left a posted link something to do.
    fn take_unsent(&mut self) -> bool {
        std::mem::take(&mut self.common.unsent)
    }

    /// After a direct run: whether the posted links are to be driven on. Where calls come quickly the next one does that;
    /// if none comes, then the thread that looks for what is held back.
    #[inline]
    pub(crate) fn must_go_on(&mut self) -> bool {
        self.common.unsent && !self.common.answers.is_quick() && self.take_unsent()
    }

    /// As [`must_go_on`](Self::must_go_on), after a call that was waited for with all links driven.
    pub(crate) fn must_go_on_behind(&mut self) -> bool {
        let is_busy = self.is_busy();
        self.common.unsent = is_busy && self.is_free();
        match self.common.unsent {
            true => self.must_go_on(),
            false => is_busy,
        }
    }

    /// Whether a direct run has left something for later: answers that are held back, or what links have still to send.
    #[inline]
    pub(crate) fn leaves_something(&self) -> bool {
        self.common.answers.held || self.common.unsent
    }

    /// If no call has begun since this was last asked, sends the answers that are held back. Whether the links are to be
    /// driven on, and how soon to ask again, if at all.
    pub(crate) fn look_at_answers(&mut self) -> (bool, Option<Duration>) {
        let Common {
            answers, number, ..
        } = &mut self.common;
        let is_left_alone = answers.is_left_alone(*number);
        let held = answers.held;
        if held && is_left_alone && self.common.send_answers() {
            self.common.answers.in_vain();
        }
        let goes_on = is_left_alone && self.take_unsent();
        // While calls come, more will be held: they need not wake the thread that looks.
        let again = (held || !is_left_alone).then(|| self.common.answers.look_after());
        (goes_on, again)
    }

    /// Sends the answers that are held back.
    pub(super) fn send_answers(&mut self) {
        if self.common.answers.held {
            self.common.send_answers();
        }
    }

    /// Whether its thread is to let go of something before it waits elsewhere: puts that may be held back, or what links
    /// have still to send.
    #[inline]
    pub(crate) fn is_to_let_go(&self) -> bool {
        self.common.answers.puts || self.common.unsent
    }

    /// Before a call of another lane waits: sends the puts that are held back, and what lies with them. True if a link is to
    /// be driven on.
    pub(super) fn send_held_puts(&mut self) -> bool {
        if !self.common.answers.puts {
            return self.take_unsent();
        }
        let held = self.common.peers.iter().map(|peer| match &peer.way {
            Way::Posted(posted) => posted.puts_held,
            Way::Own | Way::Mapped { .. } => 0,
        });
        let most = held.max().unwrap_or(0);
        self.common.send_answers();
        // Some that went together were worth it.
        if most == 1 {
            self.common.answers.held_puts_in_vain();
        }
        self.take_unsent()
    }

    /// Nothing queued, nothing in flight, nothing held back, links quiet.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_at_rest(|posted| posted.batch.is_empty())
    }

    /// Whether somebody must drive it: there is work, or a link has something to do. Answers that are held back are looked
    /// for from time to time ([`Lane::watch_answers`](super::Lane::watch_answers)).
    pub(crate) fn is_busy(&self) -> bool {
        !self.is_at_rest(|posted| posted.batch.is_empty() || posted.holds_answers)
    }

    fn is_at_rest(&self, has_sent: impl Fn(&Posted) -> bool) -> bool {
        self.is_free()
            && self.common.peers.iter().all(|peer| match &peer.way {
                Way::Posted(posted) => {
                    posted.ended.is_some() || (has_sent(posted) && is_quiet(&posted.link))
                }
                Way::Own | Way::Mapped { .. } => true,
            })
    }

    /// The tracks, the one that has the oldest work first.
    fn tracks(&self) -> impl Iterator<Item = &Track> {
        let beside = self.beside.tracks.iter();
        let (before, after) = match self.beside.running {
            true => (Some(beside), None),
            false => (None, Some(beside)),
        };
        let before = before.into_iter().flatten();
        before
            .chain(std::iter::once(&self.main))
            .chain(after.into_iter().flatten())
    }

    /// The oldest op that is not complete.
    pub(crate) fn current(&mut self) -> Option<&mut Op> {
        let beside = self.beside.tracks.iter_mut();
        beside
            .chain(std::iter::once(&mut self.main))
            .find_map(Track::current_mut)
    }

    pub(crate) fn current_call(&self) -> Option<Call> {
        self.tracks().find_map(Track::call)
    }

    /// The collective of this number, if this rank has called it and remembers.
    pub(crate) fn called(&self, sequence: u32) -> Option<Call> {
        self.calls.find(sequence)
    }

    /// What this rank is doing, for an error.
    pub(crate) fn status(&self, finished: u64) -> RankStatus {
        let busy = self.tracks().find(|track| !track.is_idle());
        let call = busy.and_then(Track::call);
        let waits = busy.and_then(|track| {
            let mut waiting = track.waiting.iter();
            waiting.find(|w| w.command >= track.finished)
        });
        let rank = self.common.own.rank;
        if call.is_none()
            && let Some((call, peer)) = self.recorded.as_ref().and_then(|all| all.waits_for())
        {
            return RankStatus {
                rank,
                call: Some(call),
                finished,
                waits_for: Some((peer, None)),
            };
        }
        RankStatus {
            rank,
            call,
            finished,
            waits_for: match self.is_held() {
                true => Some((rank, None)),
                false => call.and(waits).map(|w| (w.peer, w.step)),
            },
        }
    }

    pub(crate) fn queues(&mut self) -> impl Iterator<Item = &mut dyn Queue> {
        let links = self
            .common
            .peers
            .iter_mut()
            .filter_map(|peer| match &mut peer.way {
                // One that its peer has ended has no more to say.
                Way::Posted(posted) if posted.ended.is_some() => None,
                Way::Posted(posted) => Some(&mut posted.link as &mut dyn Queue),
                Way::Own | Way::Mapped { .. } => None,
            });
        let beside = self.beside.tracks.iter_mut();
        std::iter::once(&mut self.main)
            .chain(beside)
            .map(|track| &mut track.stream as &mut dyn Queue)
            .chain(links)
    }

    /// Makes what progress is possible now; true if there was any.
    pub(super) fn advance(&mut self) -> Result<bool> {
        let mut moved = if self.beside.is_idle() {
            false
        } else {
            self.advance_beside()?
        };
        if !self.beside.running {
            let bells = self.holdings.bells.as_ref();
            let advanced = advance(&mut self.main, &mut self.common, bells);
            moved |= advanced.map_err(|error| self.of_one_number(error))?;
        }
        if self.common.posted {
            // What direct runs have held back too. Who drives the lane asks whether it is idle.
            self.common.unsent = false;
            moved |= submit_links(&mut self.common, self.main.awaited_directly())?;
            moved |= self.poll_links()?;
            self.check_ended()?;
        }
        Ok(moved)
    }

    /// A peer's call is compared with a later one of this rank's where the wait for it was owed: told
    /// is then what this rank called when the peer called that.
    #[cold]
    fn of_one_number(&self, error: Error) -> Error {
        match error {
            Error::Mismatch(mismatch)
                if mismatch.theirs.kind != CallKind::SendRecv
                    && mismatch.theirs.sequence != mismatch.ours.sequence =>
            {
                let called = self.called(mismatch.theirs.sequence);
                let ours = called.filter(|called| *called != mismatch.theirs);
                Error::Mismatch(Mismatch {
                    ours: ours.unwrap_or(mismatch.ours),
                    ..mismatch
                })
            }
            other => other,
        }
    }

    /// Groups of messages run when all before them is complete, and before all after them.
    #[cold]
    fn advance_beside(&mut self) -> Result<bool> {
        if !self.beside.running {
            if !self.main.is_idle() {
                return Ok(false);
            }
            self.beside.begin(&self.common.device)?;
        }
        let mut moved = false;
        for track in &mut self.beside.tracks {
            moved |= advance(track, &mut self.common, self.holdings.bells.as_ref())?;
            track.post(&mut self.common);
            track.retire(self.common.own.rank)?;
        }
        if self.common.posted {
            moved |= submit_all(&mut self.common)?;
        }
        if self.beside.turn(&self.common.device)? {
            self.completed += 1;
            self.main.queue.append(&mut self.beside.then);
        }
        Ok(moved)
    }

    /// Takes out what is complete; the number of all ops and groups that were so far.
    pub(super) fn retire(&mut self) -> Result<u64> {
        if !self.main.flight.is_empty() {
            let count = self.main.retire(self.common.own.rank)?;
            self.completed += count;
            if count > 0 && self.main.flight.is_empty() {
                self.common.outgrown.clear();
            }
        }
        Ok(self.completed)
    }

    /// Makes the links go on. A short call waits for one peer at a time: the links of others, if they have nothing to
    /// send, are looked at now and then, as each look is a call of the operating system. What they bring stays there
    /// until it is waited for.
    fn poll_links(&mut self) -> Result<bool> {
        self.polls = self.polls.wrapping_add(1);
        let awaited = match self.polls.is_multiple_of(GLANCE) {
            true => None,
            false => self.main.awaited_directly(),
        };
        drive_links(&mut self.common, self.main.call(), |rank, posted| {
            if awaited.is_some_and(|awaited| awaited != rank) && is_quiet(&posted.link) {
                return Ok(false);
            }
            Ok(posted.link.poll(BUDGET)?.moved)
        })
    }

    /// A call that still waits for a peer that has ended its link will not complete.
    fn check_ended(&self) -> Result<()> {
        for track in self.tracks() {
            let Some(waits) = track.waiting.front() else {
                continue;
            };
            if let Way::Posted(posted) = &self.common.peers[waits.peer as usize].way
                && let Some(ended) = &posted.ended
                && ended.at.elapsed() > GRACE
            {
                return Err(link_error(ended.error.clone(), waits.peer, track.call()));
            }
        }
        Ok(())
    }
}

/// Feeds a track's stream and makes it go on.
#[inline]
fn advance(track: &mut Track, common: &mut Common, bells: Option<&Bells>) -> Result<bool> {
    let direct = track.run_directly(common)?;
    let fed = match direct {
        Some(Fed::All(moved)) => return Ok(moved),
        Some(failed) => failed,
        None if common.posted => track.feed(common, submit_all)?,
        None => track.feed(common, |_| Ok(false))?,
    };
    let before = track.finished;
    let polled = match fed {
        Fed::All(moved) => track.poll().map(|more| moved | more),
        Fed::Failed(error) => Err(error),
    };
    if track.finished != before
        && let Some(bells) = bells
    {
        bells.ring();
    }
    let rank = common.own.rank;
    let moved = polled.map_err(|error| stream_error(track, rank, error))?;
    track.compare_words(rank)?;
    Ok(moved)
}

/// Gives links what waits for them, answers too: of what runs in a stream nothing is held back.
fn submit_all(common: &mut Common) -> Result<bool> {
    if common.answers.held && common.send_answers() {
        common.answers.in_vain();
    }
    submit_links(common, None)
}

/// Gives links what waits for them, but for a few answers to ranks that this one does not wait for.
fn submit_links(common: &mut Common, awaited: Option<u32>) -> Result<bool> {
    drive_links(common, None, |rank, posted| {
        let is_few = posted.batch.len() < MANY && awaited != Some(rank);
        if posted.batch.is_empty() || (posted.holds_answers && is_few) {
            return Ok(false);
        }
        posted.lets_go();
        let accepted = posted.link.submit(&mut posted.batch)?;
        if posted.batch.is_empty() {
            posted.batch.clear();
        }
        Ok(accepted > 0)
    })
}

/// Does something with every posted link. One that its peer has ended after it got all is left
/// alone from then on: what is still to be sent are slots given back, and signals.
fn drive_links(
    common: &mut Common,
    call: Option<Call>,
    drive: impl Fn(u32, &mut Posted) -> unisono_hal::Result<bool>,
) -> Result<bool> {
    let mut moved = false;
    for peer in &mut common.peers {
        let Way::Posted(posted) = &mut peer.way else {
            continue;
        };
        if posted.ended.is_some() {
            posted.batch.clear();
            if let Some(ended) = peer.lost_data(&common.own) {
                return Err(link_error(ended.error.clone(), peer.rank, call));
            }
            continue;
        }
        match drive(peer.rank, posted) {
            Ok(more) => moved |= more,
            Err(error) => {
                let in_order = error.status == unisono_hal::Status::Peer;
                if !in_order || !peer.has_all(&common.own) {
                    return Err(link_error(error, peer.rank, call));
                }
                let ended = Ended {
                    error,
                    at: Instant::now(),
                };
                if let Way::Posted(posted) = &mut peer.way {
                    posted.ended = Some(ended);
                }
            }
        }
    }
    Ok(moved)
}

#[cold]
fn stream_error(track: &mut Track, rank: u32, error: unisono_hal::Error) -> Error {
    track.look();
    let waits = track.waiting.front().map(|w| w.peer);
    if error.status == unisono_hal::Status::Mismatch
        && let (Some(op), Some(theirs), Some(peer)) =
            (track.current(), Call::from_words(error.words), waits)
    {
        return Error::Mismatch(Mismatch {
            rank,
            ours: op.call_from(peer),
            peer,
            theirs,
        });
    }
    Error::Plugin {
        source: Arc::new(error),
        peer: waits,
        call: track.call(),
    }
}

/// Whether a queue has nothing left to do; one that cannot say is not trusted to have.
fn is_quiet(queue: &dyn Queue) -> bool {
    use unisono_hal::State::{Failed, Idle};
    queue
        .state()
        .is_ok_and(|state| matches!(state.state, Idle | Failed))
}

fn link_error(error: unisono_hal::Error, peer: u32, call: Option<Call>) -> Error {
    Error::Plugin {
        source: Arc::new(error),
        peer: Some(peer),
        call,
    }
}
