//! Shared memory whose owner is gone.

use std::time::Duration;

use unisono_hal::{Device, Memory};

use super::copy::pattern;
use super::share::{export, exportable, sharing};
use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, ensure, refused};
use crate::queue;
use crate::store::Store;

const G: &str = "share";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "alive_after_export",
        "A mapping stays when the exporter lets go.",
        alive,
    ),
    Check::two(
        G,
        "freed",
        "A description of memory that is gone is refused.",
        freed,
    ),
    Check::two(
        G,
        "exporter_dead",
        "A description of a process that is gone is refused.",
        dead,
    ),
    Check::two(
        G,
        "exporter_killed",
        "A mapping of a killed process's memory stays readable.",
        killed,
    ),
];

fn alive(case: &Case) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    let bytes = pattern(10_000, 3);
    if case.role() == 0 {
        let store = Store::of(&device, exportable(&device, 10_000)?)?;
        store.write(0, &bytes)?;
        peer.send(1, &export(store.memory())?)?;
        peer.recv(2)?;
        drop(store);
        peer.send(3, &[])?;
        return Ok(());
    }
    let imported = device.import(&peer.recv(1)?)?;
    peer.send(2, &[])?;
    peer.recv(3)?;
    read_back(&device, &imported, &bytes)
}

fn read_back(device: &Device, imported: &Memory, bytes: &[u8]) -> Checked {
    let len = bytes.len() as u64;
    let (store, mut stream) = (Store::new(device, len)?, device.stream(0)?);
    let mut batch = queue::batch();
    batch.copy(store.at(), imported.base(), len);
    queue::run(&mut stream, &mut batch)?;
    ensure!(
        store.read(0, len)? == bytes,
        "the mapping holds other bytes now"
    );
    Ok(())
}

fn freed(case: &Case) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    if case.role() == 0 {
        let memory = exportable(&device, 4096)?;
        let description = export(&memory)?;
        drop(memory);
        // Others at the same address or descriptor must not be taken for it.
        let _others: Vec<_> = (0..8)
            .map(|_| exportable(&device, 4096))
            .collect::<Result<_, _>>()?;
        peer.send(1, &description)?;
        return peer.meet(2);
    }
    let description = peer.recv(1)?;
    refused("memory that is gone", device.import(&description), &[])?;
    peer.meet(2)
}

fn dead(case: &Case) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    if case.role() == 1 {
        let memory = exportable(&device, 4096)?;
        peer.send(1, &export(&memory)?)?;
        peer.recv(2)?;
        die();
    }
    case.expect_death();
    let description = peer.recv(1)?;
    peer.send(2, &[])?;
    wait_for_death(peer);
    refused("memory of a dead process", device.import(&description), &[])?;
    Ok(())
}

fn killed(case: &Case) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    let bytes = pattern(10_000, 7);
    if case.role() == 1 {
        let store = Store::of(&device, exportable(&device, 10_000)?)?;
        store.write(0, &bytes)?;
        peer.send(1, &export(store.memory())?)?;
        peer.recv(2)?;
        die();
    }
    case.expect_death();
    let imported = device.import(&peer.recv(1)?)?;
    peer.send(2, &[])?;
    wait_for_death(peer);
    read_back(&device, &imported, &bytes)
}

/// Ends this process as `kill -9` would.
pub(super) fn die() -> ! {
    // If it fails the process ends a little more gently.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}

/// Returns once the other process has gone.
pub(super) fn wait_for_death(peer: &crate::peer::Peer) {
    // A dead process says nothing: this ends when its socket closes.
    let _ = peer.recv(u64::MAX >> 2);
    std::thread::sleep(Duration::from_millis(20));
}
