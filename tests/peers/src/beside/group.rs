//! One library's ranks, alive and blocked between commands.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::Timespec;
use serde_json::Value;
use tempfile::TempDir;

use crate::cell::{Calls, Cell};
use crate::stop;

const START: Duration = Duration::from_secs(60);
const ANSWER: Duration = Duration::from_secs(60);
const LEAVE: Duration = Duration::from_secs(3);

/// What a trial found.
pub struct Answer {
    /// A call, in microseconds: the slowest rank's mean.
    pub usec: f64,
    /// Whether the result was checked and is not what it must be.
    pub wrong: bool,
}

/// Ranks of one library. They end when this is dropped; were this program killed, they would end
/// by their pipes' end.
pub struct Group {
    /// The library, as it is named in tables.
    pub name: String,
    /// What it says of itself.
    pub version: String,
    launcher: Child,
    /// Of the ranks, which a launcher may have put into process groups of their own.
    pids: BTreeMap<u32, Pid>,
    commands: Vec<File>,
    results: File,
    unread: Vec<u8>,
    log: File,
    _folder: TempDir,
}

impl Group {
    /// Starts `command` and waits until all ranks are ready. `environment` is what they all get.
    pub fn start(
        name: &str,
        mut command: Command,
        ranks: u32,
        environment: &[(&str, String)],
    ) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("peers-").tempdir()?;
        let results = pipe(&folder.path().join("r"))?;
        let commands = (0..ranks)
            .map(|rank| pipe(&folder.path().join(format!("c.{rank}"))))
            .collect::<Result<_>>()?;
        let log = tempfile::tempfile()?;
        command
            .env("PEERS_CTL", folder.path())
            .envs(environment.iter().map(|(name, value)| (*name, value)))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .process_group(0);
        let program = command.get_program().display().to_string();
        let launcher = command
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let mut group = Self {
            name: name.to_owned(),
            version: String::new(),
            launcher,
            pids: BTreeMap::new(),
            commands,
            results,
            unread: Vec::new(),
            log,
            _folder: folder,
        };
        let end = Instant::now() + START;
        while group.pids.len() < ranks as usize {
            let hello = group.line(end)?;
            let rank = hello["hello"].as_u64().context("a rank says no hello")?;
            let pid = hello["pid"]
                .as_u64()
                .and_then(|pid| i32::try_from(pid).ok());
            let pid = pid
                .and_then(Pid::from_raw)
                .context("a rank names no process")?;
            group.pids.insert(rank as u32, pid);
            group.version = hello["version"].as_str().unwrap_or_default().to_owned();
        }
        Ok(group)
    }

    /// Measures a cell; none if the library cannot.
    pub fn measure(&mut self, cell: Cell, calls: Calls, verify: bool) -> Result<Option<Answer>> {
        let Calls {
            warmup,
            timed,
            cap_us,
        } = calls;
        let line = format!(
            "run {} {} {warmup} {timed} {cap_us:.0} {}\n",
            cell.op,
            cell.bytes,
            u8::from(verify)
        );
        for pipe in &mut self.commands {
            pipe.write_all(line.as_bytes())?;
        }
        let answer = self.line(Instant::now() + ANSWER)?;
        Ok(answer["usec_median"].as_f64().map(|usec| Answer {
            usec,
            wrong: answer["wrong"].as_f64().is_some_and(|wrong| wrong > 0.0),
        }))
    }

    /// The next line of JSON from the ranks.
    fn line(&mut self, end: Instant) -> Result<Value> {
        loop {
            if let Some(at) = self.unread.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=at).collect();
                let value = serde_json::from_slice(&line);
                return value.with_context(|| format!("{} writes no JSON", self.name));
            }
            if stop::asked() {
                bail!("interrupted");
            }
            let tick = Timespec {
                tv_sec: 0,
                tv_nsec: 200_000_000,
            };
            let mut ready = [PollFd::new(&self.results, PollFlags::IN)];
            // An interrupt of the poll is looked at above.
            if poll(&mut ready, Some(&tick)).unwrap_or(0) > 0 {
                let mut bytes = [0; 4096];
                let count = self.results.read(&mut bytes)?;
                self.unread.extend_from_slice(&bytes[..count]);
            } else if let Some(status) = self.launcher.try_wait()? {
                bail!("the ranks ended ({status}){}", self.said());
            } else if Instant::now() >= end {
                bail!("no answer in time{}", self.said());
            }
        }
    }

    /// The end of what the processes printed.
    fn said(&mut self) -> String {
        let mut text = Vec::new();
        let _ = self.log.seek(SeekFrom::Start(0));
        let _ = (&self.log).take(1 << 20).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let mut lines: Vec<&str> = text
            .lines()
            .rev()
            .filter(|l| !l.trim().is_empty())
            .take(8)
            .collect();
        lines.reverse();
        match lines.is_empty() {
            true => String::new(),
            false => format!(":\n    {}", lines.join("\n    ")),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A pipe that is full belongs to a rank that hangs, which is killed below.
        for pipe in &mut self.commands {
            let _ = pipe.write_all(b"quit\n");
        }
        let end = Instant::now() + LEAVE;
        while Instant::now() < end {
            if !matches!(self.launcher.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        for &pid in self.pids.values() {
            let _ = kill_process(pid, Signal::KILL);
        }
        if let Some(pid) = i32::try_from(self.launcher.id())
            .ok()
            .and_then(Pid::from_raw)
        {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.launcher.wait();
    }
}

/// A new named pipe, open to both sides, so that neither opening nor writing waits for a rank.
fn pipe(path: &Path) -> Result<File> {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)
        .with_context(|| format!("making the pipe {}", path.display()))?;
    Ok(OpenOptions::new().read(true).write(true).open(path)?)
}
