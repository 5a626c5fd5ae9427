//! Memory that other processes map, and what goes through it.

#![allow(unsafe_code, reason = "takes a descriptor that a plugin gives")]

use std::os::fd::FromRawFd;

use unisono_abi::{command_kind, reach};
use unisono_hal::{Device, ExportKind, Memory, MemoryKind, MemoryRequest, Place};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::store::Store;

const G: &str = "share";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "both_see_it",
        "What one process writes, the other reads, both ways.",
        both,
    ),
    Check::two(G, "lazy", "Lazy memory can be shared.", lazy),
    Check::one(
        G,
        "in_own_process",
        "In the exporting process it has the exporter's address.",
        own,
    ),
    Check::one(
        G,
        "not_exportable",
        "Memory that was not made for export is refused, with words.",
        not_exportable,
    ),
    Check::one(
        G,
        "garbage",
        "Descriptions that nobody made are refused, with words.",
        garbage,
    ),
];

pub(super) fn sharing(case: &Case) -> Checked<Device> {
    let device = case.streams(command_kind::COPY)?;
    case.needs(&[("memory", "export_memory"), ("memory", "import_memory")])?;
    if device.info().reaches(reach::PROCESS) {
        Ok(device)
    } else {
        Err(Stop::unsupported(
            "the device says that other processes cannot map its memory",
        ))
    }
}

pub(super) fn exportable(device: &Device, bytes: u64) -> Checked<Memory> {
    Ok(device.alloc(&MemoryRequest::new(MemoryKind::Data, bytes).exportable())?)
}

pub(super) fn export(memory: &Memory) -> Checked<Vec<u8>> {
    Ok(memory.export(ExportKind::Process)?)
}

fn share_and_write(case: &Case, request: MemoryRequest) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    let len = request.bytes;
    let (first, second) = (pattern(len as usize, 1), pattern(len as usize, 2));
    if case.role() == 0 {
        let store = Store::of(&device, device.alloc(&request)?)?;
        store.write(0, &first)?;
        peer.send(1, &export(store.memory())?)?;
        peer.recv(2)?;
        ensure!(
            store.read(0, len)? == second,
            "what the importer wrote is not there"
        );
        peer.send(3, &[])?;
        return Ok(());
    }
    let imported = device.import(&peer.recv(1)?)?;
    let place = imported.view().place;
    ensure!(
        place == Place::Imported,
        "imported memory lies at {place:?}"
    );
    ensure!(
        imported.len() == len,
        "{len} bytes became {}",
        imported.len()
    );
    let (store, mut stream) = (Store::new(&device, len)?, device.stream(0)?);
    let mut batch = queue::batch();
    batch.copy(store.at(), imported.base(), len);
    queue::run(&mut stream, &mut batch)?;
    ensure!(
        store.read(0, len)? == first,
        "what the exporter wrote is not there"
    );
    store.write(0, &second)?;
    let mut batch = queue::batch();
    batch.copy(imported.base(), store.at(), len);
    queue::run(&mut stream, &mut batch)?;
    peer.send(2, &[])?;
    peer.recv(3).map(|_| ())
}

fn both(case: &Case) -> Checked {
    for bytes in [1, 4096, 100_001] {
        share_and_write(
            case,
            MemoryRequest::new(MemoryKind::Data, bytes).exportable(),
        )?;
    }
    share_and_write(
        case,
        MemoryRequest::new(MemoryKind::Signal, 8192).exportable(),
    )
}

fn lazy(case: &Case) -> Checked {
    let request = MemoryRequest::new(MemoryKind::Data, 4 << 20);
    share_and_write(case, request.exportable().lazy().align(4096))
}

fn own(case: &Case) -> Checked {
    let device = sharing(case)?;
    let memory = exportable(&device, 10_000)?;
    let description = export(&memory)?;
    let imported = device.import(&description)?;
    ensure!(
        imported.base() == memory.base(),
        "memory at {:#x} is imported at {:#x}",
        memory.base(),
        imported.base()
    );
    let other = case.device()?.import(&description)?;
    ensure!(
        other.base() == memory.base(),
        "another instance maps it elsewhere"
    );
    // Any of them may go first.
    drop(memory);
    let store = Store::of(&device, imported)?;
    store.write(0, &[1; 10_000])?;
    drop(other);
    ensure!(
        store.read(0, 10_000)? == vec![1; 10_000],
        "it went with another handle"
    );
    Ok(())
}

fn not_exportable(case: &Case) -> Checked {
    let device = sharing(case)?;
    let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 4096))?;
    if let Err(error) = memory.export(ExportKind::Process) {
        refused::<()>("exporting it", Err(error), &[])?;
    }
    let request = MemoryRequest::new(MemoryKind::Data, 4096).exportable();
    match device
        .alloc(&request.align(65536))?
        .export(ExportKind::DmaBuf)
    {
        Err(error) => refused::<()>("exporting it as a dma-buf", Err(error), &[]).map(drop),
        Ok(description) => {
            let file = <[u8; 4]>::try_from(description.as_slice()).map(i32::from_ne_bytes);
            // SAFETY: by the contract it is a descriptor of this process's own.
            let file = file.map(|file| unsafe { std::fs::File::from_raw_fd(file) });
            ensure!(
                file.is_ok_and(|file| file.metadata().is_ok()),
                "what it gives for a dma-buf is no descriptor"
            );
            ensure!(
                device.info().reaches(reach::DMABUF),
                "it exports what it says it cannot"
            );
            Ok(())
        }
    }
}

fn garbage(case: &Case) -> Checked {
    let device = sharing(case)?;
    let memory = exportable(&device, 4096)?;
    let good = export(&memory)?;
    ensure!(!good.is_empty(), "a description is empty");
    let mut bad = vec![
        Vec::new(),
        vec![0; good.len()],
        vec![0xff; good.len()],
        vec![0xff; unisono_abi::EXPORT_MAX],
        good[..good.len() - 1].to_vec(),
        good[..good.len() / 2].to_vec(),
    ];
    let mut longer = good.clone();
    longer.push(0);
    bad.push(longer);
    for (number, description) in bad.iter().enumerate() {
        let what = format!("description {number} of {} bytes", description.len());
        refused(&what, device.import(description), &[])?;
    }
    Ok(())
}
