//! Nothing is left behind, whatever the order in which things go.

use unisono_abi::command_kind;
use unisono_hal::{Device, MemoryKind, MemoryRequest, Queue};

use crate::case::Case;
use crate::census::holds_nothing;
use crate::check::Check;
use crate::ends::{self, Ends, posted};
use crate::flags::Flags;
use crate::outcome::Checked;
use crate::queue;
use crate::sleep::offered;
use crate::store::Store;

const G: &str = "leaks";
const ROUNDS: usize = 50;

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "instances",
        "50 instances leave no descriptor, mapping or thread.",
        instances,
    ),
    Check::one(
        G,
        "memory",
        "50 pieces of memory of each kind leave nothing.",
        memory,
    ),
    Check::one(
        G,
        "streams",
        "50 streams that worked, slept and failed leave nothing.",
        streams,
    ),
    Check::one(G, "events", "50 events leave nothing.", events),
    Check::one(
        G,
        "any_order",
        "What was made goes in any order.",
        any_order,
    ),
    Check::two(
        G,
        "links",
        "50 links that came up and went leave nothing.",
        links,
    ),
    Check::two(
        G,
        "unconnected_links",
        "50 links that never came up leave nothing.",
        unconnected,
    ),
];

fn instances(case: &Case) -> Checked {
    holds_nothing(ROUNDS, || {
        let instance = case.instance()?;
        for device in instance.devices()? {
            instance.open(device.index)?;
        }
        instance.link_report()?;
        instance.address()?;
        Ok(())
    })
}

fn memory(case: &Case) -> Checked {
    let device = case.device()?;
    case.needs(&[("memory", "alloc")])?;
    holds_nothing(ROUNDS, || {
        for kind in [
            MemoryKind::Data,
            MemoryKind::Signal,
            MemoryKind::Staging,
            MemoryKind::Bell,
        ] {
            for exportable in [false, true] {
                let mut request = MemoryRequest::new(kind, 100_000);
                request.exportable = exportable;
                // What is unsupported must leave nothing behind either.
                if let Ok(memory) = device.alloc(&request) {
                    let _ = memory.export(unisono_hal::ExportKind::Process);
                }
            }
        }
        Ok(())
    })
}

fn streams(case: &Case) -> Checked {
    let device = case.streams(command_kind::WAIT)?;
    let (store, flags) = (Store::new(&device, 128)?, Flags::new(&device, 1)?);
    let sleeps = case.has("stream", "arm")?;
    holds_nothing(ROUNDS, || {
        let mut stream = device.stream(0)?;
        let mut batch = queue::batch();
        batch.copy(store.at() + 64, store.at(), 64);
        queue::run(&mut stream, &mut batch)?;
        let mut batch = queue::batch();
        batch.wait(flags.flag(0), flags.counter(0), None);
        queue::submit(&mut stream, &mut batch)?;
        queue::settle(&mut stream)?;
        if sleeps {
            // None at all is as good here.
            let _ = offered(&mut stream);
        }
        stream.aborter().abort();
        Ok(())
    })
}

fn events(case: &Case) -> Checked {
    let device = case.device()?;
    case.needs(&[("event", "create")])?;
    holds_nothing(ROUNDS, || {
        for _ in 0..20 {
            device.event()?;
        }
        Ok(())
    })
}

/// Makes one of each on a device of a new instance.
fn one_of_each(case: &Case) -> Checked<Vec<Box<dyn std::any::Any>>> {
    let device: Device = case.streams(command_kind::COPY)?;
    let mut out: Vec<Box<dyn std::any::Any>> = Vec::new();
    let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 4096))?;
    let stream = device.stream(0)?;
    out.push(Box::new(stream.aborter()));
    out.push(Box::new(device.instance().clone()));
    if case.has("event", "create")? {
        out.push(Box::new(device.event()?));
    }
    out.push(Box::new(memory));
    out.push(Box::new(stream));
    out.push(Box::new(device));
    Ok(out)
}

fn any_order(case: &Case) -> Checked {
    let mut shift = 0_usize;
    holds_nothing(ROUNDS, || {
        let mut all = one_of_each(case)?;
        shift += 1;
        let len = all.len();
        all.rotate_left(shift % len);
        if shift.is_multiple_of(2) {
            all.reverse();
        }
        while !all.is_empty() {
            all.remove(shift * 7 % all.len());
        }
        Ok(())
    })
}

fn links(case: &Case) -> Checked {
    posted(case)?;
    let mut round = 0;
    holds_nothing(ROUNDS, || {
        round += 1;
        let mut ends = Ends::connect(case, round)?;
        ends.put_one(round as u8)?;
        ends.part()
    })
}

fn unconnected(case: &Case) -> Checked {
    let instance = posted(case)?;
    let mut round = 1000;
    holds_nothing(ROUNDS, || {
        round += 1;
        let mut link = ends::link(case, &instance, round)?;
        // Only one end polls, so they cannot come up.
        if case.role() == 1 {
            let _ = link.poll(queue::BUDGET);
        }
        case.peer()?.meet(round)?;
        drop(link);
        case.peer()?.meet(round)
    })
}
