//! A stand-in for libibverbs: reliable connections between processes of one machine, in software and
//! strict. For tests of the roce plugin where there is no device.
//!
//! The plugin opens it like the real one (parameter `library`). Its devices are folders under the one
//! that `UNISONO_FAKE_VERBS` names, laid out as in sysfs; beside `ports` a folder may hold
//!
//! - `cut`: while this file is there, no packet leaves or reaches the device;
//! - `loss`: of so many packets in a thousand, all are lost;
//! - `inline`: the longest inline write, in bytes;
//! - `no_dmabuf`: while this file is there, the device registers no dma-buf.
//!
//! Any file stands for a dma-buf: the device maps it for itself, and reads and writes it there. The host
//! need not have the memory mapped, nor be allowed to touch it where it has.
//!
//! In that folder the library appends to the file `told` what each queue pair was told of its path and
//! its patience, a line for each of the two steps in which it is told.
//!
//! **Strict** means: what the verbs forbid ends the process with a word of why. So do posting beyond a
//! queue's depth (a slot is free again only when a completion behind it was *polled*), retrying for
//! ever, a source that changes before it is sent, completions that nobody had room for, and
//! destroying what is still in use. What is a device's to detect is a completion with its status: wrong
//! keys, closed windows, receives that are missing or too short, a peer that does not answer.
#![allow(unsafe_code, reason = "a C library's functions and structs")]

mod device;
mod engine;
mod exports;
mod packet;
mod queue;
mod state;

/// Ends the process: the caller broke the rules of verbs.
#[cold]
fn broken(what: &str) -> ! {
    eprintln!("fake verbs: {what}");
    std::process::abort()
}
