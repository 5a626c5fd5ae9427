//! A posted link: one peer, one channel, a few connections.
//!
//! The work is in [`inner`], behind a lock that only `abort` ever contends for. What other threads
//! may ask is published in atomics beside it.

mod access;
mod backoff;
mod broken;
mod connecting;
mod connection;
mod elsewhere;
mod established;
mod farewell;
mod incoming;
mod inner;
mod keep;
mod order;
mod outbox;
mod outgoing;
mod pace;
mod patience;
mod put;
mod rails;
mod spread;
mod stream;
mod together;
mod trouble;
mod upkeep;
mod window;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_plugin::abi::queue_state;
use unisono_plugin::{
    Batch, HostRange, Landing, Link, LinkStatistics, NoEvent, QueueControl, QueuePhase, QueueState,
    Result, Sleep, SleepWays, Waker,
};

pub(crate) use access::{Access, End};
pub(crate) use connecting::Connecting;
pub(crate) use inner::Inner;

/// One end of a link over TCP.
#[derive(Debug)]
pub struct TcpLink {
    control: Arc<Control>,
}

/// What other threads may ask of a link, and do to it.
#[derive(Debug)]
pub struct Control {
    inner: Mutex<Inner>,
    abort: AtomicBool,
    phase: AtomicU32,
    accepted: AtomicU64,
    completed: AtomicU64,
}

impl TcpLink {
    pub(crate) fn new(inner: Inner) -> Self {
        Self {
            control: Arc::new(Control {
                inner: Mutex::new(inner),
                abort: AtomicBool::new(false),
                phase: AtomicU32::new(queue_state::CONNECTING),
                accepted: AtomicU64::new(0),
                completed: AtomicU64::new(0),
            }),
        }
    }
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, inner: &Inner, phase: QueuePhase) -> QueueState {
        let (accepted, completed) = (inner.accepted(), inner.completed());
        self.completed.store(completed, Ordering::Relaxed);
        self.accepted.store(accepted, Ordering::Relaxed);
        self.phase.store(phase as u32, Ordering::Release);
        QueueState {
            phase,
            accepted,
            completed,
            moved: false,
        }
    }
}

impl QueueControl for Control {
    fn query(&self) -> QueueState {
        let phase = match self.phase.load(Ordering::Acquire) {
            queue_state::IDLE => QueuePhase::Idle,
            queue_state::READY => QueuePhase::Ready,
            queue_state::WAITING => QueuePhase::Waiting,
            queue_state::CONNECTING => QueuePhase::Connecting,
            _ => QueuePhase::Failed,
        };
        QueueState {
            phase,
            accepted: self.accepted.load(Ordering::Relaxed),
            completed: self.completed.load(Ordering::Relaxed),
            moved: false,
        }
    }

    /// Once this returns, nothing is written to a window or a flag any more. A `poll` in another
    /// thread is cut short; the wait for it is that of one socket call.
    fn abort(&self) {
        self.abort.store(true, Ordering::Relaxed);
        let mut inner = self.lock();
        inner.abort();
        self.publish(&inner, QueuePhase::Failed);
    }
}

impl Link for TcpLink {
    type Control = Arc<Control>;

    fn control(&self) -> Self::Control {
        Arc::clone(&self.control)
    }

    fn export_window(&mut self, id: u32, range: HostRange) -> Result<Vec<u8>> {
        self.control.lock().export_window(id, range)
    }

    fn import_window(&mut self, id: u32, token: &[u8]) -> Result<()> {
        self.control.lock().import_window(id, token)
    }

    fn close_window(&mut self, id: u32) -> Result<()> {
        self.control.lock().close_window(id)
    }

    fn submit(&mut self, batch: &Batch<'_, NoEvent>) -> Result<u32> {
        let mut inner = self.control.lock();
        let taken = inner.submit(batch)?;
        let phase = match self.control.query().phase {
            QueuePhase::Connecting => QueuePhase::Connecting,
            _ => QueuePhase::Ready,
        };
        self.control.publish(&inner, phase);
        Ok(taken)
    }

    fn poll(&mut self, budget: u64) -> Result<QueueState> {
        let mut inner = self.control.lock();
        match inner.poll(budget, &self.control.abort) {
            Ok((moved, phase)) => Ok(QueueState {
                moved,
                ..self.control.publish(&inner, phase)
            }),
            Err(error) => {
                self.control.publish(&inner, QueuePhase::Failed);
                Err(error)
            }
        }
    }

    /// Sleeps on a descriptor; a host that cannot is told not to sleep. A flag that the queue's
    /// head waits for is local: whoever raises it wakes the host, not this link.
    fn arm(&mut self, allowed: SleepWays, _waker: Option<Waker>) -> Result<Sleep> {
        if !allowed.fd() {
            return Ok(Sleep::Ready);
        }
        self.control.lock().arm()
    }

    fn disarm(&mut self) {
        self.control.lock().disarm();
    }

    fn land(&mut self, landing: &Landing) -> Result<bool> {
        self.control.lock().land(landing)
    }

    fn statistics(&mut self) -> Result<LinkStatistics> {
        Ok(self.control.lock().statistics())
    }
}

impl Drop for TcpLink {
    /// Control handles may live on: the sockets must not.
    fn drop(&mut self) {
        self.control.lock().close();
    }
}
