//! The whole of a link, behind its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use unisono_plugin::{
    Batch, Channel, Error, HostRange, Level, LinkStatistics, NoEvent, QueuePhase, Result, Sleep,
    Status, log,
};

use super::doze::Doze;
use super::established::{Desk, Established, Turn};
use super::outbox::Outbox;
use super::session::Session;
use super::trouble;
use super::upkeep::Upkeep;
use super::window::Windows;
use crate::plugin::Shared;
use crate::wire::Control;

/// Polls between two looks at the clock and the control channel.
const TICK: u32 = 256;
/// And at least this much time.
const TICK_TIME: Duration = Duration::from_micros(200);

/// How long a link that has ended rests at a time.
const LONG: Duration = Duration::from_secs(3600);

/// What a link is made of.
#[derive(Debug)]
pub(crate) struct Inner {
    shared: Arc<Shared>,
    session: Session,
    windows: Windows,
    outbox: Outbox,
    established: Option<Established>,
    upkeep: Upkeep,
    stage: Stage,
    accepted: u64,
    statistics: LinkStatistics,
    doze: Doze,
    polls: u32,
    ticked: Option<Instant>,
}

#[derive(Debug)]
enum Stage {
    Connecting,
    Up,
    /// The peer said goodbye, and all that it sent has landed.
    Ended,
    Failed(Error),
}

impl Inner {
    pub(crate) fn new(shared: Arc<Shared>, channel: Channel, peer: u32) -> Result<Self> {
        let doze = Doze::new()
            .map_err(|error| Error::system(Status::Link, "cannot make a link", &error))?;
        Ok(Self {
            session: Session::new(Arc::clone(&shared), channel, peer)?,
            shared,
            windows: Windows::default(),
            outbox: Outbox::default(),
            established: None,
            upkeep: Upkeep::default(),
            stage: Stage::Connecting,
            accepted: 0,
            statistics: LinkStatistics::default(),
            doze,
            polls: 0,
            ticked: None,
        })
    }

    pub(crate) const fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(crate) const fn completed(&self) -> u64 {
        self.outbox.completed()
    }

    #[allow(unsafe_code, reason = "registers the host's window")]
    pub(crate) fn export_window(&mut self, id: u32, range: HostRange) -> Result<Vec<u8>> {
        self.windows.check_free(id)?;
        let shared = &self.shared;
        // SAFETY: the host keeps a window's memory until the window is closed or the link is gone,
        // and lets the peer write it.
        let memory = unsafe { shared.registry.window(&shared.rails, range) }?;
        Ok(self.windows.export(id, range, memory))
    }

    pub(crate) fn import_window(&mut self, id: u32, token: &[u8]) -> Result<()> {
        self.windows.import(id, token)
    }

    pub(crate) fn close_window(&mut self, id: u32) -> Result<()> {
        self.windows.close(id)
    }

    /// Takes the first commands of a batch; none of it if one of those is wrong.
    pub(crate) fn submit(&mut self, batch: &Batch<'_, NoEvent>) -> Result<u32> {
        match &self.stage {
            Stage::Connecting | Stage::Up => {}
            Stage::Failed(error) => return Err(error.clone()),
            Stage::Ended => return Err(trouble::ended(self.session.peer())),
        }
        let taken = self.outbox.take(batch, &self.windows)?;
        self.accepted += u64::from(taken);
        Ok(taken)
    }

    /// Makes progress; whether anything moved, and where the queue stands.
    pub(crate) fn poll(&mut self, budget: u64, abort: &AtomicBool) -> Result<(bool, QueuePhase)> {
        match &self.stage {
            Stage::Failed(error) => return Err(error.clone()),
            Stage::Ended => return Ok((false, QueuePhase::Idle)),
            Stage::Connecting | Stage::Up => {}
        }
        let done = self.go_on(budget, abort);
        done.map_err(|error| self.fail(error))
    }

    fn go_on(&mut self, budget: u64, abort: &AtomicBool) -> Result<(bool, QueuePhase)> {
        self.polls = self.polls.wrapping_add(1);
        let connecting = matches!(self.stage, Stage::Connecting);
        let mut moved = false;
        if connecting || self.polls.is_multiple_of(TICK) {
            moved |= self.tick()?;
        }
        if matches!(self.stage, Stage::Connecting) {
            return Ok((moved, QueuePhase::Connecting));
        }
        let (mut more, mut left) = (true, budget.max(1));
        while more && left > 0 && !abort.load(Ordering::Relaxed) {
            let (progress, bytes, rest) = self.turn(left)?;
            moved |= progress;
            // What only came is the caller's to look at, at once.
            more = rest || (progress && !self.outbox.is_empty());
            left = left.saturating_sub(bytes);
        }
        if self.established.as_ref().is_some_and(Established::is_ended) {
            if !self.outbox.is_empty() {
                return Err(trouble::ended(self.session.peer()));
            }
            self.leave();
            self.stage = Stage::Ended;
            return Ok((true, QueuePhase::Idle));
        }
        let phase = match (more, self.outbox.is_empty()) {
            (true, _) => QueuePhase::Ready,
            (false, true) => QueuePhase::Idle,
            (false, false) => QueuePhase::Waiting,
        };
        Ok((moved, phase))
    }

    /// One turn of all lanes: whether anything moved, bytes, and whether there is more at once.
    fn turn(&mut self, budget: u64) -> Result<(bool, u64, bool)> {
        let Some(established) = &mut self.established else {
            return Ok((false, 0, false));
        };
        let mut desk = Desk {
            session: &self.session,
            outbox: &mut self.outbox,
            windows: &self.windows,
        };
        let turn = established.turn(&mut desk, budget)?;
        if turn.lost.is_empty() {
            return Ok((turn.moved, turn.bytes, turn.more));
        }
        let now = Instant::now();
        for (lane, broken) in turn.lost {
            if established.is_ended() {
                continue; // it said so before it went
            }
            self.upkeep
                .lose(&self.session, established, lane, &broken, now)?;
            self.ticked = None;
        }
        Ok((turn.moved, turn.bytes, turn.more))
    }

    /// What is done now and then: news of the peer and the devices, dead and silent queue pairs.
    fn tick(&mut self) -> Result<bool> {
        let now = Instant::now();
        if self.ticked.is_some_and(|at| now - at < TICK_TIME) {
            return Ok(false);
        }
        self.ticked = Some(now);
        self.shared.tend();
        self.session.greet()?;
        let looked = self.upkeep.tick(
            &mut self.session,
            &mut self.established,
            &mut self.outbox,
            now,
        );
        let moved = match looked {
            Ok(moved) => moved,
            Err(error) => return self.take_last(error),
        };
        if matches!(self.stage, Stage::Connecting) {
            if self.established.as_ref().is_some_and(Established::is_up) {
                self.stage = Stage::Up;
                return Ok(true);
            }
            self.upkeep.check_connecting(&self.session, now)?;
        }
        Ok(moved)
    }

    /// The link cannot go on: what has landed already counts still, and the peer's last word may be
    /// among it. That came over another way than the news.
    fn take_last(&mut self, error: Error) -> Result<bool> {
        let Some(established) = &mut self.established else {
            return Err(error);
        };
        established.wake();
        let mut desk = Desk {
            session: &self.session,
            outbox: &mut self.outbox,
            windows: &self.windows,
        };
        // What fails here says no more than the news.
        let _ = established.receive(&mut desk, &mut Turn::default());
        established.settle(&mut self.outbox);
        if established.is_ended() {
            Ok(true)
        } else {
            Err(error)
        }
    }

    /// Prepares for sleep on the link's set.
    pub(crate) fn arm(&mut self) -> Result<Sleep> {
        match &self.stage {
            Stage::Failed(_) => return Ok(Sleep::Ready),
            // Nothing comes any more: whoever waits for another link sleeps as long as that one lets it.
            Stage::Ended => return self.rest(),
            Stage::Connecting | Stage::Up => {}
        }
        match self.prepare_sleep() {
            Ok(true) => Ok(self.doze.sleep()),
            Ok(false) => Ok(Sleep::Ready),
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Sleeps without anything to wake for.
    fn rest(&self) -> Result<Sleep> {
        let set = self.doze.set_alarm(LONG);
        set.map_err(|error| {
            Error::system(Status::Link, "cannot rest a link that has ended", &error)
        })?;
        Ok(self.doze.sleep())
    }

    /// False if something can go on now.
    fn prepare_sleep(&mut self) -> Result<bool> {
        let watch = |error: std::io::Error| {
            Error::system(Status::Link, "cannot watch the link's queues", &error)
        };
        let mut alarm = self.upkeep.next(&self.session);
        if let Some(established) = &mut self.established {
            established.wake();
            for lane in &mut established.lanes {
                if lane.old.is_some() || lane.wire.is_none() {
                    alarm = alarm.min(Duration::from_millis(1));
                } else if lane.attempt.is_some() || lane.connecting.is_some() {
                    // On its way home: nobody waits for it.
                    alarm = alarm.min(Duration::from_millis(20));
                }
                if let Some(wire) = &mut lane.wire {
                    self.doze.watch(&*wire).map_err(watch)?;
                    // A dying queue pair is found by the turn that follows.
                    let _ = wire.request_notice();
                }
            }
        }
        self.doze.set_alarm(alarm).map_err(watch)?;
        if matches!(self.stage, Stage::Connecting) {
            return Ok(true);
        }
        // What came before the notice was asked for shows nowhere else.
        let (moved, _, more) = self.turn(1)?;
        Ok(!moved && !more)
    }

    /// After a sleep everything is looked at once.
    pub(crate) fn disarm(&mut self) {
        if let Some(established) = &mut self.established {
            for wire in established.lanes.iter_mut().filter_map(|l| l.wire.as_mut()) {
                wire.clear_notices();
            }
            established.wake();
        }
        self.polls = TICK - 1;
        self.ticked = None;
    }

    pub(crate) fn statistics(&self) -> LinkStatistics {
        let mut statistics = self.statistics;
        if let Some(established) = &self.established {
            established.write_statistics(&mut statistics);
        }
        LinkStatistics {
            bytes_sent: self.outbox.payload(),
            puts_sent: self.outbox.totals().puts,
            ..statistics
        }
    }

    /// Ends the link for good. In good order the peer hears of it; else it is an abort.
    pub(crate) fn close(&mut self) {
        // Credits may be on their way still: the grave waits for them, as for the last word.
        if matches!(self.stage, Stage::Up) && self.outbox.is_empty() {
            self.windows.withdraw();
            let grave = self.established.take().and_then(|e| e.end(&self.outbox));
            match grave {
                Some(grave) => self.shared.bury(grave),
                // It has no way to say so in order. Who cannot be told finds out.
                None => drop(self.session.say(Control::GaveUp)),
            }
        }
        let what = format!("the link to rank {} was destroyed", self.session.peer());
        self.fail(Error::new(Status::Aborted, what));
    }

    /// Gives up: no device reads or writes for this link any more, and nothing is signalled.
    pub(crate) fn abort(&mut self) {
        let what = format!("the link to rank {} was aborted here", self.session.peer());
        self.fail(Error::new(Status::Aborted, what));
    }

    /// Fails (once), tells the peer if it can, and lets go of everything.
    fn fail(&mut self, error: Error) -> Error {
        if let Stage::Failed(first) = &self.stage {
            return first.clone();
        }
        if self.established.is_some() || matches!(self.stage, Stage::Connecting) {
            // Who cannot be told finds out.
            let _ = self.session.say(Control::GaveUp);
        }
        log!(
            self.shared.host,
            Level::Debug,
            "the link to rank {} ends: {error}",
            self.session.peer()
        );
        self.leave();
        self.stage = Stage::Failed(error.clone());
        error
    }

    /// Lets go of queue pairs, windows and commands.
    fn leave(&mut self) {
        let mut statistics = self.statistics();
        statistics.connections = 0;
        self.statistics = statistics;
        self.established = None;
        self.windows.withdraw();
        self.outbox.clear();
    }
}
