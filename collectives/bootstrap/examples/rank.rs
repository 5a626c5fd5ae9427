//! One rank as a process of its own, for the tests of this crate and for soaks: joins by `UNISONO_RANK`,
//! `UNISONO_WORLD_SIZE`, `UNISONO_ROOT` and `UNISONO_SECRET_FILE`, says so, and then does what its argument says.
//!
//! - `gather N`: N exchanges of the ranks' numbers, checked; prints `done`.
//! - `watch`: prints every event; when rank R dies, shrinks, exchanges among the survivors and prints `survivors ..`.
//! - `fork`: forks a child that sleeps with all descriptors open, then sleeps itself, to be killed.
//! - `fork-call`: forks a child that calls the channel and drops it; prints what the call said, then goes on as
//!   `gather 20`.
#![allow(
    unsafe_code,
    reason = "fork, whose effect on the channel is what is tested"
)]

use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use unisono_bootstrap::{
    Bootstrap, Event, Heartbeat, Joined, Options, RankInfo, Result, SecretSource, Tag, Wait, shrink,
};

const LIMIT: Duration = Duration::from_secs(30);

fn main() {
    if let Err(error) = run() {
        eprintln!("rank failed: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let info = RankInfo::from_environment()?;
    let mut options = Options::from_info(&info);
    options.secret = SecretSource::discover(&|name| std::env::var(name).ok(), None, None, None)?;
    options.wait = Wait::at_most(LIMIT);
    options.heartbeat = Heartbeat {
        interval: Duration::from_millis(100),
        timeout: Duration::from_millis(1500),
    };
    let joined = Bootstrap::join(options)?;
    say(&format!(
        "joined {} of {} as process {}",
        joined.control.rank(),
        joined.control.size(),
        std::process::id()
    ));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("gather") => gather(
            &joined,
            arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(1),
        ),
        Some("watch") => watch(&joined),
        Some("fork") => fork_and_sleep(&joined),
        Some("fork-call") => fork_and_call(joined),
        other => {
            eprintln!("unknown task {other:?}; known are gather N, watch, fork, fork-call");
            std::process::exit(2);
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    // If nobody reads, nobody misses it.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn gather(joined: &Joined, rounds: u64) -> Result<()> {
    let members: Vec<u32> = (0..joined.control.size()).collect();
    for sequence in 0..rounds {
        let tag = Tag {
            communicator: 1,
            sequence,
        };
        let mine = joined.control.rank().to_le_bytes();
        let all = joined
            .control
            .all_gather(&members, tag, &mine, &Wait::at_most(LIMIT))?;
        assert!(
            all.iter()
                .zip(&members)
                .all(|(bytes, rank)| bytes[..] == rank.to_le_bytes())
        );
    }
    joined.control.leave(&Wait::at_most(LIMIT))?;
    say("done");
    Ok(())
}

/// Sleeps and turns until `limit`, or until `stop` says so of an event.
fn drive(joined: &Joined, limit: Duration, mut stop: impl FnMut(&Event) -> bool) -> Result<()> {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        let nap = joined
            .control
            .idle_time(Instant::now())
            .min(Duration::from_millis(100));
        let nap = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: nap.subsec_nanos().into(),
        };
        let mut set = [rustix::event::PollFd::from_borrowed_fd(
            joined.control.as_fd(),
            rustix::event::PollFlags::IN,
        )];
        // An interruption is as good as an early wake.
        let _ = rustix::event::poll(&mut set, Some(&nap));
        for event in joined.control.turn(Instant::now())? {
            say(&format!("{event:?}"));
            if stop(&event) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn watch(joined: &Joined) -> Result<()> {
    drive(joined, LIMIT, |event| matches!(event, Event::Dead { .. }))?;
    let members: Vec<u32> = (0..joined.control.size()).collect();
    let survivors = shrink(
        &joined.control,
        Tag {
            communicator: 1,
            sequence: 0,
        },
        &members,
        &[],
        &Wait::at_most(LIMIT),
    )?;
    let mine = joined.control.rank().to_le_bytes();
    let tag = Tag {
        communicator: 2,
        sequence: 0,
    };
    let all = joined
        .control
        .all_gather(&survivors, tag, &mine, &Wait::at_most(LIMIT))?;
    assert!(
        all.iter()
            .zip(&survivors)
            .all(|(bytes, rank)| bytes[..] == rank.to_le_bytes())
    );
    say(&format!("survivors {survivors:?}"));
    joined.control.leave(&Wait::at_most(LIMIT))
}

fn fork_and_sleep(joined: &Joined) -> Result<()> {
    // SAFETY: the child only sleeps and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        std::thread::sleep(Duration::from_secs(20));
        // SAFETY: ends the child without running what belongs to its parent.
        unsafe { libc::_exit(0) };
    }
    say(&format!("forked {child}"));
    drive(joined, LIMIT, |_| false)
}

fn fork_and_call(joined: Joined) -> Result<()> {
    // SAFETY: this process has one thread, so the child may run on as it would.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let sent = joined.control.send(
            0,
            Tag {
                communicator: 1,
                sequence: 0,
            },
            b"from a child",
        );
        let turned = joined.control.turn(Instant::now());
        say(&format!(
            "child: {:?} {:?}",
            sent.map_err(|e| e.to_string()),
            turned.map_err(|e| e.to_string())
        ));
        drop(joined);
        // SAFETY: ends the child without running what belongs to its parent.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a valid place for the child's status.
    unsafe { libc::waitpid(child, &mut status, 0) };
    gather(&joined, 20)
}
