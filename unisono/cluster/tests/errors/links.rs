//! Links that cannot be.

use unisono_cluster::ProblemKind::*;
use unisono_cluster::check;

use super::common::File;
use super::only;

const NODES: &str =
    "nodes: [{ name: box0, devices: [gpu0, gpu1] }, { name: box1 }]\nswitches: [leaf0]\nlinks:\n";

#[test]
fn impossible_links() {
    let link = |text: &str| format!("{NODES}- {{ {text} }}\n");
    let bad = |text: &str, at: u32, message: &str, help: &str| {
        only(&link(text), ImpossibleLink, (4, at), message, help);
    };
    bad(
        "from: box0/gpu9, to: box0/gpu1, kind: x, latency: 1us",
        11,
        "no device `gpu9`",
        "did you mean `box0/gpu0`?",
    );
    bad(
        "from: box0/nic, to: box0/gpu1, kind: x, latency: 1us",
        11,
        "no device `nic`",
        "gpu0, gpu1",
    );
    bad(
        "from: bax0/gpu0, to: box0/gpu1, kind: x, latency: 1us",
        11,
        "no node `bax0`",
        "did you mean `box0/gpu0`?",
    );
    bad(
        "from: other/gpu0, to: box0/gpu1, kind: x, latency: 1us",
        11,
        "no node `other`",
        "to `nodes`",
    );
    bad(
        "from: box0/gpu0, to: leaf1, kind: x, latency: 1us",
        26,
        "no switch `leaf1`",
        "did you mean `leaf0`?",
    );
    bad(
        "from: box0/gpu0, to: box1, kind: x, latency: 1us",
        26,
        "no switch `box1`",
        "box1/DEVICE",
    );
    bad(
        "from: box0/gpu0, to: box0/gpu0, kind: x, latency: 1us",
        26,
        "to itself",
        "two different ends",
    );
    bad(
        "from: rank 3, to: rank 3, kind: x, latency: 1us",
        23,
        "to itself",
        "two different ends",
    );
    bad(
        "from: rank 0, to: rank 1, kind: x, bandwidth: 0 GB/s",
        51,
        "no link carries 0 B/s",
        "remove: true",
    );
    bad(
        "from: rank 0, to: rank 1, kind: x, bandwidth: 2000 TB/s",
        51,
        "2000 TB/s",
        "up to",
    );
    bad(
        "from: rank 0, to: rank 1, kind: x, latency: 1 h",
        49,
        "1 h",
        "at most 1000 s",
    );
    // A node that lists no devices leaves them to its plugins.
    assert_eq!(
        check(&File::new(&link("from: box1/any, to: leaf0, kind: x, latency: 1us")).path()),
        Ok(vec![])
    );
    only(
        &link("from: rank x, to: leaf0, kind: x"),
        UnknownValue,
        (4, 11),
        "no end of a link",
        "NODE/DEVICE",
    );
    only(
        &link("from: rank 0, to: rank 1, kind: '', latency: 1us"),
        UnknownValue,
        (4, 37),
        "empty",
        "nvlink",
    );
}

#[test]
fn links_that_say_too_little_or_too_much() {
    let link = |text: &str| format!("links:\n- {{ from: rank 0, to: rank 1, kind: x{text} }}\n");
    only(
        &link(""),
        MissingKey,
        (2, 3),
        "says nothing",
        "remove: true",
    );
    only(
        &link(", plugin: tcp, transport: posted"),
        MissingKey,
        (2, 3),
        "no `bandwidth`",
        "add `bandwidth`",
    );
    only(
        &link(", plugin: tcp, bandwidth: 1 GB/s"),
        MissingKey,
        (2, 3),
        "no `transport`",
        "add `transport`",
    );
    only(
        &link(", transport: posted, latency: 1us"),
        MissingKey,
        (2, 51),
        "no `plugin`",
        "add `plugin`",
    );
    only(
        &link(", remove: true, latency: 1us"),
        Contradiction,
        (2, 63),
        "removed",
        "leave `remove` out",
    );
    only(
        &link(", shared: card"),
        MissingKey,
        (2, 48),
        "no `bandwidth`",
        "add the bandwidth",
    );
}

#[test]
fn links_that_contradict_each_other() {
    let head = "links:\n- { from: rank 0, to: rank 1, kind: x, bandwidth: 1 GB/s, shared: s }\n";
    only(
        &format!("{head}- {{ from: rank 1, to: rank 0, kind: x, latency: 1us }}\n"),
        Duplicate,
        (3, 3),
        "cluster.yaml:2:3",
        "both_ways: false",
    );
    only(
        &format!("{head}- {{ from: rank 2, to: rank 3, kind: x, bandwidth: 2 GB/s, shared: s }}\n"),
        Contradiction,
        (3, 51),
        "1 GB/s at",
        "the same bandwidth",
    );
    let one_way = "links:\n- { from: rank 0, to: rank 1, kind: x, latency: 1us, both_ways: false }\n\
                   - { from: rank 1, to: rank 0, kind: x, latency: 2us, both_ways: false }\n";
    assert_eq!(check(&File::new(one_way).path()), Ok(vec![]));
}
