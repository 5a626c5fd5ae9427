//! REDUCE, SCALE and CALL: what makes new elements.
#![allow(unsafe_code, reason = "commands carry addresses, and CALL a function")]

use std::ffi::c_void;

use unisono_plugin::abi::{Combine, CommandCall, CommandReduce, CommandScale, reduction::PROD};
use unisono_plugin::{Error, Result};

use super::handed::{Handed, What};
use super::transfer::{Progress, at, overlap, partly_overlap, wants_streaming};
use crate::config::Config;
use crate::reduce::{Dtype, Kernel};

/// Elements of which so few are combined at once that what there is to decide for many would take longer. For hosts that do
/// not call [`combine`], and what they divide.
const FEW: u64 = 1024;

/// Refuses what no kernel can do or what would give wrong results.
pub(super) fn check_reduce(command: &CommandReduce, config: &Config) -> Result<()> {
    let CommandReduce {
        dst,
        a,
        b,
        elements,
        dtype,
        reduction,
        ..
    } = *command;
    if config.kernel(dtype, reduction).is_none() {
        return Err(Error::unsupported(format!(
            "no reduction {reduction} on data type {dtype}"
        )));
    }
    let bytes = elements.saturating_mul(element_bytes(dtype));
    apart("REDUCE", dst, &[a, b], bytes)
}

/// Refuses a SCALE that would give wrong results.
pub(super) fn check_scale(command: &CommandScale) -> Result<()> {
    let bytes = command
        .elements
        .saturating_mul(element_bytes(command.dtype));
    apart("SCALE", command.dst, &[command.src], bytes)
}

/// Refuses a CALL that would give wrong results.
pub(super) fn check_call(command: &CommandCall) -> Result<()> {
    let bytes = command.elements.saturating_mul(command.element_bytes);
    apart("CALL", command.dst, &[command.a, command.b], bytes)
}

fn apart(what: &str, dst: u64, operands: &[u64], bytes: u64) -> Result<()> {
    match operands
        .iter()
        .find(|&&operand| partly_overlap(dst, operand, bytes))
    {
        Some(&operand) => Err(overlap(what, dst, operand, bytes)),
        None => Ok(()),
    }
}

fn element_bytes(dtype: u16) -> u64 {
    Dtype::from_code(dtype).map_or(1, Dtype::bytes) as u64
}

/// Does a whole REDUCE; `false` if no kernel can.
///
/// # Safety
/// As for [`reduce`]; the three are equal or apart.
#[inline]
pub(crate) unsafe fn reduce_at_once(command: &CommandReduce, config: &Config) -> bool {
    let Some(kernel) = config.kernel(command.dtype, command.reduction) else {
        return false;
    };
    let plain = command.repeat == 1 && command.divisor == 0 && command.head.flags == 0;
    if plain && command.elements <= FEW {
        let place = |address| at(address, 0, 0, 0);
        let (dst, a, b) = (place(command.dst), place(command.a), place(command.b));
        // SAFETY: the caller's promise.
        unsafe { kernel.run_plain(dst, a, b, command.elements as usize) };
        return true;
    }
    let (mut progress, mut budget) = (Progress::default(), u64::MAX);
    // SAFETY: the caller's promise.
    unsafe { reduce(command, kernel, &mut progress, &mut budget, config, None) }
}

/// One run of elements, undivided: what a kernel of a [`Config`] does that an instance has given out.
///
/// # Safety
/// The context is such a kernel, and the instance lives; else as for [`reduce`].
pub(crate) unsafe extern "C" fn combine(
    context: *mut c_void,
    dst: *mut c_void,
    a: *const c_void,
    b: *const c_void,
    elements: u64,
) {
    // SAFETY: the caller's promise; kernels stay where they are for as long as the instance has them.
    unsafe {
        let kernel = &*context.cast_const().cast::<Kernel>();
        kernel.run_plain(dst.cast(), a.cast(), b.cast(), elements as usize);
    }
}

/// Goes on with a REDUCE; `true` when it is complete.
///
/// # Safety
/// Operands and result are mapped, and nobody else uses the result or writes the operands.
pub(super) unsafe fn reduce(
    command: &CommandReduce,
    kernel: &Kernel,
    progress: &mut Progress,
    budget: &mut u64,
    config: &Config,
    mut handed: Option<&mut Handed>,
) -> bool {
    let CommandReduce {
        dst,
        a,
        b,
        elements,
        repeat,
        dst_stride,
        a_stride,
        b_stride,
        ..
    } = *command;
    let element = element_bytes(command.dtype);
    let bytes = elements * element;
    let streaming = wants_streaming(command.head.flags, bytes, config);
    progress.advance(repeat, bytes, budget, |piece, offset, length| {
        let dst = at(dst, piece, dst_stride, offset);
        let write = |past| {
            // SAFETY: the caller's promise; the three are equal or apart, as was checked.
            unsafe {
                kernel.run(
                    dst,
                    at(a, piece, a_stride, offset),
                    at(b, piece, b_stride, offset),
                    (length / element) as usize,
                    command.divisor,
                    streaming || past,
                );
            }
        };
        match &mut handed {
            Some(handed) => handed.write(What::Reduced, dst as u64, length, write),
            None => write(false),
        }
    })
}

/// Goes on with a SCALE; `true` when it is complete.
///
/// # Safety
/// Operand and result are mapped, and nobody else uses the result or writes the operand.
pub(super) unsafe fn scale(
    command: &CommandScale,
    progress: &mut Progress,
    budget: &mut u64,
    config: &Config,
) -> bool {
    let Some(kernel) = config.kernel(command.dtype, PROD) else {
        return true;
    };
    let element = element_bytes(command.dtype);
    let bytes = command.elements * element;
    progress.advance(command.repeat, bytes, budget, |piece, offset, length| {
        // SAFETY: the caller's promise; the two are equal or apart, as was checked.
        unsafe {
            kernel.run_with(
                at(command.dst, piece, command.dst_stride, offset),
                at(command.src, piece, command.src_stride, offset),
                &command.factor,
                (length / element) as usize,
            );
        }
    })
}

/// Goes on with a CALL; `true` when it is complete.
///
/// # Safety
/// The function is one, and may be called with what the command says.
pub(super) unsafe fn call(
    command: &CommandCall,
    progress: &mut Progress,
    budget: &mut u64,
) -> bool {
    let size = command.element_bytes.max(1);
    // Counted in elements, so that none is torn.
    let mut elements = budget.div_ceil(size);
    let done = progress.advance(1, command.elements, &mut elements, |_, first, count| {
        let place = |base: u64| at(base, 0, 0, first * size);
        // SAFETY: the contract says what `function` is, and that it is not NULL was checked.
        unsafe {
            let function = core::mem::transmute::<usize, Combine>(command.function as usize);
            function(
                command.context as usize as *mut _,
                place(command.dst).cast(),
                place(command.a).cast_const().cast(),
                place(command.b).cast_const().cast(),
                count,
            );
        }
    });
    *budget = elements.saturating_mul(size).min(*budget);
    done
}
