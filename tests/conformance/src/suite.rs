//! Runs checks against one plugin, each in processes of its own: one that crashes, hangs or leaks
//! spoils no other.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::check::{self, Check};
use crate::expect::{Expectations, Verdict};
use crate::outcome::Outcome;
use crate::report::{Report, Row};

/// A run of the suite.
#[derive(Clone, Debug)]
pub struct Suite {
    plugin: PathBuf,
    runner: PathBuf,
    params: Vec<(String, String)>,
    peer_params: Vec<(String, String)>,
    expectations: Option<Expectations>,
    only: Vec<String>,
    limit: Duration,
}

impl Suite {
    /// Against the plugin in this library. `runner` is the program `unisono-conformance`, which
    /// runs each check.
    #[must_use]
    pub fn new(plugin: impl Into<PathBuf>, runner: impl Into<PathBuf>) -> Self {
        Self {
            plugin: plugin.into(),
            runner: runner.into(),
            params: Vec::new(),
            peer_params: Vec::new(),
            expectations: None,
            only: Vec::new(),
            limit: Duration::from_secs(90),
        }
    }

    /// Judges by a list of what may be skipped and what is known to fail. Without one, everything
    /// may be skipped and nothing may fail.
    #[must_use]
    pub fn expect(mut self, expectations: Expectations) -> Self {
        self.expectations = Some(expectations);
        self
    }

    /// Parameters for the plugin's instances, as (name, text).
    #[must_use]
    pub fn params(mut self, params: Vec<(String, String)>) -> Self {
        self.params = params;
        self
    }

    /// What the second process of a check has in place of the first one's parameters, or besides:
    /// where two network cards are joined by a cable, each process has one of them.
    #[must_use]
    pub fn peer_params(mut self, params: Vec<(String, String)>) -> Self {
        self.peer_params = params;
        self
    }

    /// Only these groups, or checks as `group/name`.
    #[must_use]
    pub fn only(mut self, names: Vec<String>) -> Self {
        self.only = names;
        self
    }

    /// What one check may take; a check that takes longer has failed.
    #[must_use]
    pub const fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the checks, one after another, and tells each row as it comes.
    ///
    /// # Errors
    /// A name in the expectations or in `only` that is no group and no check; that a process
    /// cannot be started.
    pub fn run(&self, mut tell: impl FnMut(&Row)) -> Result<Report, String> {
        if let Some(expectations) = &self.expectations {
            expectations.check()?;
        }
        let checks = self.chosen()?;
        let mut rows = Vec::with_capacity(checks.len());
        for check in checks {
            let start = Instant::now();
            let outcome = self.run_one(&check)?;
            let verdict = match &self.expectations {
                Some(list) => list.verdict(check.group, check.name, &outcome),
                None => Verdict::without_a_list(&outcome),
            };
            let row = Row {
                group: check.group,
                name: check.name,
                promise: check.promise,
                verdict,
                outcome,
                seconds: start.elapsed().as_secs_f64(),
            };
            tell(&row);
            rows.push(row);
        }
        Ok(Report { rows })
    }

    fn chosen(&self) -> Result<Vec<Check>, String> {
        let all = check::all();
        for name in &self.only {
            if !all
                .iter()
                .any(|c| c.group == name || c.full_name() == *name)
            {
                return Err(format!("there is no group and no check `{name}`"));
            }
        }
        let wanted = |c: &Check| {
            self.only.is_empty()
                || self
                    .only
                    .iter()
                    .any(|name| c.group == name || c.full_name() == *name)
        };
        Ok(all.into_iter().filter(wanted).collect())
    }

    fn run_one(&self, check: &Check) -> Result<Outcome, String> {
        let error = |e: std::io::Error| format!("{}: {e}", self.runner.display());
        let (here, there) = UnixStream::pair().map_err(error)?;
        let mut command = worker(&self.runner, &self.plugin, check, 0, &self.params, there);
        command.args(flags("peer-param", &self.peer_params));
        let mut child = command.spawn().map_err(error)?;
        let ended = wait(&mut child, self.limit).map_err(error)?;
        let Some(status) = ended else {
            return Ok(Outcome::Fail(format!(
                "did not end within {:?}",
                self.limit
            )));
        };
        let mut text = String::new();
        // A plugin that forked may hold the socket open: what is there now is all.
        here.set_nonblocking(true).map_err(error)?;
        let _ = (&here).read_to_string(&mut text);
        Ok(match serde_json::from_str(&text) {
            Ok(outcome) => outcome,
            Err(_) => Outcome::Fail(how_it_died(status)),
        })
    }
}

/// The program of one role, to be started.
pub(crate) fn worker(
    runner: &Path,
    plugin: &Path,
    check: &Check,
    role: u32,
    params: &[(String, String)],
    socket: UnixStream,
) -> Command {
    let mut command = Command::new(runner);
    command
        .arg(plugin)
        .args(["--worker", &check.full_name(), "--role", &role.to_string()])
        .args(flags("param", params))
        .stdin(Stdio::from(OwnedFd::from(socket)))
        // What a plugin prints is no part of the report.
        .stdout(Stdio::null());
    command
}

fn flags(flag: &str, params: &[(String, String)]) -> impl Iterator<Item = String> {
    let one = move |(name, text): &(String, String)| format!("--{flag}={name}={text}");
    params.iter().map(one)
}

/// Waits, and ends a process whose time is up (`None`).
pub(crate) fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A process that ended without an outcome.
pub(crate) fn how_it_died(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("the process that ran it died of signal {signal}"),
        None => format!("the process that ran it ended early: {status}"),
    }
}
