//! The state behind its lock, and who sleeps for it.
//!
//! Two sets of descriptors: the inner one holds the connections; the outer one holds the inner and a bell that tells
//! the driving thread of news and of changed timers. A call that waits sleeps on the inner one and on a bell of its
//! own, which whoever turns the channel rings.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};

use crate::error::{BootstrapError, Result};
use crate::wait::Wait;
use crate::wire::hub::sleep_on;

use super::Event;
use super::message::News;
use super::peer::Peer;
use super::state::State;

/// How long dropping the last handle tries to get its parting word out.
const PARTING: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Shared {
    state: Mutex<State>,
    waiters: Mutex<Vec<Arc<Bell>>>,
    inner: Arc<OwnedFd>,
    outer: OwnedFd,
    news: Bell,
    rank: u32,
    process: u32,
}

/// A descriptor that is readable once it was rung.
#[derive(Debug)]
struct Bell(OwnedFd);

impl Bell {
    fn new() -> Result<Bell> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        fd.map(Bell)
            .map_err(|e| BootstrapError::io("creating an event descriptor", e))
    }

    fn ring(&self) {
        // Full means rung.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    fn hush(&self) {
        // Empty means quiet.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl Shared {
    pub(super) fn new(state: State) -> Result<Shared> {
        let inner = state.hub.descriptor();
        let news = Bell::new()?;
        let outer = epoll::create(epoll::CreateFlags::CLOEXEC)
            .and_then(|outer| {
                epoll::add(
                    &outer,
                    &*inner,
                    epoll::EventData::new_u64(0),
                    epoll::EventFlags::IN,
                )?;
                epoll::add(
                    &outer,
                    &news.0,
                    epoll::EventData::new_u64(1),
                    epoll::EventFlags::IN,
                )?;
                Ok(outer)
            })
            .map_err(|e| BootstrapError::io("creating an epoll set", e))?;
        let (rank, process) = (state.rank, std::process::id());
        Ok(Shared {
            state: Mutex::new(state),
            waiters: Mutex::default(),
            inner,
            outer,
            news,
            rank,
            process,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.outer.as_fd()
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank
    }

    /// Only looks. In a forked child it shows how things stood at the fork, if nobody held the lock then.
    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// Changes something, and wakes the driver to send it or to mind new timers.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let done = self.try_change(change);
        self.news.ring();
        done
    }

    /// The same for what needs no driver.
    pub(super) fn try_change<T>(&self, change: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.enter()?;
        if state.left {
            return Err(BootstrapError::Departed {
                rank: self.rank,
                what: "a call of its own".to_owned(),
            });
        }
        change(&mut state)
    }

    /// One turn by the driving thread.
    pub(super) fn drive(&self, now: Instant) -> Result<Vec<Event>> {
        let mut state = self.enter()?;
        self.news.hush();
        let progressed = state.turn(now)?;
        let events: Vec<Event> = state.events.drain(..).collect();
        drop(state);
        if progressed || !events.is_empty() {
            self.wake_others(None);
        }
        Ok(events)
    }

    /// Turns the channel until `poll` gives something.
    ///
    /// # Errors
    /// Those of `poll`; [`BootstrapError::Cancelled`]; [`BootstrapError::Deadline`], naming `waiting_for`.
    pub(super) fn block<T>(
        &self,
        wait: &Wait,
        what: &str,
        waiting_for: &[u32],
        mut poll: impl FnMut(&mut State) -> Result<Option<T>>,
    ) -> Result<T> {
        let started = Instant::now();
        let bell = Arc::new(Bell::new()?);
        let _listed = Listed::new(self, &bell);
        loop {
            bell.hush();
            let mut state = self.enter()?;
            let progressed = state.turn(Instant::now())?;
            let outcome = poll(&mut state);
            let (has_events, idle_until, left) =
                (!state.events.is_empty(), state.idle_until(), state.left);
            drop(state);
            if progressed {
                self.wake_others(Some(&bell));
            }
            if has_events {
                self.news.ring();
            }
            if let Some(value) = outcome? {
                return Ok(value);
            }
            if left {
                return Err(BootstrapError::Departed {
                    rank: self.rank,
                    what: what.to_owned(),
                });
            }
            if wait.abort.is_raised() {
                return Err(BootstrapError::Cancelled {
                    what: what.to_owned(),
                });
            }
            if wait.is_over() {
                let (what, waiting_for) = (what.to_owned(), waiting_for.to_vec());
                return Err(BootstrapError::Deadline {
                    what,
                    waited: started.elapsed(),
                    waiting_for,
                });
            }
            let limit = wait
                .slice()
                .min(idle_until.saturating_duration_since(Instant::now()));
            sleep_on(&[self.inner.as_fd(), bell.0.as_fd()], limit);
        }
    }

    /// Says good-bye, and closes once everything has arrived.
    pub(super) fn leave(&self, wait: &Wait) -> Result<()> {
        self.part(wait, |state| {
            let owing = |(rank, peer): (&u32, &Peer)| {
                let connected = peer.active.is_some() || peer.dialling.is_some();
                (connected || !state.gone.contains_key(rank)) && !peer.session.is_settled()
            };
            !state.peers.iter().any(owing)
        })
    }

    fn part(&self, wait: &Wait, is_done: impl Fn(&State) -> bool) -> Result<()> {
        if self.enter()?.left {
            return Ok(());
        }
        self.change(|state| {
            state.originate(News::Left);
            Ok(())
        })?;
        let parted = self.block(wait, "leaving the job", &[], |state| {
            Ok(is_done(state).then_some(()))
        });
        let mut state = self.enter()?;
        state.left = true;
        state.hub.shut_down();
        drop(state);
        self.wake_others(None);
        match parted {
            // Another thread left at the same time.
            Err(BootstrapError::Departed { .. }) => Ok(()),
            parted => parted,
        }
    }

    /// The lock, unless this process was forked from the rank's: then the lock may be held for ever.
    fn enter(&self) -> Result<MutexGuard<'_, State>> {
        if std::process::id() != self.process {
            return Err(BootstrapError::ForkedProcess {
                rank: self.rank,
                parent: self.process,
            });
        }
        Ok(self.state.lock().unwrap_or_else(|e| e.into_inner()))
    }

    fn wake_others(&self, own: Option<&Arc<Bell>>) {
        let waiters = self.waiters.lock().unwrap_or_else(|e| e.into_inner());
        waiters
            .iter()
            .filter(|bell| !own.is_some_and(|own| Arc::ptr_eq(own, bell)))
            .for_each(|bell| bell.ring());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // In a forked child nothing but its own copies of the descriptors is closed; the drop of the fields does it.
        if std::process::id() == self.process {
            // Nobody is left to hear of a failure.
            let _ = self.part(&Wait::at_most(PARTING), |state| {
                !state.is_dialling() && state.hub.is_flushed()
            });
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

/// A bell among those that are rung, until it is dropped.
struct Listed<'a> {
    shared: &'a Shared,
    bell: Arc<Bell>,
}

impl<'a> Listed<'a> {
    fn new(shared: &'a Shared, bell: &Arc<Bell>) -> Listed<'a> {
        shared
            .waiters
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .push(Arc::clone(bell));
        Listed {
            shared,
            bell: Arc::clone(bell),
        }
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.shared
            .waiters
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .retain(|bell| !Arc::ptr_eq(bell, &self.bell));
    }
}
