//! What the query answers.

use unisono_abi as abi;

use crate::case::Case;
use crate::census::Census;
use crate::check::Check;
use crate::outcome::{Checked, ensure};
use crate::raw::Raw;

const G: &str = "header";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "loads",
        "The host finds its record, layout and tables sound.",
        loads,
    ),
    Check::one(
        G,
        "query_is_pure",
        "The query gives the same record and starts nothing.",
        pure,
    ),
    Check::one(
        G,
        "query_from_any_thread",
        "The query may be called from any thread.",
        any_thread,
    ),
    Check::one(
        G,
        "newer_minor",
        "A host of a newer minor is served: minors only add.",
        newer,
    ),
    Check::one(
        G,
        "other_major",
        "A host of another major gets NULL or a sound record.",
        major,
    ),
    Check::one(
        G,
        "whole_tables",
        "What belongs together is there together.",
        whole,
    ),
];

fn loads(case: &Case) -> Checked {
    let plugin = case.plugin()?;
    ensure!(!plugin.facts().version.is_empty(), "its version is empty");
    ensure!(!plugin.facts().vendor.is_empty(), "its vendor is empty");
    Ok(())
}

fn pure(case: &Case) -> Checked {
    let raw = Raw::open(case)?;
    let first = raw.ask(1, 0);
    let before = Census::take()?;
    for _ in 0..100 {
        let again = raw.ask(1, 0);
        ensure!(
            again == first,
            "the record moved from {first:#x} to {again:#x}"
        );
    }
    let after = Census::take()?;
    ensure!(
        before == after,
        "the query left something behind: {before:?}, then {after:?}"
    );
    Ok(())
}

fn any_thread(case: &Case) -> Checked {
    let raw = Raw::open(case)?;
    let first = raw.ask(1, 1);
    let same = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..200).all(|_| raw.ask(1, 1) == first)))
            .collect();
        threads
            .into_iter()
            .all(|thread| thread.join().unwrap_or(false))
    });
    ensure!(same, "threads get other records");
    Ok(())
}

fn newer(case: &Case) -> Checked {
    let raw = Raw::open(case)?;
    let (ours, newer) = (raw.ask(1, abi::ABI_MINOR.into()), raw.ask(1, 1000));
    ensure!(newer != 0, "a host of minor 1000 gets NULL");
    ensure!(ours != 0, "this host gets NULL");
    Ok(())
}

fn major(case: &Case) -> Checked {
    let raw = Raw::open(case)?;
    for major in [0, 2, u32::MAX] {
        let (first, again) = (raw.ask(major, 0), raw.ask(major, 0));
        ensure!(
            first == again,
            "major {major} gets {first:#x}, then {again:#x}"
        );
    }
    Ok(())
}

/// Functions, each by its table and its name.
type Functions = &'static [(&'static str, &'static str)];

fn whole(case: &Case) -> Checked {
    // If the first is there, so must be the others.
    let together: &[(&str, &str, Functions)] = &[
        (
            "memory",
            "alloc",
            &[("memory", "free"), ("device", "open"), ("device", "close")],
        ),
        ("memory", "export_memory", &[("memory", "import_memory")]),
        (
            "memory",
            "import_memory",
            &[("memory", "export_memory"), ("memory", "free")],
        ),
        (
            "stream",
            "create",
            &[
                ("stream", "destroy"),
                ("stream", "submit"),
                ("stream", "poll"),
                ("stream", "query"),
                ("stream", "abort"),
                ("device", "supports"),
            ],
        ),
        ("stream", "arm", &[("stream", "disarm")]),
        ("event", "create", &[("event", "destroy")]),
        (
            "link",
            "create",
            &[
                ("link", "report"),
                ("link", "address"),
                ("link", "destroy"),
                ("link", "export_window"),
                ("link", "import_window"),
                ("link", "submit"),
                ("link", "poll"),
                ("link", "query"),
                ("link", "abort"),
            ],
        ),
        ("link", "arm", &[("link", "disarm")]),
    ];
    for (table, name, others) in together {
        if !case.has(table, name)? {
            continue;
        }
        for (other_table, other) in *others {
            let there = case.has(other_table, other)?;
            ensure!(there, "it has {table}.{name} and no {other_table}.{other}");
        }
    }
    Ok(())
}
