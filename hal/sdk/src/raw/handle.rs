//! What lies behind the handles.

use std::cell::UnsafeCell;
use std::ffi::c_void;

use super::guard::Poison;

/// Behind `unisono_instance`.
pub struct InstanceHandle<T> {
    pub poison: Poison,
    pub instance: T,
}

/// Behind `unisono_device`.
pub struct DeviceHandle<T> {
    pub poison: Poison,
    pub device: T,
}

/// Behind `unisono_memory`.
pub struct MemoryHandle<T> {
    pub poison: Poison,
    pub memory: T,
}

/// Behind `unisono_event`.
pub struct EventHandle<T> {
    pub poison: Poison,
    pub event: T,
}

/// Behind `unisono_stream` and `unisono_link`: the queue, which one thread at a time may use, and
/// its control, which any may.
pub struct QueueHandle<Q, C> {
    pub poison: Poison,
    pub control: C,
    pub queue: UnsafeCell<Q>,
}

impl<Q, C> QueueHandle<Q, C> {
    /// The queue.
    ///
    /// # Safety
    /// No other call on this queue runs: the contract's `[handle]`.
    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "the host serialises the calls on one handle"
    )]
    pub unsafe fn queue(&self) -> &mut Q {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.queue.get() }
    }
}

/// Gives a value to the host.
pub fn give<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

/// Borrows a handle; `None` if it is NULL.
///
/// # Safety
/// It is NULL or came from [`give`] of the same `T` and is not taken back while `'a`.
#[inline]
pub unsafe fn borrow<'a, T>(handle: *mut c_void) -> Option<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { handle.cast::<T>().as_ref() }
}

/// Takes a handle back; `None` if it is NULL.
///
/// # Safety
/// It is NULL or came from [`give`] of the same `T`, and nobody uses it any more.
pub unsafe fn take<T>(handle: *mut c_void) -> Option<Box<T>> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { Box::from_raw(handle.cast()) })
}
