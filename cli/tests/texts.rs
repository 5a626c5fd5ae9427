//! Subcommands that only print.

mod common;

use common::{run, unisono};

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        let done = run(unisono().args(["completions", shell]));
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.contains("bench"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1");
    assert_eq!(run(unisono().arg("man").arg(&path)).code, Some(0));
    let page = std::fs::read_to_string(path.join("unisono-bench.1")).unwrap();
    assert!(page.contains("stepfactor"));
    assert!(!path.join("unisono-plugin-probe.1").exists(), "hidden");
}

#[test]
fn the_cluster_file_is_checked_with_line_and_remedy() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "timeouts:\n  opp: 10s\n").unwrap();
    let path = file.path().to_str().unwrap();
    let bad = run(unisono().args(["config", "check", path]));
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(
        bad.err.contains(":2:") && bad.err.contains("did you mean `op`"),
        "{bad:?}"
    );
    std::fs::write(file.path(), "timeouts:\n  op: 10s\n").unwrap();
    assert_eq!(run(unisono().args(["config", "check", path])).code, Some(0));
    let show = run(unisono().args([
        "config",
        "show",
        "--sources",
        "--cluster-file",
        path,
        "--set",
        "memory.slots=4",
    ]));
    assert!(show.out.contains(":2:7"), "{}", show.out);
    assert!(
        show.out
            .lines()
            .any(|l| l.trim().starts_with("slots: 4") && l.contains("code")),
        "{}",
        show.out
    );
    let schema = run(unisono().args(["config", "schema"]));
    let schema: serde_json::Value = serde_json::from_str(&schema.out).unwrap();
    assert!(schema["properties"]["timeouts"].is_object());
}

/// Such an error begins so by itself, as those of compilers do.
#[test]
fn an_error_of_settings_says_once_that_it_is_one() {
    let shown = run(unisono().args(["config", "show", "--set", "algorithms.all_gather=ring"]));
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.err.contains("error: `algorithms`"), "{shown:?}");
    assert!(!shown.err.contains("error: error:"), "{shown:?}");
}

#[test]
fn a_setting_may_be_a_list_as_in_a_cluster_file() {
    let show = |set| run(unisono().args(["config", "show", "--set", set]));
    let shown = show("algorithms=[{op: all_gather, use: ring}]");
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("use: ring"), "{shown:?}");
    for no_list in ["algorithms.all_gather=ring", "algorithms=[{op: all_gather"] {
        let shown = show(no_list);
        assert_eq!(shown.code, Some(1), "{shown:?}");
        let help = "write it as a list: [{KEY: VALUE, ...}, ...]; the keys are ";
        assert!(shown.err.contains(help), "{shown:?}");
    }
}

#[test]
fn help_has_examples() {
    for command in ["run", "bench", "topo", "explain"] {
        let done = run(unisono().args([command, "--help"]));
        assert!(done.out.contains("Examples:"), "{command}");
    }
}
