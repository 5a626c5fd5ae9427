//! Ranks as processes: they meet, die with sockets left open by a child, and fork.

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(40);

/// Examples lie beside the folder of the tests, which cargo builds together with them.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let folder = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("it lies in target/*/deps");
    folder.join("examples").join(name)
}

/// A rank's process, killed if the test gives up on it.
struct Rank {
    child: Child,
    lines: Receiver<(Instant, String)>,
}

impl Rank {
    fn start(mut command: Command) -> Rank {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example `rank` starts");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Nobody reads on once the test is over.
                let _ = sender.send((Instant::now(), line));
            }
        });
        Rank { child, lines }
    }

    /// The next line that begins so, and when it came.
    fn expect(&self, start: &str) -> (Instant, String) {
        let until = Instant::now() + LIMIT;
        let mut seen = Vec::new();
        loop {
            match self
                .lines
                .recv_timeout(until.saturating_duration_since(Instant::now()))
            {
                Ok((at, line)) if line.starts_with(start) => return (at, line),
                Ok((_, line)) => seen.push(line),
                Err(e) => panic!("no line {start:?} ({e}), only {seen:?}"),
            }
        }
    }

    /// Waits until it ends, and well.
    fn finish(mut self) {
        let until = Instant::now() + LIMIT;
        loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => return assert!(status.success(), "{status}"),
                None => assert!(Instant::now() < until, "a rank does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) -> Instant {
        self.child.kill().expect("it can be killed");
        let at = Instant::now();
        self.child.wait().expect("it can be waited for");
        at
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // It has mostly ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A whole job, on nodes of `per_node` ranks (0: as this machine is). All but `tasks` do the last of them.
fn start(name: &str, size: u32, per_node: u32, tasks: &[&str]) -> Vec<Rank> {
    let port = common::free_address().port();
    let secret = std::env::temp_dir().join(format!("unisono-{name}-{}", std::process::id()));
    std::fs::write(
        &secret,
        format!(
            "{name} {port} {:?} padded to thirty-two bytes",
            Instant::now()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    let ranks = (0..size).map(|rank| {
        let mut command = Command::new(example("rank"));
        let task = tasks[(rank as usize).min(tasks.len() - 1)];
        command
            .args(task.split(' '))
            .env("UNISONO_ROOT", format!("127.0.0.1:{port}"));
        command.env("UNISONO_SECRET_FILE", &secret);
        command
            .env("UNISONO_RANK", rank.to_string())
            .env("UNISONO_WORLD_SIZE", size.to_string());
        match per_node {
            0 => command.env("UNISONO_LOCAL_SIZE", size.to_string()),
            _ => command.env("UNISONO_NODE_ID", format!("node {}", rank / per_node)),
        };
        Rank::start(command)
    });
    ranks.collect()
}

#[test]
fn processes_meet_and_exchange() {
    for (size, per_node) in [(1, 0), (2, 0), (4, 2), (8, 0), (17, 5)] {
        let ranks = start("meet", size, per_node, &["gather 20"]);
        ranks.iter().for_each(|rank| drop(rank.expect("done")));
        ranks.into_iter().for_each(Rank::finish);
    }
}

/// Rank 1 is killed while its child sleeps with all its sockets open.
fn death_with_a_sleeping_child(name: &str, per_node: u32, within: Duration, words: &str) {
    let mut ranks = start(name, 5, per_node, &["watch", "fork", "watch"]);
    let (_, forked) = ranks[1].expect("forked ");
    let child: i32 = forked["forked ".len()..].parse().expect("a process id");
    ranks
        .iter()
        .filter(|rank| rank.child.id() != ranks[1].child.id())
        .for_each(|rank| drop(rank.expect("joined")));
    let killed = ranks[1].kill();
    for (index, rank) in ranks.iter().enumerate().filter(|(index, _)| *index != 1) {
        let (at, line) = rank.expect("Dead");
        assert!(
            line.contains("rank: 1") && line.contains(words),
            "rank {index}: {line}"
        );
        assert!(
            at - killed < within,
            "rank {index} learned of it after {:?}",
            at - killed
        );
        assert_eq!(rank.expect("survivors").1, "survivors [0, 2, 3, 4]");
    }
    let sleeps = std::path::Path::new(&format!("/proc/{child}")).exists();
    let killed_child = Command::new("kill")
        .args(["-9", &child.to_string()])
        .status();
    assert!(sleeps, "the child held the sockets open all the while");
    assert!(killed_child.is_ok_and(|status| status.success()));
    ranks.remove(1);
    ranks.into_iter().for_each(Rank::finish);
}

#[test]
fn a_death_on_this_node_is_seen_by_its_process() {
    death_with_a_sleeping_child("pidfd", 0, Duration::from_secs(1), "process ended");
}

#[test]
fn a_death_on_another_node_is_seen_by_its_silence() {
    // The heartbeat's timeout in the example is 1.5 s, its interval 0.1 s.
    death_with_a_sleeping_child(
        "heartbeat",
        1,
        Duration::from_millis(3500),
        "no sign of life",
    );
}

#[test]
fn a_stopped_process_on_this_node_is_not_dead() {
    let ranks = start("stop", 3, 0, &["watch", "fork", "watch"]);
    ranks.iter().for_each(|rank| drop(rank.expect("joined")));
    let pid = ranks[1].child.id().to_string();
    let signal = |name: &str| {
        assert!(
            Command::new("kill")
                .args([name, &pid])
                .status()
                .expect("kill runs")
                .success()
        )
    };
    signal("-STOP");
    std::thread::sleep(Duration::from_millis(2500));
    for rank in [0, 2] {
        assert!(
            ranks[rank].lines.try_recv().is_err(),
            "no news is right: a stopped process lives"
        );
    }
    signal("-CONT");
}

#[test]
fn a_forked_child_is_refused_and_its_end_touches_nothing() {
    let ranks = start("fork", 3, 0, &["fork-call", "gather 20"]);
    let (_, line) = ranks[0].expect("child: ");
    assert_eq!(line.matches("was forked from rank 0").count(), 2, "{line}");
    ranks.iter().for_each(|rank| drop(rank.expect("done")));
    ranks.into_iter().for_each(Rank::finish);
}
