//! Keys: unknown, missing, twice, with a value of another type.

use unisono_cluster::ProblemKind::*;

use super::only;

#[test]
fn unknown_keys() {
    only(
        "timeout:\n  op: 30s\n",
        UnknownKey,
        (1, 1),
        "`timeout`",
        "did you mean `timeouts`?",
    );
    only(
        "memory:\n  slot: 4K\n  slotts: 8\n",
        UnknownKey,
        (3, 3),
        "in `memory`",
        "did you mean `slots`?",
    );
    only(
        "log: { colour: red }\n",
        UnknownKey,
        (1, 8),
        "`colour`",
        "known keys: level",
    );
    only(
        "plugins:\n- name: tcp\n  parms: {}\n",
        UnknownKey,
        (3, 3),
        "in `plugins[0]`",
        "did you mean `params`?",
    );
    only(
        "nodes:\n- name: a\n  devices: [{ name: b, idd: c }]\n",
        UnknownKey,
        (3, 24),
        "`idd`",
        "did you mean `id`?",
    );
}

#[test]
fn keys_given_twice() {
    only(
        "name: a\nlog: {}\nname: b\n",
        Duplicate,
        (3, 1),
        "cluster.yaml:1:1",
        "keep one",
    );
    only(
        "log: { level: info, level: warn }\n",
        Duplicate,
        (1, 21),
        "`level`",
        "keep one",
    );
}

#[test]
fn wrong_types() {
    only(
        "- name: x\n",
        WrongType,
        (1, 1),
        "a cluster file is a list",
        "keys with values",
    );
    only("name: 5\n", WrongType, (1, 7), "a whole number", "quotes");
    only("name: true\n", WrongType, (1, 7), "true or false", "quotes");
    only("name: [a]\n", WrongType, (1, 7), "a list", "give text");
    only("switches: leaf0\n", WrongType, (1, 11), "text", "[a, b]");
    only(
        "memory: { slots: lots }\n",
        WrongType,
        (1, 18),
        "text",
        "a whole number",
    );
    only(
        "memory: { slots: 4.5 }\n",
        WrongType,
        (1, 18),
        "fraction",
        "a whole number",
    );
    only(
        "timeouts: 30s\n",
        WrongType,
        (1, 11),
        "text",
        "keys with values",
    );
    only("switches: [~]\n", WrongType, (1, 12), "nothing", "text");
    only(
        "plugins:\n- name: a\n  params: { x: [1] }\n",
        WrongType,
        (3, 16),
        "a list",
        "a number",
    );
    only(
        "links:\n- { from: rank 0, to: rank 1, kind: x, remove: yes }\n",
        WrongType,
        (2, 48),
        "text",
        "true or false",
    );
}

#[test]
fn missing_keys() {
    only(
        "plugins:\n- path: /x\n",
        MissingKey,
        (2, 3),
        "`plugins[0]` has no `name`",
        "add `name`",
    );
    only(
        "plugins:\n- name:\n",
        MissingKey,
        (2, 3),
        "has no `name`",
        "add `name`",
    );
    only(
        "algorithms:\n- { op: all_reduce }\n",
        MissingKey,
        (2, 3),
        "no `use`",
        "add `use`",
    );
}

#[test]
fn names_given_twice() {
    only(
        "plugins: [{ name: a }, { name: a }]\n",
        Duplicate,
        (1, 32),
        "plugin `a`",
        "its own name",
    );
    only(
        "nodes:\n- name: a\n- name: a\n",
        Duplicate,
        (3, 9),
        "cluster.yaml:2:9",
        "its own name",
    );
    only(
        "nodes: [{ name: a, devices: [x, x] }]\n",
        Duplicate,
        (1, 33),
        "device `x`",
        "",
    );
    only(
        "nodes: [{ name: a, devices: [x, { name: x }] }]\n",
        Duplicate,
        (1, 41),
        "device `x`",
        "",
    );
    only("switches: [a, a]\n", Duplicate, (1, 15), "switch `a`", "");
    let id = "0123456789abcdef0123456789abcdef";
    let upper = id.to_uppercase();
    only(
        &format!("nodes:\n- {{ name: a, id: {id} }}\n- {{ name: b, id: {upper} }}\n"),
        Duplicate,
        (3, 18),
        "identity",
        "its own",
    );
}
