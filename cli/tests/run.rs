//! `unisono run`: exit codes, prefixes, signals, and that nothing is left behind.

#![allow(unsafe_code, reason = "sends signals")]

mod common;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{Done, LIMIT, finish, run, start, unisono};

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process with this id lives (zombies do not).
fn lives(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

fn shell(ranks: u32, options: &[&str], script: &str) -> Command {
    let mut command = unisono();
    command
        .args(["run", "-n", &ranks.to_string()])
        .args(options);
    command.args(["--", "sh", "-c", script]);
    // Test runners in the background of a shell hand down that SIGINT is ignored.
    // SAFETY: between fork and exec only system calls are made that are safe there.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

fn run_shell(ranks: u32, options: &[&str], script: &str) -> Done {
    run(&mut shell(ranks, options, script))
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: a plain system call; the process is one that this test started.
    assert_eq!(unsafe { libc::kill(pid.cast_signed(), signal) }, 0);
}

/// A script that notes its process id, and that of a child of its own, in a folder, and sleeps.
fn sleepers(folder: &std::path::Path, trap: &str) -> String {
    format!(
        "{trap} sleep 300 & echo $! > {0}/child$UNISONO_RANK; echo $$ > {0}/rank$UNISONO_RANK; wait",
        folder.display()
    )
}

/// The process ids that the sleepers have noted.
fn pids(folder: &std::path::Path, ranks: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    wait_until("the ranks start", || {
        pids = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                std::fs::read_to_string(entry.unwrap().path())
                    .unwrap()
                    .trim()
                    .parse()
                    .ok()
            })
            .collect();
        pids.len() == 2 * ranks
    });
    pids
}

fn all_gone(pids: &[u32]) {
    wait_until("the processes are gone", || {
        !pids.iter().any(|pid| lives(*pid))
    });
}

#[test]
fn ranks_that_share_cores_have_no_restartable_sequences() {
    let cores = std::thread::available_parallelism()
        .expect("a number")
        .get();
    let script = "echo \"tunables: $GLIBC_TUNABLES\"";
    let said = "tunables: glibc.pthread.rseq=0";
    for (ranks, are_said) in [(cores, 0), (cores + 1, cores + 1)] {
        let done = run_shell(ranks as u32, &[], script);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(done.out.matches(said).count(), are_said, "{done:?}");
    }
}

#[test]
fn each_rank_knows_who_it_is() {
    let script = "echo $UNISONO_RANK $UNISONO_WORLD_SIZE $UNISONO_LOCAL_RANK $UNISONO_LOCAL_SIZE $UNISONO_JOB; \
                  wc -c < $UNISONO_SECRET_FILE; stat -L -c %a $UNISONO_SECRET_FILE";
    let done = run_shell(3, &[], script);
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines: BTreeSet<&str> = done.out.lines().collect();
    let jobs: BTreeSet<_> = lines
        .iter()
        .filter_map(|l| l.split_once("unisono-run-").map(|x| x.1))
        .collect();
    assert_eq!(jobs.len(), 1, "one job: {lines:?}");
    for rank in 0..3 {
        let start = format!("[{rank}] {rank} 3 {rank} 3 ");
        assert!(
            lines.iter().any(|line| line.starts_with(&start)),
            "{start}: {lines:?}"
        );
        assert!(
            lines.contains(&*format!("[{rank}] 64")) && lines.contains(&*format!("[{rank}] 600"))
        );
    }
    let again = run_shell(1, &[], "echo $UNISONO_JOB");
    assert!(
        !jobs.iter().any(|job| again.out.contains(job)),
        "each job has its own name"
    );
}

#[test]
fn the_first_failure_is_the_exit_code_and_ends_the_rest() {
    let since = Instant::now();
    let done = run_shell(3, &[], "[ $UNISONO_RANK = 1 ] && exit 7; sleep 300");
    assert_eq!(done.code, Some(7), "{done:?}");
    assert!(
        done.err.contains("rank 1 ended with exit code 7"),
        "{done:?}"
    );
    assert!(
        since.elapsed() < Duration::from_secs(4),
        "before the grace is over"
    );
    let killed = run_shell(2, &[], "[ $UNISONO_RANK = 0 ] && kill -9 $$; sleep 300");
    assert_eq!(killed.code, Some(137), "{killed:?}");
    assert!(killed.err.contains("signal 9"), "{killed:?}");
    assert_eq!(run_shell(2, &[], "exit 0").code, Some(0));
}

#[test]
fn who_ignores_the_end_is_killed_after_the_grace() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready").display().to_string();
    let since = Instant::now();
    let script = format!(
        "trap '' TERM; if [ $UNISONO_RANK = 0 ]; then while [ ! -e {ready} ]; do sleep 0.01; done; exit 3; fi; \
         touch {ready}; while :; do sleep 1; done"
    );
    let script = &*script;
    let done = run_shell(2, &["--grace", "300ms"], script);
    assert_eq!(done.code, Some(3), "{done:?}");
    let took = since.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < Duration::from_secs(20),
        "{took:?}"
    );
}

#[test]
fn the_time_may_be_limited() {
    let done = run_shell(2, &["--timeout", "300ms"], "sleep 300");
    assert_eq!(done.code, Some(124), "{done:?}");
}

#[test]
fn lines_have_their_rank_and_are_whole() {
    let script = "i=0; while [ $i -lt 200 ]; do echo line-of-$UNISONO_RANK-$i; i=$((i+1)); done; \
                  echo err >&2; printf unfinished";
    let done = run_shell(3, &[], script);
    assert_eq!(done.code, Some(0), "{done:?}");
    for rank in 0..3 {
        let ours: Vec<_> = done
            .out
            .lines()
            .filter(|l| l.starts_with(&format!("[{rank}] ")))
            .collect();
        assert_eq!(ours.len(), 201, "rank {rank}");
        assert_eq!(ours[0], format!("[{rank}] line-of-{rank}-0"));
        assert_eq!(ours[200], format!("[{rank}] unfinished"));
        assert!(done.err.contains(&format!("[{rank}] err\n")));
    }
    assert_eq!(run_shell(1, &["--no-prefix"], "printf plain").out, "plain");
}

#[test]
fn signals_are_passed_on_and_nothing_is_left() {
    for (sent, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let child = start(&mut shell(2, &[], &sleepers(folder.path(), "")));
        let pids = pids(folder.path(), 2);
        assert!(pids.iter().all(|pid| lives(*pid)));
        signal(child.id(), sent);
        let done = finish(child);
        assert_eq!(done.code, Some(code), "{done:?}");
        all_gone(&pids);
    }
}

#[test]
fn a_rank_may_end_well_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let trap = "trap 'echo bye; exit 0' INT;";
    let child = start(&mut shell(2, &[], &sleepers(folder.path(), trap)));
    let pids = pids(folder.path(), 2);
    signal(child.id(), libc::SIGINT);
    let done = finish(child);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out.contains("[0] bye") && done.out.contains("[1] bye"),
        "{done:?}"
    );
    all_gone(&pids);
}

#[test]
fn ranks_die_with_a_launcher_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "echo $$ > {0}/rank$UNISONO_RANK; exec sleep 300",
        folder.path().display()
    );
    let mut child = start(&mut shell(2, &[], &script));
    let mut ranks = Vec::new();
    wait_until("the ranks start", || {
        ranks = std::fs::read_dir(folder.path())
            .unwrap()
            .filter_map(|e| {
                std::fs::read_to_string(e.unwrap().path())
                    .unwrap()
                    .trim()
                    .parse()
                    .ok()
            })
            .collect::<Vec<u32>>();
        ranks.len() == 2
    });
    child.kill().unwrap();
    child.wait().unwrap();
    all_gone(&ranks);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let done = run(unisono().args(["run", "-n", "2", "--", "/no/such/program"]));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("/no/such/program"), "{done:?}");
    assert_eq!(
        run(unisono().args(["run", "--", "true"])).code,
        Some(2),
        "-n is missing"
    );
    assert_eq!(
        run(unisono().args(["run", "-n", "0", "--", "true"])).code,
        Some(2)
    );
}
