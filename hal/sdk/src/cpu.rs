//! What the host may do by itself on devices that are the CPU: the optional table `unisono.cpu`.

use std::ffi::c_void;

use unisono_abi::{Combine, CommandReduce};

use crate::{Instance, raw};

/// An instance whose devices are the CPU. Offered from [`Instance::interface`] by
/// [`cpu_interface`]. Any thread may call, at any time; no function blocks.
pub trait CpuInstance: Instance {
    /// After flags were raised: wakes whom SIGNALs with these bells would wake.
    ///
    /// # Safety
    /// Each is the address of a bell that this process owns or imported and has not freed.
    #[allow(unsafe_code, reason = "bells are addresses")]
    unsafe fn ring(&self, bells: &[u64]);

    /// What a REDUCE does, with the same bits. False: it cannot, and nothing was done.
    ///
    /// # Safety
    /// As for a REDUCE in a batch: operands and result are good, and nothing else uses the result
    /// or writes the operands.
    #[allow(unsafe_code, reason = "commands carry addresses")]
    unsafe fn reduce(&self, command: &CommandReduce) -> bool;

    /// What a REDUCE of this type and reduction, by their numbers in the contract, does with one run of elements, however many,
    /// undivided and with the same bits, so that no command is made for each. `None`: there is no such function, and each
    /// comes as a command. What was given out is called when the instance is poisoned, too. Since 1.9.
    fn combiner(&self, dtype: u16, reduction: u16) -> Option<Combiner> {
        let _ = (dtype, reduction);
        None
    }
}

/// A function that combines, and the context that it is called with: good from any thread, for as long as the instance lives.
/// A panic there ends the process, as in any `extern "C"` function.
#[derive(Clone, Copy, Debug)]
pub struct Combiner {
    pub(crate) function: Combine,
    pub(crate) context: *mut c_void,
}

impl Combiner {
    /// A function, `dst[i] = a[i] combined with b[i]`, where `dst` may be `a` or `b`, and its first argument.
    ///
    /// # Safety
    /// The function may be called with the context from any thread, by several at a time, for as long as the instance lives.
    #[allow(unsafe_code, reason = "the context is an address")]
    #[must_use]
    pub unsafe fn new(function: Combine, context: *mut c_void) -> Self {
        Self { function, context }
    }
}

/// The table of a CPU's instance, if that is what `id` asks for; else NULL.
#[must_use]
pub fn cpu_interface<I: CpuInstance>(id: &str) -> *const c_void {
    if id == unisono_abi::CPU_INTERFACE {
        (&raw const *raw::cpu::table::<I>()).cast()
    } else {
        std::ptr::null()
    }
}
