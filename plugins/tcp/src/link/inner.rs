//! The whole of a link, behind its lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_plugin::{
    Batch, Channel, Error, HostRange, Landing, LinkStatistics, NoEvent, QueuePhase, Result, Sleep,
    Status,
};

use super::connecting::Connecting;
use super::established::{Desk, Established};
use super::farewell::ended;
use super::outbox::Outbox;
use super::window::Windows;
use crate::net::Poller;
use crate::setup::{Listener, Recovery};

/// What a link is made of.
#[derive(Debug)]
pub(crate) struct Inner {
    channel: Channel,
    peer: u32,
    poller: Arc<Poller>,
    listener: Arc<Listener>,
    windows: Windows,
    outbox: Outbox,
    accepted: u64,
    statistics: LinkStatistics,
    recovery: Recovery,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Connecting(Box<Connecting>),
    Up(Box<Established>),
    /// The peer said goodbye, and all that it sent has landed.
    Ended,
    Failed(Error),
}

impl Inner {
    pub(crate) fn new(
        channel: Channel,
        peer: u32,
        poller: Arc<Poller>,
        listener: Arc<Listener>,
        connecting: Connecting,
        recovery: Recovery,
    ) -> Self {
        Self {
            channel,
            peer,
            poller,
            listener,
            windows: Windows::default(),
            outbox: Outbox::default(),
            accepted: 0,
            statistics: LinkStatistics::default(),
            recovery,
            stage: Stage::Connecting(Box::new(connecting)),
        }
    }

    pub(crate) const fn accepted(&self) -> u64 {
        self.accepted
    }

    pub(crate) const fn completed(&self) -> u64 {
        self.outbox.completed()
    }

    pub(crate) fn export_window(&mut self, id: u32, range: HostRange) -> Result<Vec<u8>> {
        self.windows.export(id, range)
    }

    pub(crate) fn import_window(&mut self, id: u32, token: &[u8]) -> Result<()> {
        self.windows.import(id, token)
    }

    pub(crate) fn close_window(&mut self, id: u32) -> Result<()> {
        self.windows.close(id)
    }

    /// Lets a put that comes lie elsewhere; false if it lies in its window.
    pub(crate) fn land(&mut self, landing: &Landing) -> Result<bool> {
        let Landing {
            window, offset, to, ..
        } = *landing;
        if self.windows.place(window, offset, to.bytes).is_none() {
            return Err(Error::invalid(format!(
                "window {window} has no {} bytes at {offset}",
                to.bytes
            )));
        }
        Ok(match &mut self.stage {
            Stage::Up(established) => established.elsewhere.ask(landing),
            Stage::Connecting(_) | Stage::Ended | Stage::Failed(_) => false,
        })
    }

    /// Takes the first commands of a batch; none of it if one of those is wrong.
    pub(crate) fn submit(&mut self, batch: &Batch<'_, NoEvent>) -> Result<u32> {
        match &self.stage {
            Stage::Connecting(_) | Stage::Up(_) => {}
            Stage::Failed(error) => return Err(error.clone()),
            Stage::Ended => return Err(ended(self.peer)),
        }
        let taken = self.outbox.take(batch, &self.windows)?;
        self.accepted += u64::from(taken);
        Ok(taken)
    }

    /// Makes progress; whether anything moved, and where the queue stands.
    pub(crate) fn poll(&mut self, budget: u64, abort: &AtomicBool) -> Result<(bool, QueuePhase)> {
        let mut arrived = false;
        if let Stage::Connecting(connecting) = &mut self.stage {
            match connecting.advance(&self.channel, self.peer) {
                Ok(None) => return Ok((false, QueuePhase::Connecting)),
                Ok(Some(connected)) => {
                    self.stage = Stage::Up(Box::new(Established::new(
                        self.peer,
                        connected,
                        self.recovery,
                        self.listener.host(),
                    )));
                    arrived = true;
                }
                Err(error) => return Err(self.fail(error)),
            }
        }
        match self.go_on(budget, abort) {
            Ok((moved, phase)) => Ok((moved || arrived, phase)),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn go_on(&mut self, budget: u64, abort: &AtomicBool) -> Result<(bool, QueuePhase)> {
        let established = match &mut self.stage {
            Stage::Up(established) => established,
            Stage::Connecting(_) => return Ok((false, QueuePhase::Connecting)),
            Stage::Failed(error) => return Err(error.clone()),
            Stage::Ended => return Ok((false, QueuePhase::Idle)),
        };
        let mut desk = Desk {
            outbox: &mut self.outbox,
            windows: &self.windows,
            statistics: &mut self.statistics,
        };
        let (mut moved, mut more, mut left) = (false, true, budget.max(1));
        if established.is_time_to_tend() {
            moved = established.tend(&self.channel, &mut desk)?;
        }
        while more && left > 0 && !abort.load(Ordering::Relaxed) {
            let turn = established.turn(&mut desk, left)?;
            moved |= turn.moved;
            more = turn.more;
            left = left.saturating_sub(turn.bytes);
        }
        self.statistics.recovered = established.recoveries();
        if established.is_ended()? {
            if !self.outbox.is_empty() {
                return Err(ended(self.peer));
            }
            self.end(false);
            self.stage = Stage::Ended;
            return Ok((true, QueuePhase::Idle));
        }
        if !established.has_begun() {
            return Ok((moved, QueuePhase::Connecting));
        }
        let empty = self.outbox.is_empty() && !established.owes();
        let phase = match (more, empty) {
            (true, _) => QueuePhase::Ready,
            (false, true) => QueuePhase::Idle,
            (false, false) => QueuePhase::Waiting,
        };
        Ok((moved, phase))
    }

    /// Prepares for sleep on the link's set.
    pub(crate) fn arm(&mut self) -> Result<Sleep> {
        use std::os::fd::{AsFd, AsRawFd};
        let watched = match &mut self.stage {
            Stage::Connecting(connecting) => connecting.arm().map(|()| true),
            Stage::Up(established) => {
                match self.outbox.advance() {
                    // A WAIT is over, which the host has not heard of.
                    Ok(true) => Ok(false),
                    Ok(false) => established.arm(&self.outbox),
                    Err(error) => return Err(self.fail(error)),
                }
            }
            Stage::Ended => Ok(true),
            Stage::Failed(_) => Ok(false), // poll says why
        };
        match watched {
            Ok(true) => Ok(Sleep::Fd {
                fd: self.poller.as_fd().as_raw_fd(),
                events: libc::POLLIN.cast_unsigned().into(),
            }),
            Ok(false) => Ok(Sleep::Ready),
            Err(error) => {
                let what = format!("cannot watch the link to rank {}", self.peer);
                Err(self.fail(Error::system(Status::Link, &what, &error)))
            }
        }
    }

    /// After a sleep every connection is asked at once.
    pub(crate) fn disarm(&mut self) {
        if let Stage::Up(established) = &mut self.stage {
            established.wake();
        }
    }

    pub(crate) fn statistics(&self) -> LinkStatistics {
        LinkStatistics {
            bytes_sent: self.outbox.payload(),
            puts_sent: self.outbox.sequence(),
            refused: self.listener.refused(),
            connections: match &self.stage {
                Stage::Up(established) => established.standing(),
                _ => 0,
            },
            ..self.statistics
        }
    }

    /// Ends the link for good: what the kernel has is still delivered.
    pub(crate) fn close(&mut self) {
        let aborted = !self.outbox.is_empty();
        self.end(aborted);
        if let Stage::Up(established) = &self.stage
            && !aborted
        {
            established.linger();
        }
        let what = format!("the link to rank {} was destroyed", self.peer);
        self.outbox.clear();
        self.stage = Stage::Failed(Error::new(Status::Aborted, what));
    }

    /// Gives up: nothing is sent, received or signalled any more.
    pub(crate) fn abort(&mut self) {
        if !matches!(self.stage, Stage::Failed(_)) {
            let what = format!("the link to rank {} was aborted here", self.peer);
            self.fail(Error::new(Status::Aborted, what));
        }
    }

    /// Fails (once), tells the peer if it can, and closes all connections.
    fn fail(&mut self, error: Error) -> Error {
        if let Stage::Failed(first) = &self.stage {
            return first.clone();
        }
        self.end(true);
        self.outbox.clear();
        self.stage = Stage::Failed(error.clone());
        error
    }

    fn end(&mut self, aborted: bool) {
        if let Stage::Up(established) = &mut self.stage {
            established.end(self.outbox.sequence(), aborted);
        }
    }
}
