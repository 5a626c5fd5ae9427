//! Files that are no YAML, and how problems are told.

use unisono_cluster::ProblemKind::*;
use unisono_cluster::check;

use super::common::{File, describe, place};
use super::{only, problems};

#[test]
fn no_yaml() {
    only(
        "log: { level: info\n",
        Syntax,
        (1, 6),
        "unclosed",
        "brackets",
    );
    only(
        "a: b\n c: d\n",
        Syntax,
        (2, 3),
        "not a YAML document",
        "indentation",
    );
    only(
        "name: [a\n",
        Syntax,
        (1, 7),
        "not a YAML document",
        "brackets",
    );
    only("name: *none\n", Syntax, (1, 7), "not a YAML document", "");
    assert_eq!(problems("name: a\n---\nname: b\n")[0].kind, Syntax);
    assert_eq!(problems(&"[".repeat(100_000))[0].kind, Syntax);
    assert_eq!(
        problems(&format!("name: {}x{}", "[".repeat(40), "]".repeat(40)))[0].kind,
        Syntax
    );
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut text = "name: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("k{level}: &a{level} [{before}]\n"));
    }
    assert_eq!(problems(&text)[0].kind, Syntax);
}

#[test]
fn no_file() {
    let missing = check("/nonexistent/cluster.yaml".as_ref()).unwrap_err();
    assert_eq!(missing[0].kind, Unreadable);
    assert!(missing[0].message.contains("/nonexistent/cluster.yaml"));
    assert_eq!(check("/".as_ref()).unwrap_err()[0].kind, Unreadable);
    let file = File::new("");
    std::fs::write(file.path(), b"name: \xff\n").unwrap();
    assert_eq!(check(&file.path()).unwrap_err()[0].kind, Unreadable);
    std::fs::write(file.path(), " ".repeat((4 << 20) + 1)).unwrap();
    assert!(
        check(&file.path()).unwrap_err()[0]
            .message
            .contains("4 MiB")
    );
}

#[test]
fn all_problems_come_at_once_in_the_order_of_the_file() {
    let text = "name: 5\ntimeouts:\n  op: 30\n  heartbeat_timeout: 1s\nlinks:\n\
                - { from: rank 0, to: rank 0, kind: x, latency: 1us }\n- { form: rank 0 }\n\
                algorithms: [{ use: tree }]\n";
    let found = problems(text);
    let places: Vec<_> = found
        .iter()
        .map(|problem| (problem.kind, place(&problem.source)))
        .collect();
    assert_eq!(
        places,
        [
            (WrongType, (1, 7)),
            (WrongUnit, (3, 7)),
            (Contradiction, (4, 22)),
            (ImpossibleLink, (6, 23)),
            (MissingKey, (7, 3)),
            (MissingKey, (7, 3)),
            (MissingKey, (7, 3)),
            (UnknownKey, (7, 5)),
            (UnknownValue, (8, 21)),
        ],
        "{}",
        describe(&found)
    );
}

#[test]
fn what_is_lacking_because_it_was_wrong_is_told_once() {
    only(
        "switches: [5, leaf0]\nlinks: [{ from: leaf0, to: leaf1, kind: x, latency: 1us }]\n",
        WrongType,
        (1, 12),
        "`switches[0]`",
        "quotes",
    );
    only(
        "algorithms: [{ use: ring, max_bytes: 4 KB/s }, { use: auto, max_bytes: 4K }]\n",
        WrongUnit,
        (1, 38),
        "",
        "",
    );
    only(
        "links: [{ from: rank 0, to: rank 1, kind: x, bandwidth: fast }]\n",
        WrongUnit,
        (1, 57),
        "",
        "",
    );
}

#[test]
fn the_text_marks_the_place() {
    let file = File::new("log:\n  level: infos # see\n");
    let shown = describe(&check(&file.path()).unwrap_err());
    let expected = format!(
        "error: `log.level` cannot be `infos`\n --> {}:2:10\n  |\n2 |   level: infos # see\n  |          ^^^^^\n  = help: \
         did you mean `info`?\n\n",
        file.path().display()
    );
    assert_eq!(shown, expected);
}

#[test]
fn columns_are_characters() {
    only(
        "switches: [\u{e9}\u{e9}\u{e9}, 5]\n",
        WrongType,
        (1, 17),
        "`switches[1]`",
        "quotes",
    );
}
