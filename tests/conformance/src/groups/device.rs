//! Devices and what they say of themselves.

use std::collections::BTreeSet;

use unisono_abi::command_kind as kind;
use unisono_hal::{Place, Status, SupportQuery};

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure};
use crate::raw::RawInstance;

const G: &str = "device";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "described",
        "Each device has an identity, a name and queues.",
        described,
    ),
    Check::two(
        G,
        "same_in_other_processes",
        "Identities are the same in every process.",
        same,
    ),
    Check::one(
        G,
        "all_open",
        "Each listed device opens, also several times.",
        open,
    ),
    Check::one(
        G,
        "bad_index",
        "A device that is not there is refused, with words.",
        bad_index,
    ),
    Check::one(
        G,
        "unknown_unsupported",
        "`supports` says no to what it does not know.",
        unknown,
    ),
    Check::one(
        G,
        "flush",
        "Remote writes are flushed, or that is unsupported.",
        flush,
    ),
];

fn listed(case: &Case) -> Checked<Vec<unisono_hal::DeviceInfo>> {
    let devices = case.instance()?.devices()?;
    if devices.is_empty() {
        return Err(Stop::unsupported("the plugin has no devices here"));
    }
    Ok(devices)
}

fn described(case: &Case) -> Checked {
    let devices = listed(case)?;
    let ids: BTreeSet<_> = devices.iter().map(|d| d.id).collect();
    ensure!(ids.len() == devices.len(), "two devices have one identity");
    ensure!(!ids.contains(&[0; 16]), "a device's identity is all zero");
    for device in &devices {
        ensure!(
            !device.name.is_empty(),
            "device {} has no name",
            device.index
        );
        ensure!(device.queues >= 1, "device {} has no queue", device.index);
    }
    ensure!(
        listed(case)? == devices,
        "asked again, the plugin lists other devices"
    );
    Ok(())
}

fn same(case: &Case) -> Checked {
    let devices = listed(case)?;
    let mine: Vec<u8> = devices.iter().flat_map(|d| d.id).collect();
    let theirs = case.peer()?.exchange(1, &mine)?;
    ensure!(mine == theirs, "another process sees other identities");
    Ok(())
}

fn open(case: &Case) -> Checked {
    let instance = case.instance()?;
    for info in listed(case)? {
        let twice = [instance.open(info.index)?, instance.open(info.index)?];
        ensure!(twice[0].info() == &info, "device {} changed", info.index);
    }
    Ok(())
}

fn bad_index(case: &Case) -> Checked {
    let there = listed(case)?.len() as u32;
    let instance = RawInstance::new(case)?;
    for index in [there, u32::MAX] {
        let (status, device, message) = instance.open(index, true)?;
        if status == 0 {
            instance.close(device);
        }
        ensure!(
            status == Status::Invalid.to_raw(),
            "device {index} of {there} gives status {status}"
        );
        ensure!(
            !message.is_empty(),
            "device {index} is refused without a message"
        );
    }
    Ok(())
}

fn unknown(case: &Case) -> Checked {
    let device = case.device()?;
    let says_yes = |command, dtype, reduction| {
        device.supports(&SupportQuery {
            command,
            dtype,
            reduction,
            source: Place::Device,
            destination: Place::Device,
        })
    };
    ensure!(
        !says_yes(0, 0, 0) && !says_yes(999, 0, 0),
        "it supports a command that is none"
    );
    ensure!(
        !says_yes(kind::PUT, 0, 0),
        "its streams take PUT, which is for links"
    );
    for (dtype, reduction) in [(0, 1), (99, 1), (11, 0), (11, 99), (u16::MAX, u16::MAX)] {
        let yes = says_yes(kind::REDUCE, dtype, reduction);
        ensure!(!yes, "it supports reduction {reduction} of type {dtype}");
    }
    for dtype in [9, 10, 11, 12, 13, 14] {
        for bitwise in [5, 6, 7] {
            let yes = says_yes(kind::REDUCE, dtype, bitwise);
            ensure!(!yes, "bitwise reduction {bitwise} of floats (type {dtype})");
        }
    }
    Ok(())
}

fn flush(case: &Case) -> Checked {
    Ok(case.device()?.flush_remote_writes()?)
}
