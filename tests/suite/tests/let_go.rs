//! When a call over windows fails: it returns only when no peer can touch them any more.

#![allow(unsafe_code, reason = "looks at a window while a call writes it")]

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Error, Rules};
use unisono_tests::{Job, Rank, watchdog};

const MS: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(60);

/// Each rank's block: long enough to stop a rank in the middle of its copy.
const BLOCK: usize = 256 << 20;

fn windows() -> Rules {
    Rules::new(|_, _| Overrides {
        rules: vec![Override {
            op: None,
            bytes: BLOCK as u64..=u64::MAX,
            algorithm: Algorithm::MeshOneShot.into(),
            windowed: Some(true),
            put_bytes: None,
        }],
    })
}

/// Whether the process is stopped, as the system says.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    state.starts_with('T')
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < 20_000 * MS, "{what}");
        std::hint::spin_loop();
    }
}

/// Rank 1 is stopped while it writes into rank 0's window, and rank 0 then aborts; after `stopped`
/// rank 1 goes on. Says how long rank 0's call took to fail, and whether anything was written after
/// that.
fn abort_while_the_peer_is_stopped(rank: &Rank, drain: Duration, stopped: Duration) {
    let world = rank.init(|options| {
        options.rules = windows();
        options.timeouts.abort_drain = drain;
    });
    let mut pids = [0_u32; 2];
    world
        .all_gather(&[std::process::id()], &mut pids)
        .expect("all_gather");
    let mut send = world.alloc::<u8>(BLOCK).expect("alloc");
    let mut recv = world.alloc::<u8>(2 * BLOCK).expect("alloc");
    assert!(recv.is_direct());
    send.fill(7);
    let theirs = &raw const recv[BLOCK] as usize;
    world.barrier().expect("barrier");
    if rank.rank == 1 {
        let error = world.all_gather(&send, &mut recv).expect_err("an abort");
        assert!(matches!(error, Error::Aborted { .. }), "{error}");
        return;
    }
    let peer = Pid::from_raw(pids[1] as i32).expect("a process");
    let abort = world.abort_handle();
    std::thread::scope(|scope| {
        let (world, send) = (&world, &send);
        let caller = scope.spawn(move || {
            let error = world.all_gather(send, &mut recv).expect_err("an abort");
            let failed = Instant::now();
            assert!(matches!(error, Error::Aborted { .. }), "{error}");
            recv.fill(9);
            (recv, failed)
        });
        wait_until("nothing was written", || {
            // SAFETY: within the window, which lives as long as the scope; what another process
            // writes meanwhile is looked at as a volatile byte.
            unsafe { (theirs as *const u8).read_volatile() == 7 }
        });
        kill_process(peer, Signal::STOP).expect("a signal");
        wait_until("the peer is not stopped", || is_stopped(pids[1]));
        let since = Instant::now();
        abort.abort("enough");
        std::thread::sleep(stopped);
        kill_process(peer, Signal::CONT).expect("a signal");
        let (recv, failed) = caller.join().expect("no panic");
        std::thread::sleep(300 * MS);
        rank.say(&format!("took {}", (failed - since).as_millis()));
        let kept = recv.iter().all(|byte| *byte == 9);
        rank.say(&format!("kept {kept}"));
    });
}

#[test]
fn a_failed_call_waits_for_peers_that_still_write() {
    let test = "a_failed_call_waits_for_peers_that_still_write";
    let _limit = watchdog(test, LIMIT);
    let ranks = Job::new(test, 2).start(|rank| {
        abort_while_the_peer_is_stopped(&rank, 20_000 * MS, 500 * MS);
    });
    let exits = ranks.succeed();
    assert_eq!(exits[0].answer("kept"), "true", "written after the failure");
    let took: u64 = exits[0].answer("took").parse().expect("a number");
    assert!((490..5_000).contains(&took), "{took} ms");
}

#[test]
fn it_waits_no_longer_than_the_drain_s_limit() {
    let test = "it_waits_no_longer_than_the_drain_s_limit";
    let _limit = watchdog(test, LIMIT);
    let ranks = Job::new(test, 2).start(|rank| {
        abort_while_the_peer_is_stopped(&rank, 400 * MS, 3_000 * MS);
    });
    let took: u64 = ranks.succeed()[0].answer("took").parse().expect("a number");
    assert!((400..2_500).contains(&took), "{took} ms");
}
