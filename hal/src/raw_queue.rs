//! The one implementation of [`Queue`](crate::Queue) behind streams and links.
//!
//! Both tables have the same functions but for the type of the handle, so this is generic over it.
//! `submit` and `poll` are one indirect call each: the error record is kept between calls, because
//! a plugin writes it only when it fails.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::ffi::c_void;
use std::sync::Arc;

use unisono_abi as abi;

use crate::error::{call_done, record};
use crate::queue::Abort;
use crate::{Aborter, Batch, Error, QueueState, Result, Sleep, SleepWays, State, Status, Waker};

/// The functions of a queue.
#[derive(Clone, Copy)]
pub(crate) struct QueueFns<H> {
    pub(crate) destroy: unsafe extern "C" fn(H),
    pub(crate) submit:
        unsafe extern "C" fn(H, *const c_void, u64, u32, *mut u32, *mut abi::Error) -> abi::Status,
    pub(crate) poll:
        unsafe extern "C" fn(H, u64, *mut abi::QueueState, *mut abi::Error) -> abi::Status,
    pub(crate) arm: unsafe extern "C" fn(
        H,
        u32,
        *const abi::Waker,
        *mut abi::Sleep,
        *mut abi::Error,
    ) -> abi::Status,
    pub(crate) disarm: unsafe extern "C" fn(H),
    pub(crate) query: unsafe extern "C" fn(H, *mut abi::QueueState) -> abi::Status,
    pub(crate) abort: unsafe extern "C" fn(H),
}

/// Names of the calls, for errors.
#[derive(Clone, Copy)]
pub(crate) struct QueueNames {
    pub(crate) submit: &'static str,
    pub(crate) poll: &'static str,
    pub(crate) arm: &'static str,
    pub(crate) query: &'static str,
}

/// The handle, and all that must outlive it.
pub(crate) struct Shared<H: Copy, P> {
    pub(crate) handle: H,
    fns: QueueFns<H>,
    names: QueueNames,
    pub(crate) plugin: &'static str,
    pub(crate) parent: P,
}

// SAFETY: a handle is an opaque pointer that may be used from any thread; of its functions only
// those that the contract marks [any] (query, abort) are called through a shared reference, and
// `destroy` runs when no other reference is left.
unsafe impl<H: Copy, P: Send> Send for Shared<H, P> {}
// SAFETY: as above.
unsafe impl<H: Copy, P: Sync> Sync for Shared<H, P> {}

pub(crate) struct RawQueue<H: Copy + 'static, P: Send + Sync + 'static> {
    pub(crate) shared: Arc<Shared<H, P>>,
    error: Box<abi::Error>,
    armed: bool,
    /// Kept until the next `arm` or the end of the queue: a plugin may hold its address.
    waker: Option<Waker>,
}

impl<H: Copy + 'static, P: Send + Sync + 'static> RawQueue<H, P> {
    /// # Safety
    /// `handle` is a live handle of the plugin whose functions `fns` are, owned by nobody else.
    pub(crate) unsafe fn new(
        handle: H,
        fns: QueueFns<H>,
        names: QueueNames,
        plugin: &'static str,
        parent: P,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                handle,
                fns,
                names,
                plugin,
                parent,
            }),
            error: Box::new(record()),
            armed: false,
            waker: None,
        }
    }

    #[inline]
    pub(crate) fn submit(&mut self, batch: &mut Batch) -> Result<u32> {
        let count = batch.len() as u32;
        if count == 0 {
            return Ok(0);
        }
        let shared = &*self.shared;
        let words = batch.words();
        let mut accepted = 0;
        // SAFETY: the handle is live; `&mut self` serialises the calls on it; the words hold
        // `count` whole commands, whose addresses are valid by the contract of `Batch::new`.
        let status = unsafe {
            (shared.fns.submit)(
                shared.handle,
                words.as_ptr().cast(),
                size_of_val(words) as u64,
                count,
                &raw mut accepted,
                &raw mut *self.error,
            )
        };
        if accepted > count {
            return Err(self.broken(
                self.shared.names.submit,
                format!("the plugin took {accepted} of {count} commands"),
            ));
        }
        batch.drop_front(accepted);
        if status == abi::status::OK || status == abi::status::AGAIN {
            return Ok(accepted);
        }
        Err(self.fail(self.shared.names.submit, status))
    }

    #[inline]
    pub(crate) fn poll(&mut self, budget: u64) -> Result<QueueState> {
        let shared = &*self.shared;
        let mut state = empty_state();
        // SAFETY: the handle is live, `&mut self` serialises the calls on it.
        let status = unsafe {
            (shared.fns.poll)(shared.handle, budget, &raw mut state, &raw mut *self.error)
        };
        if status == abi::status::OK || status == abi::status::AGAIN {
            return self.shared.state_from(self.shared.names.poll, &state);
        }
        Err(self.fail(self.shared.names.poll, status))
    }

    pub(crate) fn arm(&mut self, allowed: SleepWays, waker: &Waker) -> Result<Sleep> {
        if !self.waker.as_ref().is_some_and(|w| w.is(waker)) {
            self.disarm();
            self.waker = Some(waker.clone());
        }
        let shared = &*self.shared;
        let name = shared.names.arm;
        let mut sleep = abi::Sleep::zeroed();
        sleep.struct_size = size_of::<abi::Sleep>() as u32;
        // SAFETY: the handle is live, `&mut self` serialises the calls on it, and the waker lives
        // in `self` until the queue is disarmed or destroyed.
        let status = unsafe {
            (shared.fns.arm)(
                shared.handle,
                allowed.bits(),
                waker.raw(),
                &raw mut sleep,
                &raw mut *self.error,
            )
        };
        if status != abi::status::OK && status != abi::status::AGAIN {
            return Err(self.fail(name, status));
        }
        self.armed = true;
        let bad = |what: &str| Error::host(shared.plugin, name, Status::Invalid, what);
        if sleep.how & !allowed.bits() != 0 || !(sleep.how == 0 || sleep.how.is_power_of_two()) {
            let how = sleep.how;
            self.disarm();
            return Err(self.broken(
                name,
                format!("the plugin chose the way {how:#x} to sleep, which was not allowed"),
            ));
        }
        match sleep.how {
            abi::sleep::FUTEX if sleep.futex == 0 || !sleep.futex.is_multiple_of(4) => {
                Err(bad("the futex to sleep on is no aligned address"))
            }
            abi::sleep::FUTEX => Ok(Sleep::Futex {
                addr: sleep.futex as usize,
                value: sleep.futex_value,
            }),
            abi::sleep::FD if sleep.fd < 0 => Err(bad("the descriptor to sleep on is negative")),
            abi::sleep::FD => Ok(Sleep::Fd {
                fd: sleep.fd,
                events: sleep.fd_events,
            }),
            abi::sleep::WAKER => Ok(Sleep::Waker),
            _ => {
                self.disarm();
                Ok(Sleep::Ready)
            }
        }
    }

    pub(crate) fn disarm(&mut self) {
        if std::mem::take(&mut self.armed) {
            // SAFETY: the handle is live, `&mut self` serialises the calls on it.
            unsafe { (self.shared.fns.disarm)(self.shared.handle) }
        }
    }

    pub(crate) fn state(&self) -> Result<QueueState> {
        self.shared.query()
    }

    pub(crate) fn aborter(&self) -> Aborter {
        Aborter(Arc::clone(&self.shared) as Arc<dyn Abort>)
    }

    #[cold]
    fn broken(&self, call: &'static str, what: String) -> Error {
        Error::host(self.shared.plugin, call, Status::Invalid, what)
    }

    /// The error of a hot call, and a clean record for the next.
    #[cold]
    fn fail(&mut self, call: &'static str, status: abi::Status) -> Error {
        let error = if status < 0 {
            Error::from_record(self.shared.plugin, call, status, &self.error)
        } else {
            self.broken(call, format!("the plugin answered {status}, no status"))
        };
        *self.error = record();
        error
    }
}

impl<H: Copy + 'static, P: Send + Sync + 'static> Drop for RawQueue<H, P> {
    fn drop(&mut self) {
        self.disarm();
    }
}

impl<H: Copy, P> Shared<H, P> {
    fn query(&self) -> Result<QueueState> {
        let mut state = empty_state();
        call_done(self.plugin, self.names.query, |_| {
            // SAFETY: the handle is live, and query may be called from any thread.
            unsafe { (self.fns.query)(self.handle, &raw mut state) }
        })?;
        self.state_from(self.names.query, &state)
    }

    #[inline]
    fn state_from(&self, call: &'static str, raw: &abi::QueueState) -> Result<QueueState> {
        let Some(state) = State::from_raw(raw.state) else {
            return Err(self.unknown_state(call, raw.state));
        };
        Ok(QueueState {
            state,
            accepted: raw.accepted,
            completed: raw.completed,
            moved: raw.moved != 0,
        })
    }

    #[cold]
    fn unknown_state(&self, call: &'static str, state: u32) -> Error {
        let what = format!("the plugin answered the state {state}, which is none");
        Error::host(self.plugin, call, Status::Invalid, what)
    }
}

impl<H: Copy, P: Send + Sync> Abort for Shared<H, P> {
    fn abort(&self) {
        // SAFETY: the handle is live, and abort may be called from any thread.
        unsafe { (self.fns.abort)(self.handle) }
    }
}

impl<H: Copy, P> Drop for Shared<H, P> {
    fn drop(&mut self) {
        // A queue must be idle or aborted when it is destroyed.
        let idle = matches!(
            self.query(),
            Ok(QueueState {
                state: State::Idle,
                ..
            })
        );
        // SAFETY: this is the last reference to the handle; `parent` is still alive.
        unsafe {
            if !idle {
                (self.fns.abort)(self.handle);
            }
            (self.fns.destroy)(self.handle);
        }
    }
}

#[inline]
fn empty_state() -> abi::QueueState {
    let mut state = abi::QueueState::zeroed();
    state.struct_size = size_of::<abi::QueueState>() as u32;
    state
}
