//! A blocking wait for one op of one lane.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::spin::{Next, Policy, Spin};
use super::{Progress, sleep};
use crate::error::Result;
use crate::execute::{Lane, State};

/// The longest single sleep: aborts and deadlines are looked at at least this often.
const SLICE: Duration = Duration::from_millis(20);

/// How many spins pass between looks at the clock.
const LOOK: u32 = 256;

/// Rounds with progress after which a call is not a small one: others may want the lane's lock.
const MOVED: u32 = 8;

/// What ends a wait that nothing else ends.
pub(crate) trait Deadline {
    /// Called every so often. Breaks the lane if its time is up.
    fn look(&self, now: Instant);
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
        deadline: &dyn Deadline,
    ) -> Result<()> {
        // The common case of a small message: no list, no clock, no system call.
        let mut rounds_moved = 0;
        for _ in 0..policy.spins.max(1) {
            let moved = lane.advance(&mut state);
            if lane.completed() >= number {
                // Later calls, or what links still have to send.
                if !state.is_idle() {
                    drop(state);
                    self.activate(lane);
                }
                return Ok(());
            }
            rounds_moved += u32::from(moved);
            if rounds_moved > MOVED {
                break;
            }
            if let Some(error) = lane.failure() {
                let error = error.clone();
                drop(state);
                drain(lane);
                return Err(error);
            }
            std::hint::spin_loop();
        }
        drop(state);
        self.wait_long(lane, number, policy, deadline)
    }

    #[cold]
    fn wait_long(
        &self,
        lane: &Arc<Lane>,
        number: u64,
        policy: Policy,
        deadline: &dyn Deadline,
    ) -> Result<()> {
        let _driver = self.enter();
        let mut spin = Spin::new(policy);
        let mut looks = 0_u32;
        loop {
            let moved = {
                let mut state = lane.lock();
                let moved = lane.advance(&mut state);
                if lane.completed() >= number && !state.is_idle() {
                    drop(state);
                    self.activate(lane);
                }
                moved
            };
            if lane.completed() >= number {
                return Ok(());
            }
            if let Some(error) = lane.failure() {
                let error = error.clone();
                drain(lane);
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
                    sleep::until_ready(self, lane, number, SLICE);
                    // What ended the sleep may be another lane's: nobody else drives that one
                    // while this thread waits.
                    if self.drive() {
                        spin.next(true);
                    } else {
                        spin.woke();
                    }
                    looks = LOOK;
                }
            }
            if looks >= LOOK {
                looks = 0;
                deadline.look(Instant::now());
            }
        }
    }
}

/// A failed call returns only when nothing can touch the caller's buffers any more.
fn drain(lane: &Arc<Lane>) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        {
            let mut state = lane.lock();
            lane.advance(&mut state);
            if state.is_drained() {
                return;
            }
        }
        if Instant::now() > end {
            log::error!(
                "a stream did not drain within 10 s of an abort; its buffers may still be written"
            );
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
