//! What other threads may see of a stream and do to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use unisono_plugin::{QueueControl, QueuePhase, QueueState};

use crate::bell;

/// The control of one stream.
#[derive(Clone, Debug, Default)]
pub struct HostStreamControl(Arc<Shared>);

/// `running` and `aborted` are the two halves of a handshake: either the poll that begins sees the
/// abort, or who aborted sees that a poll is running.
#[derive(Debug, Default)]
struct Shared {
    accepted: AtomicU64,
    completed: AtomicU64,
    phase: AtomicU8,
    running: AtomicBool,
    aborted: AtomicBool,
}

const PHASES: [QueuePhase; 5] = [
    QueuePhase::Idle,
    QueuePhase::Ready,
    QueuePhase::Waiting,
    QueuePhase::Connecting,
    QueuePhase::Failed,
];

impl HostStreamControl {
    /// Begins a poll; `false` if the stream was aborted, and nothing may be done.
    #[inline]
    pub(super) fn begin(&self) -> bool {
        self.0.running.swap(true, Ordering::SeqCst);
        if self.0.aborted.load(Ordering::SeqCst) {
            self.0.running.store(false, Ordering::Release);
            return false;
        }
        true
    }

    /// Ends a poll and publishes where it left the stream.
    #[inline]
    pub(super) fn end(&self, state: &QueueState) {
        self.publish(state);
        self.0.running.store(false, Ordering::Release);
    }

    /// Publishes where the stream stands.
    #[inline]
    pub(super) fn publish(&self, state: &QueueState) {
        self.0.accepted.store(state.accepted, Ordering::Relaxed);
        self.0.completed.store(state.completed, Ordering::Relaxed);
        self.0.phase.store(state.phase as u8, Ordering::Relaxed);
    }

    /// Whether it was aborted.
    #[inline]
    pub(super) fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Relaxed)
    }
}

impl QueueControl for HostStreamControl {
    fn query(&self) -> QueueState {
        let aborted = self.0.aborted.load(Ordering::SeqCst);
        let running = self.0.running.load(Ordering::SeqCst);
        let phase = if aborted && !running {
            QueuePhase::Failed
        } else {
            let phase = usize::from(self.0.phase.load(Ordering::Relaxed));
            PHASES.get(phase).copied().unwrap_or_default()
        };
        QueueState {
            phase,
            accepted: self.0.accepted.load(Ordering::Relaxed),
            completed: self.0.completed.load(Ordering::Relaxed),
            moved: false,
        }
    }

    fn abort(&self) {
        self.0.aborted.store(true, Ordering::SeqCst);
        bell::ring_own();
    }
}
