//! Streams: queues whose commands run inside `poll`, on the thread that calls it.

mod combine;
mod control;
mod flag;
mod handed;
mod read;
mod ring;
mod transfer;
mod work;

use std::sync::Arc;

use unisono_plugin::{
    Batch, Command, Error, Kinds, QueuePhase, QueueState, Result, Sleep, SleepWays, Status, Stream,
    Waker,
};

use crate::bell;
use crate::config::Config;
use crate::event::HostEvent;
use crate::fork;
pub(crate) use combine::{combine, reduce_at_once};
pub use control::HostStreamControl;
use handed::Handed;
use ring::Ring;
use transfer::Progress;
use work::{Step, Work};

/// `POLLIN` of poll(2).
const POLLIN: u32 = 1;

/// A stream of the host device.
#[derive(Debug)]
pub struct HostStream {
    config: Arc<Config>,
    queue: Ring,
    /// Of the first command.
    progress: Progress,
    handed: Handed,
    /// The first command is a wait that a poll has looked at.
    waiting: bool,
    accepted: u64,
    completed: u64,
    failed: Option<Error>,
    /// How a thread sleeps for this stream.
    armed: Option<u32>,
    control: HostStreamControl,
}

impl HostStream {
    pub(crate) fn new(config: Arc<Config>) -> Result<Self> {
        fork::check()?;
        Ok(Self {
            queue: Ring::new(config.queue_words),
            config,
            progress: Progress::default(),
            handed: Handed::default(),
            waiting: false,
            accepted: 0,
            completed: 0,
            failed: None,
            armed: None,
            control: HostStreamControl::default(),
        })
    }

    fn state(&self, phase: QueuePhase, moved: bool) -> QueueState {
        QueueState {
            phase,
            accepted: self.accepted,
            completed: self.completed,
            moved,
        }
    }

    /// Refuses to work in a forked child, after a failure, after an abort.
    #[inline]
    fn check(&mut self) -> Result<()> {
        fork::check()?;
        if self.control.is_aborted() && self.failed.is_none() {
            self.fail(Error::new(Status::Aborted, "the stream was aborted"));
        }
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Drops all commands.
    fn clear(&mut self) {
        while self.queue.front().is_some() {
            work::pop(&mut self.queue);
        }
    }

    #[cold]
    fn fail(&mut self, error: Error) {
        self.clear();
        self.failed = Some(error);
        self.control.publish(&self.state(QueuePhase::Failed, false));
    }

    /// Runs commands until the queue is empty, its head waits, or the budget is spent.
    #[inline]
    fn run(&mut self, mut budget: u64) -> Result<QueueState> {
        let before = self.completed;
        let mut moved = false;
        let phase = loop {
            let Some(work) = Work::first(&self.queue) else {
                break QueuePhase::Idle;
            };
            let handed = &mut self.handed;
            match work.step(
                self.waiting,
                &mut self.progress,
                &mut budget,
                &self.config,
                handed,
            ) {
                Step::Done => {
                    work::pop(&mut self.queue);
                    self.progress = Progress::default();
                    self.waiting = false;
                    self.completed += 1;
                }
                Step::Cut { moved: some } => {
                    moved |= some;
                    break QueuePhase::Ready;
                }
                Step::Waits => {
                    self.waiting = true;
                    break QueuePhase::Waiting;
                }
                Step::Mismatch(found) => return Err(Error::mismatch(found)),
                Step::Failed(error) => return Err(error),
            }
            if self.control.is_aborted() {
                return Err(Error::new(Status::Aborted, "the stream was aborted"));
            }
        };
        Ok(self.state(phase, moved || self.completed != before))
    }
}

impl Stream for HostStream {
    const KINDS: Kinds = Kinds::STREAM.with_scale().with_call().with_read();
    type Event = HostEvent;
    type Control = HostStreamControl;

    fn control(&self) -> HostStreamControl {
        self.control.clone()
    }

    fn submit(&mut self, batch: &Batch<'_, HostEvent>) -> Result<u32> {
        self.check()?;
        let mut events = false;
        for command in batch {
            match command {
                Command::Copy(command) => transfer::check_copy(command)?,
                Command::Reduce(command) => combine::check_reduce(command, &self.config)?,
                Command::Scale(command) => combine::check_scale(command)?,
                Command::Call(command) => combine::check_call(command)?,
                Command::Record(_) | Command::WaitEvent(_) => events = true,
                Command::Signal(_) | Command::Wait(_) | Command::Put(_) | Command::Read(_) => {}
            }
        }
        let taken = self.queue.push(batch.as_words());
        if taken == 0 && !batch.is_empty() && self.queue.front().is_none() {
            return Err(Error::invalid(
                "a command is larger than the whole stream: raise the parameter queue_bytes",
            ));
        }
        if events {
            work::own_events(&mut self.queue, taken, batch.iter());
        }
        if taken > 0 {
            self.accepted += u64::from(taken);
            self.control.publish(&self.state(QueuePhase::Ready, false));
        }
        Ok(taken)
    }

    fn poll(&mut self, budget: u64) -> Result<QueueState> {
        self.check()?;
        if !self.control.begin() {
            self.check()?;
        }
        match self.run(budget.max(1)) {
            Ok(state) => {
                self.control.end(&state);
                Ok(state)
            }
            Err(error) => {
                self.fail(error.clone());
                self.control.end(&self.state(QueuePhase::Failed, false));
                Err(error)
            }
        }
    }

    fn arm(&mut self, allowed: SleepWays, _: Option<Waker>) -> Result<Sleep> {
        self.disarm();
        let idle = self.queue.front().is_none();
        if self.check().is_err() || !(idle || self.waiting) {
            return Ok(Sleep::Ready);
        }
        let mode = match (allowed.futex(), allowed.fd()) {
            (true, _) => bell::FUTEX,
            (false, true) => bell::PIPE,
            (false, false) => {
                return Err(Error::unsupported(
                    "streams of the host plugin sleep on a futex or a descriptor: allow one",
                ));
            }
        };
        let bell = bell::own()?;
        let (head, control) = (Work::first(&self.queue), &self.control);
        let ready = || control.is_aborted() || head.is_some_and(|work| work.can_go_on());
        let Some(value) = bell.arm(mode, ready) else {
            return Ok(Sleep::Ready);
        };
        self.armed = Some(mode);
        Ok(if mode == bell::FUTEX {
            Sleep::Futex {
                address: bell.futex(),
                value,
            }
        } else {
            Sleep::Fd {
                fd: bell.pipe(),
                events: POLLIN,
            }
        })
    }

    fn disarm(&mut self) {
        if let Some(mode) = self.armed.take()
            && !fork::is_child()
            && let Ok(bell) = bell::own()
        {
            bell.leave(mode);
        }
    }
}

impl Drop for HostStream {
    fn drop(&mut self) {
        self.disarm();
        self.clear();
    }
}
