//! CALL: a function of the host's in the order of the stream.
#![allow(unsafe_code, reason = "a function that takes addresses")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use unisono_abi::{command_kind, dtype};
use unisono_hal::Call;

use super::Fixture;
use crate::case::{Case, supports};
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;

/// `dst[i] = 2 * a[i] - b[i]`: what no reduction of the contract is. Counts its elements.
unsafe extern "C" fn combine(
    context: *mut c_void,
    dst: *mut c_void,
    a: *const c_void,
    b: *const c_void,
    elements: u64,
) {
    let (dst, a, b) = (dst.cast::<u32>(), a.cast::<u32>(), b.cast::<u32>());
    for i in 0..elements as usize {
        // SAFETY: the command names memory for as many elements.
        unsafe {
            let value = a.add(i).read_unaligned().wrapping_mul(2);
            dst.add(i)
                .write_unaligned(value.wrapping_sub(b.add(i).read_unaligned()));
        }
    }
    // SAFETY: the command gives the counter below, which outlives it.
    unsafe { &*context.cast::<AtomicU64>() }.fetch_add(elements, Ordering::Relaxed);
}

pub(super) fn call(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    if !supports(&device, command_kind::CALL) {
        return Err(Stop::unsupported("`supports` says no to CALL"));
    }
    let mut fixture = Fixture::new(&device, dtype::U32)?;
    let elements = fixture.pairs.len() as u64;
    let called = AtomicU64::new(0);
    let mut command = Call {
        function: combine,
        context: (&raw const called) as usize as u64,
        dst: fixture.dst.at() + 4,
        a: fixture.a.at() + 4,
        b: fixture.b.at() + 4,
        elements,
        element_bytes: 4,
    };
    // Twice in one batch: the second, in place, sees what the first made.
    let mut batch = queue::batch();
    batch.call(&command);
    command.a = command.dst;
    batch.call(&command);
    queue::run(&mut fixture.stream, &mut batch)?;
    let found = called.load(Ordering::Relaxed);
    ensure!(
        found == 2 * elements,
        "the function got {found} elements, not {}",
        2 * elements
    );
    let bytes = fixture.dst.read(4, elements * 4)?;
    for (found, (a, b)) in bytes.chunks_exact(4).zip(&fixture.pairs) {
        let [a, b] = [*a as u32, *b as u32];
        let once = a.wrapping_mul(2).wrapping_sub(b);
        let wanted = once.wrapping_mul(2).wrapping_sub(b);
        ensure!(
            found == wanted.to_le_bytes(),
            "{a} and {b} give {found:02x?}, not {wanted}"
        );
    }
    Ok(())
}
