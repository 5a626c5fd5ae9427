//! Rules that contradict each other, and warnings.

use unisono_cluster::ProblemKind::*;
use unisono_cluster::check;

use super::common::{File, place};
use super::only;

#[test]
fn rules_that_contradict_each_other() {
    let rules = |list: &[&str]| {
        let lines: String = list
            .iter()
            .map(|rule| format!("- {{ {rule} }}\n"))
            .collect();
        format!("algorithms:\n{lines}")
    };
    let never = |list: &[&str]| {
        only(
            &rules(list),
            Contradiction,
            (3, 3),
            "can never decide: the one at",
            "before the other one",
        );
    };
    never(&["use: ring", "op: all_reduce, use: mesh_one_shot"]);
    never(&[
        "op: all_reduce, use: ring",
        "op: all_reduce, use: mesh_one_shot, max_bytes: 4K",
    ]);
    never(&["ranks: 2..8, use: ring", "ranks: 4, use: auto"]);
    never(&[
        "communicator: 'dp*', use: ring",
        "communicator: dp0, use: auto",
    ]);
    never(&[
        "communicator: 'd*0', use: ring",
        "communicator: 'd*0', use: auto",
    ]);
    never(&["use: auto", "use: auto, deterministic: true"]);
    let fine = |list: &[&str]| assert_eq!(check(&File::new(&rules(list)).path()), Ok(vec![]));
    fine(&[
        "op: all_reduce, max_bytes: 4K, use: mesh_one_shot",
        "op: all_reduce, use: ring",
    ]);
    fine(&[
        "op: all_reduce, use: ring",
        "op: all_gather, use: mesh_one_shot",
    ]);
    fine(&["max_bytes: 4K, use: ring", "min_bytes: 4097, use: auto"]);
    fine(&[
        "communicator: 'tp*', use: ring",
        "communicator: dp0, use: auto",
    ]);
    fine(&["communicator: dp0, use: ring", "use: auto"]);
    fine(&["op: all_gather, deterministic: true, use: ring"]);
    only(
        &rules(&["min_bytes: 8K, max_bytes: 4K, use: ring"]),
        Contradiction,
        (2, 16),
        "matches nothing",
        "exchange",
    );
    only(
        &rules(&["op: all_reduce, deterministic: true, use: ring"]),
        Contradiction,
        (2, 47),
        "order of the ranks",
        "mesh_two_shot",
    );
}

#[test]
fn warnings() {
    let warned = |text: &str, at: (u32, u32), message: &str| {
        let warnings = check(&File::new(text).path()).unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(place(&warnings[0].source), at);
        assert!(warnings[0].to_string().contains(message), "{}", warnings[0]);
    };
    warned(
        "security: { mode: none, secret_file: /s }\n",
        (1, 38),
        "not used",
    );
    warned(
        "algorithms:\n- { use: ring }\n- { op: all_reduce, use: ring }\n",
        (3, 3),
        "says again",
    );
    warned(
        "algorithms:\n- { max_bytes: 4K, use: ring }\n- { min_bytes: 4K, use: auto }\n",
        (3, 3),
        "overlaps",
    );
    let file = File::new(&format!("security: {{ secret: {} }}\n", "x".repeat(32)));
    assert_eq!(check(&file.path()), Ok(vec![]));
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = check(&file.path()).unwrap();
    assert!(warnings[0].message.contains("other users"), "{warnings:?}");
}
