//! The suite finds what is broken: the example plugin with one mistake each, and the check that
//! must fail for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use unisono_abi_tests::{compile_plugin, example, repository};
use unisono_conformance::{Expectations, Outcome, Report, Suite, Verdict};

fn suite(plugin: &Path) -> Suite {
    Suite::new(plugin, env!("CARGO_BIN_EXE_unisono-conformance"))
}

/// A mistake: what stands in the example once, what stands there instead, and the checks of which
/// at least the first must fail.
struct Mistake {
    name: &'static str,
    right: &'static str,
    wrong: &'static str,
    check: &'static str,
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "minimum_without_nan",
        right: "case UNISONO_MIN: r = x != x || x < y ? x : y; break;",
        wrong: "case UNISONO_MIN: r = x < y ? x : y; break;",
        check: "reduce/f32",
    },
    Mistake {
        name: "division_that_floors",
        right: "d[i] = store_##NAME(divisor != 0 ? r / (wide)divisor : r);",
        wrong: "d[i] = store_##NAME(divisor != 0 ? (r - (r < 0 ? (wide)divisor - 1 : 0)) / (wide)divisor : r);",
        check: "reduce/i32",
    },
    Mistake {
        name: "supports_claims_all",
        right: "can_reduce(query->dtype, query->reduction)",
        wrong: "1",
        check: "reduce/f32",
    },
    Mistake {
        name: "stride_forgotten",
        right: "at(m->src + i * m->src_stride)",
        wrong: "at(m->src)",
        check: "copy/strided",
    },
    Mistake {
        name: "generation_never_changes",
        right: "m->generation = ++d->generations;",
        wrong: "m->generation = 1;",
        check: "memory/generation",
    },
    Mistake {
        name: "any_kind_taken",
        right: "!(known[kind].takers & taker) ||",
        wrong: "",
        check: "batch/refused_whole",
    },
    Mistake {
        name: "wait_does_not_count",
        right: "  ((unisono_counter *)at(c->counter))->value++;\n",
        wrong: "",
        check: "flag/ahead",
    },
    Mistake {
        name: "words_not_compared",
        right: "if ((c->head.flags & UNISONO_CMD_WORDS) && memcmp(line->words, c->words, sizeof c->words) != 0) {",
        wrong: "if (0) {",
        check: "flag/mismatch",
    },
    Mistake {
        name: "abort_compares_words",
        right: "if (ahead >= INT64_C(1) << 61) return UNISONO_OK;",
        wrong: "",
        check: "flag/released",
    },
    Mistake {
        name: "failed_while_it_runs",
        right: "q->running = 1;",
        wrong: "",
        check: "abort/touches_nothing",
    },
    Mistake {
        name: "nobody_is_woken",
        right: "  queue_wake(q);\n",
        wrong: "",
        check: "sleep/ends",
    },
    Mistake {
        name: "woken_after_disarm",
        right: "  s->q.armed = 0;\n",
        wrong: "",
        check: "sleep/disarmed",
    },
    Mistake {
        name: "recorded_again_stays_complete",
        right: "if (c->head.kind == UNISONO_CMD_RECORD) atomic_store(&c->event.event->complete, 0);",
        wrong: "",
        check: "event/recorded_again",
    },
    Mistake {
        name: "threads_take_signals",
        right: "sigfillset(&all);",
        wrong: "sigemptyset(&all);",
        check: "threads/signals",
    },
    Mistake {
        name: "no_message",
        right: "vsnprintf(error->message, sizeof error->message, words, args);",
        wrong: "(void)words;",
        check: "device/bad_index",
    },
    Mistake {
        name: "window_without_bounds",
        right: "return found != NULL && offset <= found->bytes && bytes <= found->bytes - offset ? found : NULL;",
        wrong: "(void)offset; (void)bytes; return found;",
        check: "link/bounds",
    },
    Mistake {
        name: "put_without_words",
        right: "if (h.words_valid) memcpy(line->words, h.words, sizeof line->words);",
        wrong: "",
        check: "link/words",
    },
    Mistake {
        name: "signal_undoes_an_abort",
        right: "atomic_fetch_add_explicit((_Atomic uint64_t *)&line->counter, 1, memory_order_release);",
        wrong: "line->counter = l->statistics.puts_received + 1;",
        check: "link/abort_step",
    },
    Mistake {
        name: "anybody_is_the_peer",
        right: "if (channel->verify(channel->context, l->peer, &t, sizeof t, signature) == UNISONO_OK) {",
        wrong: "if (1) {",
        check: "fault/impostor",
    },
    Mistake {
        name: "descriptor_left_open",
        right: "  if (l->fd >= 0) close(l->fd);\n",
        wrong: "",
        check: "leaks/links",
    },
    Mistake {
        name: "leaves_without_a_word",
        right: "l->q.error.status == UNISONO_OK && send(l->fd, &bye, sizeof bye, MSG_NOSIGNAL) < 0)",
        wrong: "0)",
        check: "fault/peer_leaves",
    },
    Mistake {
        name: "flag_not_looked_at",
        right: "(c->head.kind != UNISONO_CMD_WAIT || wait_ahead(&c->wait) >= 0);",
        wrong: "c->head.kind != UNISONO_CMD_WAIT;",
        check: "link_sleep/flag_up",
    },
];

/// Compiles a source; warnings are what mistakes may bring.
fn compile(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (c, library) = (folder.join(name).with_extension("c"), folder.join(name));
    std::fs::write(&c, source).expect("a source");
    let mut cc = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args([
        "-std=c11", "-O2", "-w", "-shared", "-fPIC", "-pthread", "-I",
    ])
    .arg(repository("include"))
    .arg("-o")
    .arg(&library)
    .arg(&c);
    unisono_abi_tests::run(&mut cc).expect("it compiles");
    library
}

fn run_one(plugin: &Path, check: &str, limit: Duration) -> Report {
    let suite = suite(plugin).only(vec![check.to_owned()]).limit(limit);
    let report = suite.expect(Expectations::default()).run(|_| ());
    let report = report.expect("the suite runs");
    assert_eq!(report.rows.len(), 1, "{check}");
    report
}

#[test]
fn each_mistake_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = std::fs::read_to_string(example()).expect("the example");
    let mut missed = Vec::new();
    for mistake in MISTAKES {
        let found = source.matches(mistake.right).count();
        assert_eq!(found, 1, "{}: the example has changed", mistake.name);
        let broken = source.replacen(mistake.right, mistake.wrong, 1);
        let library = compile(folder.path(), mistake.name, &broken);
        let report = run_one(&library, mistake.check, Duration::from_secs(60));
        println!("{}: {}", mistake.name, report.rows[0].line());
        if report.rows[0].verdict != Verdict::Fail || report.is_good() {
            missed.push((mistake.name, report.rows[0].outcome.clone()));
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

/// A plugin that crashes or hangs takes neither the suite nor the other checks with it.
#[test]
fn crashes_and_hangs_are_failures() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = std::fs::read_to_string(example()).expect("the example");
    let right = "  if (index != 0) return INVALID";
    assert_eq!(source.matches(right).count(), 1, "the example has changed");
    for (name, wrong, says) in [
        ("crashes", "  abort();\n", "signal 6"),
        ("exits", "  exit(0);\n", "ended early"),
        ("hangs", "  for (;;) pause();\n", "did not end within"),
    ] {
        let broken = source.replacen(right, &format!("{wrong}{right}"), 1);
        let library = compile(folder.path(), name, &broken);
        let report = run_one(&library, "device/all_open", Duration::from_secs(3));
        let Outcome::Fail(why) = &report.rows[0].outcome else {
            panic!("{name}: {:?}", report.rows[0]);
        };
        assert!(why.contains(says), "{name}: {why}");
        let other = run_one(&library, "device/described", Duration::from_secs(30));
        assert!(other.is_good(), "{name}: {}", other.rows[0].line());
    }
}

/// What is listed and not so is flagged; so is what is not listed.
#[test]
fn the_lists_must_be_true() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libunisono_plugin_example.so");
    compile_plugin(&example(), &path).expect("the example compiles");
    let verdicts = |expectations: Expectations, only: &[&str]| {
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        let suite = suite(&path).only(only).expect(expectations);
        let report = suite.run(|_| ()).expect("the suite runs");
        let verdicts: Vec<_> = report.rows.iter().map(|row| row.verdict).collect();
        (verdicts, report.is_good())
    };
    let none = Expectations::default;
    assert_eq!(
        verdicts(none().fails("copy/sizes", "no bug at all"), &["copy/sizes"]),
        (vec![Verdict::UnexpectedPass], false)
    );
    assert_eq!(
        verdicts(none(), &["memory/wrap"]),
        (vec![Verdict::UnexpectedlyUnsupported], false)
    );
    assert_eq!(
        verdicts(none().may_skip("memory", "really"), &["memory/wrap"]),
        (vec![Verdict::Unsupported], true)
    );
    let (all, good) = verdicts(none().may_skip("header", "really"), &["header"]);
    assert!(
        all.iter().all(|v| *v == Verdict::UnexpectedPass) && !good,
        "a group that is listed is all of its checks"
    );
    let unknown = suite(&path).expect(none().may_skip("headers", "misspelt"));
    assert!(unknown.run(|_| ()).is_err_and(|e| e.contains("headers")));
}
