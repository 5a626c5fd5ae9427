//! Units, choices, ranges.

use unisono_cluster::ProblemKind::*;

use super::only;

#[test]
fn wrong_units() {
    only(
        "timeouts:\n  op: 30\n",
        WrongUnit,
        (2, 7),
        "no unit",
        "unit after the number",
    );
    only(
        "timeouts:\n  op: \"30\"\n",
        WrongUnit,
        (2, 7),
        "no unit",
        "`30s`",
    );
    only(
        "timeouts: { op: 5m }\n",
        WrongUnit,
        (1, 17),
        "ambiguous",
        "`min`",
    );
    only(
        "timeouts: { op: 5 parsecs }\n",
        WrongUnit,
        (1, 17),
        "`parsecs`",
        "ns, us, ms",
    );
    only(
        "timeouts: { op: fast }\n",
        WrongUnit,
        (1, 17),
        "does not begin with a number",
        "30s",
    );
    only(
        "timeouts: { op: 0.1 ns }\n",
        WrongUnit,
        (1, 17),
        "whole number of nanoseconds",
        "smaller unit",
    );
    only(
        "memory: { budget: 10 Mb }\n",
        WrongUnit,
        (1, 19),
        "`Mb`",
        "`MiB`",
    );
    only(
        "memory: { budget: 10 s }\n",
        WrongUnit,
        (1, 19),
        "`s`",
        "KiB",
    );
    only(
        "memory: { budget: 99999999 TiB }\n",
        WrongUnit,
        (1, 19),
        "too large",
        "at most",
    );
    only(
        "memory: { budget: 1.5 B }\n",
        WrongUnit,
        (1, 19),
        "whole number of bytes",
        "",
    );
    only(
        "memory: { budget: -1 KiB }\n",
        WrongUnit,
        (1, 19),
        "negative",
        "128 KiB",
    );
    only(
        "memory: { budget: -1 }\n",
        OutOfRange,
        (1, 19),
        "-1",
        "give 0 to",
    );
    let link = |bandwidth: &str| {
        format!("links:\n- from: rank 0\n  to: rank 1\n  kind: x\n  bandwidth: {bandwidth}\n")
    };
    only(
        &link("50 GB"),
        WrongUnit,
        (5, 14),
        "`GB` is no unit of bandwidth",
        "GB/s",
    );
    only(
        &link("400 Gb/s"),
        WrongUnit,
        (5, 14),
        "`Gb/s`",
        "`Gbit/s` for bits or `GB/s`",
    );
    only(
        &link("50"),
        WrongUnit,
        (5, 14),
        "no unit",
        "unit after the number",
    );
    only(&link("-50 GB/s"), WrongUnit, (5, 14), "negative", "50 GB/s");
}

#[test]
fn unknown_values() {
    only(
        "log: { level: infos }\n",
        UnknownValue,
        (1, 15),
        "`infos`",
        "did you mean `info`?",
    );
    only(
        "security: { mode: tls }\n",
        UnknownValue,
        (1, 19),
        "`tls`",
        "secret, none",
    );
    only(
        "algorithms: [{ use: tree }]\n",
        UnknownValue,
        (1, 21),
        "`tree`",
        "mesh_one_shot",
    );
    only(
        "interfaces: { include: [10.0.0.1/8] }\n",
        UnknownValue,
        (1, 25),
        "bits set",
        "10.0.0.0/8",
    );
    only(
        "interfaces: { include: [10.0.0.0/33] }\n",
        UnknownValue,
        (1, 25),
        "0 to 32",
        "",
    );
    only(
        "interfaces: { include: [a b] }\n",
        UnknownValue,
        (1, 25),
        "neither",
        "",
    );
    only(
        "nodes: [{ name: a, id: zz }]\n",
        UnknownValue,
        (1, 24),
        "no identity",
        "32 hexadecimal",
    );
    only(
        "algorithms: [{ use: ring, ranks: 8..4 }]\n",
        UnknownValue,
        (1, 34),
        "empty",
        "4..8",
    );
    only(
        "algorithms: [{ use: ring, ranks: 0 }]\n",
        OutOfRange,
        (1, 34),
        "0",
        "give 1 to",
    );
    only(
        "nodes: [{ name: a/b }]\n",
        UnknownValue,
        (1, 17),
        "`/`",
        "leave it out",
    );
    only(
        "nodes: [{ name: '' }]\n",
        UnknownValue,
        (1, 17),
        "no name of a node",
        "1 to 255",
    );
    only(
        "switches: [a b]\n",
        UnknownValue,
        (1, 12),
        "space",
        "leave them out",
    );
}

#[test]
fn out_of_range() {
    only(
        "memory: { slots: 1 }\n",
        OutOfRange,
        (1, 18),
        "1",
        "2 to 1024",
    );
    only(
        "memory: { slot: 100 }\n",
        OutOfRange,
        (1, 17),
        "64-byte lines",
        "128 B",
    );
    only(
        "timeouts: { op: 0 s }\n",
        OutOfRange,
        (1, 17),
        "0 s",
        "1 ms to",
    );
    only(
        "timeouts: { init: 9999 h }\n",
        OutOfRange,
        (1, 19),
        "9999 h",
        "720 h",
    );
    only(
        "progress: { spin: 2 s }\n",
        OutOfRange,
        (1, 19),
        "burn",
        "at most 1 s",
    );
    only(
        "security: { secret: short }\n",
        OutOfRange,
        (1, 21),
        "too short",
        "32",
    );
}

#[test]
fn figures_that_contradict_each_other() {
    only(
        "timeouts: { heartbeat_timeout: 2s }\n",
        Contradiction,
        (1, 32),
        "three times",
        "three intervals",
    );
    only(
        "timeouts: { heartbeat_interval: 6s }\n",
        Contradiction,
        (1, 33),
        "three times",
        "three intervals",
    );
    only(
        "memory: { budget: 16 KiB }\n",
        Contradiction,
        (1, 19),
        "exceed the budget",
        "larger budget",
    );
    only(
        "memory: { slot: 64 MiB }\n",
        Contradiction,
        (1, 17),
        "exceed the budget",
        "smaller",
    );
    only(
        "interfaces: { include: [eth0], exclude: [lo, eth0] }\n",
        Contradiction,
        (1, 46),
        "both included",
        "remove one",
    );
    let secret = "x".repeat(32);
    only(
        &format!("security: {{ secret: {secret}, secret_file: /s }}\n"),
        Contradiction,
        (1, 21),
        "both",
        "keep `secret_file`",
    );
}
