//! The report of links.

use std::collections::BTreeSet;

use unisono_abi::reach;
use unisono_hal::{LinkType, Scope};

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure};

const G: &str = "report";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "sound",
        "Each link has a kind, a rate and a latency that can be.",
        sound,
    ),
    Check::one(
        G,
        "same_again",
        "Asked again, also of another instance, it reports the same.",
        same,
    ),
    Check::one(
        G,
        "ends_exist",
        "Links between two devices name devices that exist.",
        ends,
    ),
    Check::one(
        G,
        "can_be_made",
        "Links that are reported can be made.",
        can,
    ),
    Check::one(
        G,
        "address",
        "An instance with posted links tells where it is reached.",
        address,
    ),
];

fn links(case: &Case) -> Checked<Vec<unisono_hal::LinkInfo>> {
    case.needs(&[("link", "report")])?;
    let links = case.instance()?.link_report()?;
    if links.is_empty() {
        return Err(Stop::unsupported("it reports no links"));
    }
    Ok(links)
}

fn sound(case: &Case) -> Checked {
    for link in links(case)? {
        let good = |c: char| c.is_ascii_graphic();
        ensure!(
            !link.kind.is_empty() && link.kind.chars().all(good),
            "a link's kind is `{}`",
            link.kind
        );
        let rate = link.bytes_per_second;
        ensure!(
            (1..1 << 50).contains(&rate),
            "{} carries {rate} B/s",
            link.kind
        );
        let read = link.read_bytes_per_second;
        let reads = link.link_type == LinkType::Mapped && (rate + 1..1 << 50).contains(&read);
        ensure!(
            read == 0 || reads,
            "{} carries {rate} B/s written and {read} B/s read: of a mapped link more, else 0",
            link.kind
        );
        let latency = link.latency_ns;
        ensure!(
            (1..10_000_000_000).contains(&latency),
            "{} takes {latency} ns",
            link.kind
        );
    }
    Ok(())
}

fn same(case: &Case) -> Checked {
    let first = links(case)?;
    let instance = case.instance()?;
    for _ in 0..3 {
        ensure!(instance.link_report()? == first, "it reports other links");
    }
    Ok(())
}

fn ends(case: &Case) -> Checked {
    let devices: BTreeSet<_> = case.instance()?.devices()?.iter().map(|d| d.id).collect();
    for link in links(case)? {
        for end in [link.from, link.to] {
            let any = end == [0; 16] && link.scope != Scope::Pair;
            ensure!(
                any || devices.contains(&end) || link.scope == Scope::Network,
                "a link of kind {} joins a device that is not listed",
                link.kind
            );
        }
    }
    Ok(())
}

fn can(case: &Case) -> Checked {
    for link in links(case)? {
        let functions: &[_] = match link.link_type {
            LinkType::Mapped => &[("memory", "export_memory"), ("memory", "import_memory")],
            LinkType::Posted => &[
                ("link", "create"),
                ("link", "address"),
                ("link", "export_window"),
            ],
        };
        for (table, name) in functions {
            let there = case.has(table, name)?;
            ensure!(
                there,
                "it reports {} links and has no {table}.{name}",
                link.kind
            );
        }
        if link.link_type == LinkType::Mapped && link.scope != Scope::Pair {
            let device = case.device()?;
            ensure!(
                device.info().reaches(reach::PROCESS),
                "it reports {} links; its device's memory cannot be mapped by processes",
                link.kind
            );
        }
    }
    Ok(())
}

fn address(case: &Case) -> Checked {
    if !links(case)?
        .iter()
        .any(|link| link.link_type == LinkType::Posted)
    {
        return Err(Stop::unsupported("it reports no posted links"));
    }
    let (first, second) = (case.instance()?, case.instance()?);
    let of = |instance: &unisono_hal::Instance| -> Checked<Vec<u8>> {
        let address = instance.address()?;
        address.ok_or_else(|| Stop::failed("it has posted links and no address"))
    };
    ensure!(!of(&first)?.is_empty(), "the address is empty");
    ensure!(of(&first)? == of(&first)?, "an instance's address changes");
    ensure!(
        of(&first)? != of(&second)?,
        "two instances have one address"
    );
    Ok(())
}
