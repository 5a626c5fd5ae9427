//! Memory that peers can reach.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::ffi::c_void;

use unisono_collectives::Registration;

use super::comm::{Comm, answer, borrow, wanted};
use super::result::{guard, invalid};

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_alloc(comm: *mut Comm, bytes: usize, memory: *mut *mut c_void) -> i32 {
    guard(|| {
        wanted("memory", memory)?;
        // SAFETY: the caller gives a live handle.
        let comm = unsafe { borrow(comm) }?;
        let window = comm.communicator.alloc::<u8>(bytes)?;
        let address = window.address();
        comm.windows().insert(address, window);
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("memory", memory, address as usize as *mut c_void) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_free(comm: *mut Comm, memory: *mut c_void) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let comm = unsafe { borrow(comm) }?;
        if memory.is_null() {
            return Ok(());
        }
        let window = comm.windows().remove(&(memory as u64));
        match window {
            Some(window) => drop(window),
            None => {
                return Err(invalid(format!(
                    "{memory:p} is no memory that unisono_alloc gave for this communicator"
                )));
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_register(
    comm: *const Comm,
    memory: *mut c_void,
    bytes: usize,
    registration: *mut *mut Registration,
) -> i32 {
    guard(|| {
        wanted("registration", registration)?;
        wanted("memory", memory)?;
        // SAFETY: the caller gives a live handle.
        let communicator = &unsafe { borrow(comm) }?.communicator;
        // SAFETY: the caller keeps the memory mapped until it deregisters it.
        let made = unsafe { communicator.register(memory.cast(), bytes as u64) }?;
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("registration", registration, Box::into_raw(Box::new(made))) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_deregister(registration: *mut Registration) -> i32 {
    guard(|| {
        if !registration.is_null() {
            // SAFETY: it comes from `unisono_register`, and the caller gives it back once.
            unsafe { Box::from_raw(registration) }.end()?;
        }
        Ok(())
    })
}
