//! A blocking wait for one op of one lane.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::spin::{Next, Policy, Spin};
use super::{Progress, sleep};
use crate::error::Result;
use crate::execute::{Lane, State, held};

/// The longest single sleep: aborts and deadlines are looked at at least this often.
const SLICE: Duration = Duration::from_millis(50);

/// How many spins pass between looks at the clock.
const LOOK: u32 = 256;

/// Rounds with progress after which a call is not a small one: others may want the lane's lock.
const MOVED: u32 = 8;

/// Who watches over a wait.
pub(crate) trait Watch {
    /// Called every so often. Breaks the lane if its time is up.
    fn look(&self, now: Instant);
    /// After a failure, once this rank's own queues are quiet: ranks that may still touch its
    /// windows.
    fn lingering(&self) -> Vec<u32>;
}

impl Progress {
    /// Waits until op `number` of `lane` is complete, doing the process's work meanwhile. `state`
    /// is the lane's.
    pub(crate) fn wait(
        &self,
        lane: &Arc<Lane>,
        mut state: MutexGuard<'_, State>,
        number: u64,
        policy: Policy,
        watch: &dyn Watch,
    ) -> Result<()> {
        // The common case of a small message: no list, no clock, no system call.
        let mut rounds_moved = 0;
        let mut spin = Spin::new(policy);
        loop {
            let moved = lane.advance(&mut state);
            if lane.completed() >= number {
                self.leave(lane, state);
                return Ok(());
            }
            rounds_moved += u32::from(moved);
            if rounds_moved > MOVED {
                break;
            }
            if let Some(error) = lane.failure() {
                let error = error.clone();
                drop(state);
                drain(lane, policy.drain, watch);
                return Err(error);
            }
            held::let_go();
            if spin.next(false) != Next::Spin {
                break;
            }
            std::hint::spin_loop();
        }
        self.watch_answers(lane, &state);
        drop(state);
        self.wait_long(lane, number, spin, watch)
    }

    /// After a call: later ones, what links still have to send, and answers that are held back are the progress thread's.
    fn leave(&self, lane: &Arc<Lane>, mut state: MutexGuard<'_, State>) {
        let goes_on = state.must_go_on_behind();
        self.watch_answers(lane, &state);
        if state.is_to_let_go() {
            held::note(lane);
        }
        if !goes_on && lane.active.load(Ordering::Relaxed) {
            // The thread need not wake to find that out.
            self.deactivate(lane);
        }
        drop(state);
        if goes_on {
            self.activate(lane);
        }
    }

    #[cold]
    fn wait_long(
        &self,
        lane: &Arc<Lane>,
        number: u64,
        mut spin: Spin,
        watch: &dyn Watch,
    ) -> Result<()> {
        let _driver = self.enter();
        let mut looks = 0_u32;
        loop {
            let moved = {
                let mut state = lane.lock();
                let moved = lane.advance(&mut state);
                if lane.completed() >= number {
                    self.leave(lane, state);
                }
                moved
            };
            if lane.completed() >= number {
                return Ok(());
            }
            if let Some(error) = lane.failure() {
                let error = error.clone();
                drain(lane, spin.policy.drain, watch);
                return Err(error);
            }
            looks += 1;
            match spin.next(moved) {
                Next::Spin => std::hint::spin_loop(),
                Next::Yield => {
                    if !self.drive() {
                        std::thread::yield_now();
                    }
                }
                Next::Sleep => {
                    let end = sleep::until_ready(self, lane, number, SLICE);
                    // What ended the sleep may be another lane's: nobody else drives that one
                    // while this thread waits.
                    if self.drive() {
                        spin.next(true);
                    } else {
                        spin.woke(end);
                    }
                    looks = LOOK;
                }
            }
            if looks >= LOOK {
                looks = 0;
                watch.look(Instant::now());
            }
        }
    }
}

/// A failed call returns only when nothing can touch the caller's buffers any more: neither this
/// rank's queues nor, in windows, another rank that has not heard of the failure yet. Nor may one read the memory from
/// which it fetches, which goes with the communicator.
fn drain(lane: &Arc<Lane>, limit: Duration, watch: &dyn Watch) {
    let end = Instant::now() + limit;
    loop {
        let drained = {
            let mut state = lane.lock();
            lane.advance(&mut state);
            state.is_drained()
        };
        // The device may wait for the others to know.
        watch.look(Instant::now());
        let lingering = if drained {
            watch.lingering()
        } else {
            Vec::new()
        };
        if drained && lingering.is_empty() {
            return;
        }
        if Instant::now() > end {
            if drained {
                log::error!(
                    "ranks {lingering:?} did not let go of this rank's memory within {limit:?} of a \
                     failure, and may still use it: its windows, and what it sent"
                );
            } else {
                log::error!(
                    "a stream did not drain within {limit:?} of a failure; its buffers may still be \
                     written"
                );
            }
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
