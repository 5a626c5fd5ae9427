//! The host's half: starts the helper, waits with a limit, and says what became of it.

#![allow(unsafe_code, reason = "ends the child's process group")]

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::report::{Line, Report, Stage, Verdict};

/// The most bytes that are taken from each of the child's outputs.
const OUTPUT_MAX: u64 = 64 << 10;
/// How long a child that has answered may take to end.
const GRACE: Duration = Duration::from_millis(500);

/// A program that calls [`child_main`](super::child_main) with its last argument as the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper {
    /// The program, by its path.
    pub program: PathBuf,
    /// Arguments before the plugin's path.
    pub args: Vec<OsString>,
}

/// Asks the plugin in a file, in a child process. Blocks for `limit` and a little more at most.
#[must_use]
pub fn check_in_child(path: &Path, helper: &Helper, limit: Duration) -> Report {
    let start = Instant::now();
    let (verdict, output) = match start_child(path, helper) {
        Ok(child) => watch(child, start, limit),
        Err(error) => {
            let program = helper.program.display();
            let what = format!("{program} cannot be started: {error}");
            (Verdict::NoHelper(what), Vec::new())
        }
    };
    Report {
        path: path.to_owned(),
        verdict,
        output: String::from_utf8_lossy(&output).into_owned(),
        elapsed: start.elapsed(),
    }
}

fn start_child(path: &Path, helper: &Helper) -> std::io::Result<Child> {
    Command::new(&helper.program)
        .args(&helper.args)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

fn watch(mut child: Child, start: Instant, limit: Duration) -> (Verdict, Vec<u8>) {
    let lines = drain(child.stdout.take());
    let output = drain(child.stderr.take());
    let ended = wait(&child, start + limit);
    // Whatever the plugin started goes with it; the group is the child's own. The child is not
    // reaped yet, so its number belongs to nobody else.
    // SAFETY: a plain system call on the process group that was made for this child.
    unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
    let status = child.wait().ok().filter(|_| ended);
    let lines = received(&lines);
    let verdict = judge(&lines, status, limit);
    (verdict, received(&output))
}

/// Reads a pipe to its end or its limit, on a thread of its own; what comes after is thrown away.
fn drain(from: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (to, receiver) = channel();
    let Some(mut from) = from else {
        return receiver;
    };
    thread::spawn(move || {
        let (mut left, mut buffer) = (OUTPUT_MAX, vec![0; 4096]);
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let keep = left.min(n as u64) as usize;
            left -= keep as u64;
            if keep > 0 && to.send(buffer[..keep].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// What a pipe gave. A process that left the child's group may hold the pipe open: it is not
/// waited for.
fn received(from: &Receiver<Vec<u8>>) -> Vec<u8> {
    let deadline = Instant::now() + GRACE;
    let mut all = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match from.recv_timeout(left) {
            Ok(piece) => all.extend_from_slice(&piece),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return all,
        }
    }
}

/// Whether the child ends in time. It is not reaped.
fn wait(child: &Child, deadline: Instant) -> bool {
    let mut pause = Duration::from_micros(200);
    loop {
        if has_ended(child) {
            return true;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn has_ended(child: &Child) -> bool {
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a plain C struct, valid when zero, and a system call that writes to it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let answer = libc::waitid(libc::P_PID, child.id(), &raw mut info, flags);
        answer == 0 && info.si_pid() != 0
    }
}

fn judge(lines: &[u8], status: Option<ExitStatus>, limit: Duration) -> Verdict {
    let mut stage = Stage::Start;
    let mut answer = None;
    for line in lines.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Line::Stage(next)) => stage = next,
            Ok(Line::Refused(reason)) => answer = Some(Verdict::Refused { stage, reason }),
            Ok(Line::Sound(summary)) => answer = Some(Verdict::Sound(summary)),
            // Only the helper has this pipe; a plugin that finds it spoils its own report.
            Err(_) => {
                return Verdict::NoHelper("the helper's answer makes no sense".into());
            }
        }
    }
    let Some(status) = status else {
        return Verdict::Hung { stage, limit };
    };
    if let Some(signal) = status.signal() {
        return Verdict::Crashed { stage, signal };
    }
    match (answer, status.code()) {
        (Some(verdict), Some(0)) if stage == Stage::End => verdict,
        (None, Some(_)) if stage == Stage::Start => {
            Verdict::NoHelper(format!("the helper ended with {status} and no answer"))
        }
        (_, code) => Verdict::Exited {
            stage,
            code: code.unwrap_or(-1),
        },
    }
}
