//! Memory of one process.

use unisono_abi::reach;
use unisono_hal::{Device, MemoryKind, MemoryRequest, Place};

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::store::Store;

const G: &str = "memory";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "zeroed",
        "New memory of each kind and size is zero.",
        zeroed,
    ),
    Check::one(
        G,
        "zeroed_again",
        "Memory that was used before is zero again.",
        zeroed_again,
    ),
    Check::one(
        G,
        "aligned",
        "It is aligned as asked, up to a page.",
        aligned,
    ),
    Check::one(G, "lazy", "Lazy memory behaves as any other.", lazy),
    Check::one(
        G,
        "reach",
        "Memory of a device that the processor reaches has an address for it.",
        reached,
    ),
    Check::one(
        G,
        "signal",
        "The processor reaches memory for signals.",
        signal,
    ),
    Check::one(
        G,
        "bell",
        "The bell is the same for the whole process.",
        bell,
    ),
    Check::one(
        G,
        "query",
        "An address inside is found, one outside is not.",
        query,
    ),
    Check::one(
        G,
        "query_after_free",
        "Memory that was freed is not found.",
        query_after_free,
    ),
    Check::one(
        G,
        "generation",
        "Another allocation at the same address has another number.",
        generation,
    ),
    Check::one(
        G,
        "too_much",
        "What nobody has is refused, with words.",
        too_much,
    ),
    Check::one(
        G,
        "any_thread",
        "Memory is made, found and freed from any thread.",
        any_thread,
    ),
];

fn device(case: &Case) -> Checked<Device> {
    let device = case.device()?;
    case.needs(&[("memory", "alloc")])?;
    Ok(device)
}

fn is_zero(store: &Store) -> Checked<bool> {
    Ok(store
        .read(0, store.memory().len())?
        .iter()
        .all(|byte| *byte == 0))
}

fn zeroed(case: &Case) -> Checked {
    let device = device(case)?;
    for kind in [MemoryKind::Data, MemoryKind::Signal, MemoryKind::Staging] {
        for bytes in [1, 64, 4096, 4097, (1 << 20) + 1] {
            let memory = device.alloc(&MemoryRequest::new(kind, bytes))?;
            let store = Store::of(&device, memory)?;
            ensure!(is_zero(&store)?, "{bytes} bytes of {kind:?} are not zero");
        }
    }
    Ok(())
}

fn zeroed_again(case: &Case) -> Checked {
    let device = device(case)?;
    for round in 0..20 {
        let store = Store::new(&device, 65536)?;
        ensure!(is_zero(&store)?, "in round {round} it is not zero");
        store.write(0, &[0xa5; 65536])?;
    }
    Ok(())
}

fn aligned(case: &Case) -> Checked {
    let device = device(case)?;
    for shift in 0..=12 {
        // The host checks the answer.
        device.alloc(&MemoryRequest::new(MemoryKind::Data, 100).align(1 << shift))?;
    }
    let default = device.alloc(&MemoryRequest::new(MemoryKind::Data, 100).align(0))?;
    ensure!(
        default.base() % 64 == 0,
        "without an alignment it is not aligned to 64"
    );
    Ok(())
}

fn lazy(case: &Case) -> Checked {
    let device = device(case)?;
    let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 8 << 20).lazy())?;
    let store = Store::of(&device, memory)?;
    store.write((8 << 20) - 3, &[1, 2, 3])?;
    ensure!(
        store.read(4 << 20, 4096)? == vec![0; 4096],
        "the middle is not zero"
    );
    ensure!(
        store.read((8 << 20) - 4, 4)? == [0, 1, 2, 3],
        "the end does not hold"
    );
    Ok(())
}

fn reached(case: &Case) -> Checked {
    let device = device(case)?;
    let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 4096))?;
    let view = memory.view();
    ensure!(
        view.place == Place::Device,
        "memory of the device lies at {:?}",
        view.place
    );
    ensure!(
        view.device == device.info().id,
        "it belongs to another device"
    );
    if device.info().reaches(reach::HOST) {
        ensure!(
            view.host != 0,
            "the device says the processor reaches it; there is no address"
        );
    }
    Ok(())
}

fn signal(case: &Case) -> Checked {
    let memory = device(case)?.alloc(&MemoryRequest::new(MemoryKind::Signal, 4096))?;
    ensure!(
        memory.host_ptr().is_some(),
        "there is no address for the processor"
    );
    ensure!(memory.base() % 64 == 0, "it is not aligned to a flag line");
    Ok(())
}

fn bell(case: &Case) -> Checked {
    let request = MemoryRequest::new(MemoryKind::Bell, 64);
    let device = device(case)?;
    let first = device.alloc(&request.exportable())?;
    let again = device.alloc(&request.exportable())?;
    ensure!(
        first.base() == again.base(),
        "two bells of one process differ"
    );
    let other = case.device()?.alloc(&request.exportable())?;
    ensure!(
        first.base() == other.base(),
        "another instance has another bell"
    );
    Ok(())
}

fn query(case: &Case) -> Checked {
    let device = device(case)?;
    case.needs(&[("memory", "query")])?;
    let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 10_000))?;
    for offset in [0, 1, 5000, 9999] {
        let found = device.query(memory.base() + offset)?;
        let view = found.ok_or_else(|| Stop::failed(format!("offset {offset} is not found")))?;
        ensure!(
            view == *memory.view(),
            "offset {offset} gives {view:?}, not {:?}",
            memory.view()
        );
    }
    let after = device.query(memory.base() + memory.len())?;
    let same = after.is_some_and(|view| view.generation == memory.view().generation);
    ensure!(!same, "the address after the last is found");
    let local = 0_u64;
    let found = device.query(&raw const local as u64)?;
    ensure!(
        found.is_none(),
        "an address on the stack is found: {found:?}"
    );
    ensure!(device.query(0)?.is_none(), "address 0 is found");
    Ok(())
}

fn query_after_free(case: &Case) -> Checked {
    let device = device(case)?;
    case.needs(&[("memory", "query")])?;
    let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 10_000))?;
    let old = *memory.view();
    drop(memory);
    ensure!(device.query(old.base)?.is_none(), "it is still found");
    Ok(())
}

fn generation(case: &Case) -> Checked {
    let device = device(case)?;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 4096))?;
        let key = (memory.base(), memory.view().generation);
        ensure!(
            seen.insert(key),
            "{key:?}, address and generation, came twice"
        );
    }
    Ok(())
}

fn too_much(case: &Case) -> Checked {
    let device = device(case)?;
    for bytes in [1 << 60, u64::MAX - 4096, u64::MAX] {
        let answer = device.alloc(&MemoryRequest::new(MemoryKind::Data, bytes));
        refused(&format!("allocating {bytes} bytes"), answer, &[])?;
    }
    Ok(())
}

fn any_thread(case: &Case) -> Checked {
    let device = device(case)?;
    let queries = case.has("memory", "query")?;
    let work = || -> Checked {
        for bytes in 1..200 {
            let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, bytes * 100))?;
            if queries {
                let found = device.query(memory.base())?;
                ensure!(
                    found == Some(*memory.view()),
                    "another thread's memory is found"
                );
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))??;
        }
        Ok(())
    })
}
