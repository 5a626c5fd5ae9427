//! Plugins that would take the host down, asked in a child process.

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::Workshop;
use unisono_hal::probe::{Helper, Report, Stage, Verdict, check_in_child};

const LIMIT: Duration = Duration::from_secs(20);

fn helper() -> Helper {
    Helper {
        program: PathBuf::from(env!("CARGO_BIN_EXE_unisono-probe")),
        args: Vec::new(),
    }
}

fn ask(stem: &str, limit: Duration) -> Report {
    let shop = Workshop::new();
    check_in_child(&shop.bad(stem), &helper(), limit)
}

#[test]
fn a_sound_plugin() {
    let report = ask("sound", LIMIT);
    let Verdict::Sound(summary) = &report.verdict else {
        panic!("{report}");
    };
    assert_eq!((&*summary.name, summary.abi), ("sound", (1, 9)));
    assert!(summary.unsupported.contains(&"memory.alloc".to_owned()));
    assert!(!summary.unsupported.contains(&"instance.create".to_owned()));
    assert!(report.to_string().contains("is sound"), "{report}");
}

#[test]
fn a_refused_plugin_says_why() {
    let report = ask("wrong_layout", LIMIT);
    let Verdict::Refused {
        stage: Stage::Load,
        reason,
    } = &report.verdict
    else {
        panic!("{report}");
    };
    assert!(
        reason.starts_with("unisono_queue_state.accepted"),
        "{reason}"
    );
}

#[test]
fn crashes_are_named() {
    let crashed = |stem, stage, signal| {
        let report = ask(stem, LIMIT);
        assert_eq!(report.verdict, Verdict::Crashed { stage, signal }, "{stem}");
        report.to_string()
    };
    let text = crashed("query_crashes", Stage::Load, libc::SIGSEGV);
    assert!(text.contains("SIGSEGV"), "{text}");
    let text = crashed("query_aborts", Stage::Load, libc::SIGABRT);
    assert!(text.contains("SIGABRT"), "{text}");
    crashed("create_crashes", Stage::Create, libc::SIGSEGV);
    crashed("exit_crashes", Stage::End, libc::SIGSEGV);
}

#[test]
fn a_hang_ends_at_the_limit() {
    let limit = Duration::from_millis(400);
    let start = Instant::now();
    let report = ask("query_hangs", limit);
    let hung = Verdict::Hung {
        stage: Stage::Load,
        limit,
    };
    assert_eq!(report.verdict, hung);
    assert!(report.elapsed >= limit);
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn an_exit_is_no_answer() {
    let report = ask("query_exits", LIMIT);
    let exited = Verdict::Exited {
        stage: Stage::Load,
        code: 0,
    };
    assert_eq!(report.verdict, exited);
}

#[test]
fn what_a_plugin_prints_is_kept_apart() {
    let report = ask("query_prints", LIMIT);
    assert!(report.verdict.is_sound(), "{report}");
    assert!(report.output.contains("rubbish"), "{}", report.output);
}

#[test]
fn a_process_left_behind_does_not_hold_the_host() {
    let start = Instant::now();
    let report = ask("query_forks", LIMIT);
    assert!(report.verdict.is_sound(), "{report}");
    assert!(start.elapsed() < LIMIT);
}

#[test]
fn a_helper_that_is_none() {
    let shop = Workshop::new();
    let path = shop.bad("sound");
    for program in ["/nowhere/helper", "/bin/true", "/bin/echo"] {
        let helper = Helper {
            program: program.into(),
            args: Vec::new(),
        };
        let report = check_in_child(&path, &helper, LIMIT);
        assert!(
            matches!(report.verdict, Verdict::NoHelper(_)),
            "{program}: {report}"
        );
    }
}
