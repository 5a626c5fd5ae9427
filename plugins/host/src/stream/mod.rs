//! Streams: queues whose commands run inside `poll`, on the thread that calls it.

mod control;
mod flag;
mod transfer;
mod work;

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_plugin::{
    Batch, Command, Error, QueuePhase, QueueState, Result, Sleep, SleepWays, Status, Stream, Waker,
};

use crate::bell;
use crate::config::Config;
use crate::event::HostEvent;
use crate::fork;
pub use control::HostStreamControl;
use transfer::Progress;
use work::{Step, Work};

/// `POLLIN` of poll(2).
const POLLIN: u32 = 1;

/// A stream of the host device.
#[derive(Debug)]
pub struct HostStream {
    config: Arc<Config>,
    /// Never longer than `config.queue_commands`, for which it has room from the start.
    queue: VecDeque<Work>,
    /// Of the first command.
    progress: Progress,
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
            queue: VecDeque::with_capacity(config.queue_commands),
            config,
            progress: Progress::default(),
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

    #[cold]
    fn fail(&mut self, error: Error) {
        self.queue.clear();
        self.failed = Some(error);
        self.control.publish(&self.state(QueuePhase::Failed, false));
    }

    /// Runs commands until the queue is empty, its head waits, or the budget is spent.
    #[inline]
    fn run(&mut self, mut budget: u64) -> Result<QueueState> {
        let before = self.completed;
        let mut moved = false;
        let phase = loop {
            let Some(work) = self.queue.front_mut() else {
                break QueuePhase::Idle;
            };
            match work.step(&mut self.progress, &mut budget, &self.config) {
                Step::Done => {
                    self.queue.pop_front();
                    self.progress = Progress::default();
                    self.completed += 1;
                }
                Step::Cut { moved: some } => {
                    moved |= some;
                    break QueuePhase::Ready;
                }
                Step::Waits => break QueuePhase::Waiting,
                Step::Mismatch(found) => return Err(Error::mismatch(found)),
            }
            if self.control.is_aborted() {
                return Err(Error::new(Status::Aborted, "the stream was aborted"));
            }
        };
        Ok(self.state(phase, moved || self.completed != before))
    }
}

impl Stream for HostStream {
    type Event = HostEvent;
    type Control = HostStreamControl;

    fn control(&self) -> HostStreamControl {
        self.control.clone()
    }

    fn submit(&mut self, batch: &Batch<'_, HostEvent>) -> Result<u32> {
        self.check()?;
        for command in batch {
            match command {
                Command::Copy(command) => transfer::check_copy(command)?,
                Command::Reduce(command) => transfer::check_reduce(command, &self.config)?,
                _ => {}
            }
        }
        let room = self.config.queue_commands - self.queue.len();
        let before = self.queue.len();
        self.queue
            .extend(batch.iter().take(room).filter_map(Work::new));
        let taken = self.queue.len() - before;
        if taken > 0 {
            self.accepted += taken as u64;
            self.control.publish(&self.state(QueuePhase::Ready, false));
        }
        Ok(taken as u32)
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
        if self.check().is_err() || !self.queue.front().is_none_or(Work::is_waiting) {
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
        let (head, control) = (self.queue.front(), &self.control);
        let ready = || control.is_aborted() || head.is_some_and(Work::can_go_on);
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
    }
}
