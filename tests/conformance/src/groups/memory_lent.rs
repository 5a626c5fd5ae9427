//! Memory of the caller's.

#![allow(unsafe_code, reason = "lends memory of its own to the plugin")]

use unisono_abi::command_kind;
use unisono_hal::Device;

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, ensure};
use crate::queue;
use crate::store::Store;

const G: &str = "memory";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "register",
        "Memory of the caller's can be registered and used.",
        register,
    ),
    Check::one(
        G,
        "wrap",
        "Device memory of the caller's can be wrapped and used.",
        wrap,
    ),
];

fn register(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    case.needs(&[("memory", "register_host")])?;
    let mut own = vec![7_u8; 12_345];
    // SAFETY: the vector outlives the registration and no queue uses it after the drain.
    let memory = unsafe { device.register_host(own.as_mut_ptr().cast(), own.len() as u64) }?;
    use_it(&device, &own, memory.base())?;
    drop(memory);
    ensure!(own.iter().all(|byte| *byte == 7), "registering changed it");
    Ok(())
}

fn wrap(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    case.needs(&[("memory", "wrap")])?;
    let store = Store::new(&device, 5000)?;
    store.write(0, &[9; 5000])?;
    // SAFETY: the store outlives what wraps it.
    let memory = unsafe { device.wrap(store.at(), 5000) }?;
    use_it(&device, &[9; 5000], memory.base())?;
    drop(memory);
    ensure!(
        store.read(0, 5000)? == vec![9; 5000],
        "unwrapping changed it"
    );
    Ok(())
}

/// Copies from an address and compares.
fn use_it(device: &Device, expected: &[u8], base: u64) -> Checked {
    let store = Store::new(device, expected.len() as u64)?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.copy(store.at(), base, expected.len() as u64);
    queue::run(&mut stream, &mut batch)?;
    ensure!(
        store.read(0, expected.len() as u64)? == expected,
        "a copy from it is wrong"
    );
    Ok(())
}
