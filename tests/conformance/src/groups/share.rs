//! Memory that other processes map, and what goes through it.

use std::time::Duration;

use unisono_abi::{command_kind, reach, stream_can};
use unisono_hal::{Device, ExportKind, Memory, MemoryKind, MemoryRequest, Place, Queue, State};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::flags::Flags;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::sleep::{Sleeper, offered};
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
    Check::two(
        G,
        "alive_after_export",
        "A mapping stays when the exporter lets go.",
        alive,
    ),
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
        "signals",
        "Streams of two processes hand each other data by flags.",
        signals,
    ),
    Check::two(
        G,
        "bells",
        "A signal's bell wakes a sleeper of another process.",
        bells,
    ),
    Check::two(
        G,
        "exporter_killed",
        "A mapping of a killed process's memory stays readable.",
        killed,
    ),
];

fn sharing(case: &Case) -> Checked<Device> {
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

fn exportable(device: &Device, bytes: u64) -> Checked<Memory> {
    Ok(device.alloc(&MemoryRequest::new(MemoryKind::Data, bytes).exportable())?)
}

fn export(memory: &Memory) -> Checked<Vec<u8>> {
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
    if let Err(error) = exportable(&device, 4096)?.export(ExportKind::DmaBuf) {
        refused::<()>("exporting it as a dma-buf", Err(error), &[])?;
    } else {
        ensure!(
            device.info().reaches(reach::DMABUF),
            "it exports what it says it cannot"
        );
    }
    Ok(())
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

/// Own flags, and the peer's as they are seen here.
struct Pair {
    own: Flags,
    theirs: Memory,
}

impl Pair {
    fn new(case: &Case, device: &Device) -> Checked<Self> {
        let own = Flags::shared(device, 2)?;
        let description = case
            .peer()?
            .exchange(10, &export(own.region().memory()?)?)?;
        Ok(Self {
            own,
            theirs: device.import(&description)?,
        })
    }
}

fn signals(case: &Case) -> Checked {
    const ROUNDS: u64 = 2000;
    let (device, peer) = (sharing(case)?, case.peer()?);
    let pair = Pair::new(case, &device)?;
    let data = exportable(&device, 4096)?;
    let theirs = device.import(&peer.exchange(11, &export(&data)?)?)?;
    let data = Store::of(&device, data)?;
    let local = Store::new(&device, 4096)?;
    let mut stream = device.stream(0)?;
    let first = case.role() == 0;
    for round in 0..ROUNDS {
        let bytes = pattern(512, round * 2 + u64::from(!first));
        local.write(0, &bytes)?;
        let mut put = queue::batch();
        let words = Some([round, 1, 2]);
        put.copy(theirs.base(), local.at(), 512);
        put.signal(pair.theirs.base(), pair.own.counter(0), 0, words);
        let mut get = queue::batch();
        get.wait(pair.own.flag(0), pair.own.counter(1), words);
        get.copy(local.at() + 1024, data.at(), 512);
        let batches = if first {
            [&mut put, &mut get]
        } else {
            [&mut get, &mut put]
        };
        for batch in batches {
            queue::submit(&mut stream, batch)?;
        }
        queue::drain(&mut stream).map_err(|e| e.at(format!("round {round}")))?;
        let expected = pattern(512, round * 2 + u64::from(first));
        let right = local.read(1024, 512)? == expected;
        ensure!(right, "round {round}: the data came after its flag");
    }
    peer.meet(12)
}

fn bells(case: &Case) -> Checked {
    let (device, peer) = (sharing(case)?, case.peer()?);
    case.needs(&[("stream", "arm")])?;
    if !device.info().streams_can(stream_can::RINGS) {
        return Err(Stop::unsupported("its signals ring no bell"));
    }
    let pair = Pair::new(case, &device)?;
    let bell = device.alloc(&MemoryRequest::new(MemoryKind::Bell, 64).exportable())?;
    let theirs = device.import(&peer.exchange(13, &export(&bell)?)?)?;
    let mut probe = device.stream(0)?;
    let mut wait = queue::batch();
    wait.wait(pair.own.flag(1), pair.own.counter(1), None);
    queue::submit(&mut probe, &mut wait)?;
    queue::until("waiting", || {
        Ok(probe.poll(queue::BUDGET)?.state == State::Waiting)
    })?;
    let ways = offered(&mut probe)?;
    drop(probe);
    pair.own.set_counter(1, 0);
    let sleeper = Sleeper::new();
    for (way, name) in ways {
        let mut stream = device.stream(0)?;
        for round in 0..2000 {
            let mut batch = queue::batch();
            let signal = |batch: &mut unisono_hal::Batch| {
                batch.signal(pair.theirs.base(), pair.own.counter(0), theirs.base(), None);
            };
            if case.role() == 0 {
                signal(&mut batch);
            }
            batch.wait(pair.own.flag(0), pair.own.counter(1), None);
            if case.role() == 1 {
                signal(&mut batch);
            }
            queue::submit(&mut stream, &mut batch)?;
            let slept = sleeper.drain(&mut stream, way);
            slept.map_err(|e| e.at(format!("round {round} by {name}")))?;
        }
        peer.meet(14)?;
    }
    Ok(())
}
