//! Ranks as processes: a test starts its own binary again, once a rank.
//!
//! ```no_run
//! # use unisono_tests::Job;
//! # fn the_tests_own_name() {
//! let ranks = Job::new("the_tests_own_name", 4)
//!     .start(|rank| {
//!         // In the process of each rank; it ends when this returns.
//!         let world = rank.init(|_| {});
//!         rank.say(&format!("{} is here", world.rank()));
//!     })
//!     .finish();
//! // In the test's own process.
//! assert!(ranks[2].said("2 is here"));
//! # }
//! ```
//!
//! A test starts only one kind of job, as often as it likes; what stands before the start runs in
//! each rank's process too.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use unisono::bootstrap::{InterfaceFilter, RootSpec, Secret, SecretSource};
use unisono::{Communicator, InitOptions};

use crate::threads::options;
use crate::watchdog::watchdog;

const RANK: &str = "UNISONO_TEST_RANK";
const SIZE: &str = "UNISONO_TEST_SIZE";
const NAME: &str = "UNISONO_TEST_JOB";
const ROOT: &str = "UNISONO_TEST_ROOT";
const SECRET: &str = "UNISONO_TEST_SECRET";
const PARENT: &str = "UNISONO_TEST_PARENT";
const LIMIT: &str = "UNISONO_TEST_LIMIT_MS";

/// Stands before what ranks say, on a line of its own.
const SAYS: &str = "rank says: ";

/// A job to be started.
#[derive(Debug)]
pub struct Job {
    test: String,
    size: u32,
    ranks: Vec<u32>,
    root: Option<(String, String)>,
    environment: Vec<(String, String)>,
    limit: Duration,
}

impl Job {
    /// Of `size` ranks, in the test of this name (with its modules, as `--exact` wants it).
    #[must_use]
    pub fn new(test: &str, size: u32) -> Self {
        Self {
            test: test.to_owned(),
            size,
            ranks: (0..size).collect(),
            root: None,
            environment: Vec::new(),
            limit: Duration::from_secs(60),
        }
    }

    /// All must be done within this; a minute unless said otherwise. Who is not is ended.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts only these ranks.
    #[must_use]
    pub fn only(mut self, ranks: &[u32]) -> Self {
        self.ranks = ranks.to_vec();
        self
    }

    /// A variable of every rank's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    /// The ranks meet at this `host:port`, under this secret, and not over the node's own sockets.
    #[must_use]
    pub fn root(mut self, address: &str, secret: &str) -> Self {
        self.root = Some((address.to_owned(), secret.to_owned()));
        self
    }

    /// In the test's process: starts the ranks. In a rank's process: calls `body` and ends the
    /// process; if `body` panics, the process fails.
    ///
    /// Call it on the test's own thread: the ranks end with the thread that started them.
    ///
    /// # Panics
    /// If a process cannot be started.
    #[must_use = "the ranks end when this is dropped"]
    pub fn start(self, body: impl FnOnce(Rank)) -> Running {
        if let Some(rank) = Rank::of_this_process() {
            let limit = number::<u64>(LIMIT).map_or(self.limit, Duration::from_millis);
            // The test ends its ranks a little earlier, if it lives.
            let _limit = watchdog(&self.test, limit + Duration::from_secs(5));
            body(rank);
            std::process::exit(0);
        }
        static JOBS: AtomicU32 = AtomicU32::new(0);
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", std::process::id());
        let ranks = self
            .ranks
            .iter()
            .map(|rank| self.start_one(*rank, &name))
            .collect();
        Running {
            test: self.test,
            ranks,
            end: Instant::now() + self.limit,
        }
    }

    fn start_one(&self, rank: u32, name: &str) -> Process {
        let binary = std::env::current_exe().expect("the path of this binary");
        let mut command = Command::new(binary);
        command
            .args(["--exact", &self.test, "--nocapture", "--test-threads=1"])
            .env(RANK, rank.to_string())
            .env(SIZE, self.size.to_string())
            .env(NAME, name)
            .env_remove(ROOT)
            .env_remove(SECRET)
            .env(PARENT, std::process::id().to_string())
            .env(LIMIT, self.limit.as_millis().to_string())
            .envs(
                self.root
                    .iter()
                    .flat_map(|(root, secret)| [(ROOT, root), (SECRET, secret)]),
            )
            .envs(self.environment.iter().map(|(n, v)| (n, v)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process for a rank");
        let output = child.stdout.take().expect("the output is piped");
        let heard = Arc::new(Heard::default());
        let hears = heard.clone();
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                hears.add(line);
            }
        });
        Process {
            rank,
            child,
            heard,
            reader: Some(reader),
        }
    }
}

/// What a rank's process knows of itself.
#[derive(Debug)]
pub struct Rank {
    /// Its rank.
    pub rank: u32,
    /// Ranks in the job.
    pub size: u32,
    job: String,
    root: RootSpec,
}

impl Rank {
    fn of_this_process() -> Option<Self> {
        let rank = number(RANK)?;
        // Whoever started this process ends it, whatever happens; if that one is gone already,
        // nobody wants an answer.
        set_parent_process_death_signal(Some(Signal::KILL)).expect("a parent-death signal");
        if number(PARENT) != Some(std::os::unix::process::parent_id()) {
            std::process::exit(1);
        }
        Some(Self {
            rank,
            size: number(SIZE)?,
            job: std::env::var(NAME).ok()?,
            root: std::env::var(ROOT).map_or(RootSpec::Node, RootSpec::Address),
        })
    }

    /// Options to join the job with.
    #[must_use]
    pub fn options(&self) -> InitOptions {
        let mut options = options(self.rank, self.size, self.root.clone());
        options.job = self.job.clone();
        options.interfaces = InterfaceFilter::loopback();
        if let Ok(secret) = std::env::var(SECRET) {
            let secret = Secret::from_text(secret.as_bytes(), SECRET).expect("the test's secret");
            options.secret = SecretSource::Given(secret);
        }
        options
    }

    /// Joins the job.
    ///
    /// # Panics
    /// If that fails.
    pub fn init(&self, adjust: impl FnOnce(&mut InitOptions)) -> Communicator {
        let mut options = self.options();
        adjust(&mut options);
        Communicator::init(options).unwrap_or_else(|error| panic!("rank {}: {error}", self.rank))
    }

    /// The lines that the test sends with [`Running::tell`], from now on. To be called once.
    #[must_use]
    pub fn told(&self) -> Receiver<String> {
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let lines = std::io::stdin().lines().map_while(Result::ok);
            // Ends with the test's process, or when nobody listens.
            lines
                .map(|line| tell.send(line))
                .take_while(Result::is_ok)
                .count();
        });
        told
    }

    /// Tells the test something, on one line.
    pub fn say(&self, text: &str) {
        // The harness leaves its own line unfinished while a test runs.
        println!("\n{SAYS}{text}");
    }
}

/// A job that runs. Dropped, it is ended.
#[derive(Debug)]
pub struct Running {
    test: String,
    ranks: Vec<Process>,
    end: Instant,
}

#[derive(Debug)]
struct Process {
    rank: u32,
    child: Child,
    heard: Arc<Heard>,
    reader: Option<JoinHandle<()>>,
}

/// How a rank ended, and what it said.
#[derive(Debug)]
pub struct Exit {
    /// Its rank.
    pub rank: u32,
    /// How its process ended.
    pub status: ExitStatus,
    /// Whether it had to be ended because its time was up.
    pub late: bool,
    /// What it said, line by line.
    pub lines: Vec<String>,
}

impl Running {
    /// The process of a rank.
    ///
    /// # Panics
    /// If it was not started.
    #[must_use]
    pub fn pid(&self, rank: u32) -> u32 {
        self.find(rank).child.id()
    }

    /// Waits until a rank has said this, and gives the whole line; `None` if it ended, or the time
    /// was up, before it did.
    #[must_use]
    pub fn wait_for(&self, rank: u32, text: &str) -> Option<String> {
        self.find(rank).heard.wait_for(text, self.end)
    }

    /// Sends a rank a line, for its [`Rank::told`].
    pub fn tell(&mut self, rank: u32, text: &str) {
        let process = self.ranks.iter_mut().find(|p| p.rank == rank);
        if let Some(input) = process.and_then(|p| p.child.stdin.as_mut()) {
            // If it has ended, `finish` says so.
            let _ = writeln!(input, "{text}");
        }
    }

    /// Kills a rank, as an operator's `kill -9` would.
    pub fn kill(&mut self, rank: u32) {
        if let Some(process) = self.ranks.iter_mut().find(|p| p.rank == rank) {
            // It may be gone already.
            let _ = process.child.kill();
        }
    }

    /// Waits for all of them; those whose time is up are ended.
    #[must_use]
    pub fn finish(mut self) -> Vec<Exit> {
        let end = self.end;
        let exits = self
            .ranks
            .iter_mut()
            .map(|process| process.finish(end))
            .collect();
        self.ranks.clear();
        exits
    }

    /// Waits for all of them, which must succeed.
    ///
    /// # Panics
    /// If one does not; says which.
    #[must_use]
    pub fn succeed(self) -> Vec<Exit> {
        let test = self.test.clone();
        let exits = self.finish();
        for exit in &exits {
            assert!(
                exit.status.success() && !exit.late,
                "{test}: rank {} {}{}; it said {:?}",
                exit.rank,
                exit.status,
                if exit.late {
                    ", because its time was up"
                } else {
                    ""
                },
                exit.lines
            );
        }
        exits
    }

    fn find(&self, rank: u32) -> &Process {
        let found = self.ranks.iter().find(|p| p.rank == rank);
        found.unwrap_or_else(|| panic!("rank {rank} of {} was not started", self.test))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let now = Instant::now();
        for process in &mut self.ranks {
            process.finish(now);
        }
    }
}

impl Process {
    fn finish(&mut self, end: Instant) -> Exit {
        let mut late = false;
        let status = loop {
            match self.child.try_wait().expect("a child of this process") {
                Some(status) => break status,
                None if Instant::now() >= end && !late => {
                    late = true;
                    let _ = self.child.kill();
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        // A forked child of the rank's may hold the pipe for longer; what it says is nobody's.
        let patience = Instant::now() + Duration::from_millis(500);
        if let Some(reader) = self.reader.take() {
            while !reader.is_finished() && Instant::now() < patience {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Exit {
            rank: self.rank,
            status,
            late,
            lines: self.heard.said(),
        }
    }
}

impl Exit {
    /// Whether the rank said this, as a line or a part of one.
    #[must_use]
    pub fn said(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// What the rank said after `key` and a blank.
    ///
    /// # Panics
    /// If it did not say that.
    #[must_use]
    pub fn answer(&self, key: &str) -> &str {
        self.answered(key).unwrap_or_else(|| {
            panic!(
                "rank {} did not say `{key}`, but {:?}",
                self.rank, self.lines
            )
        })
    }

    /// What the rank said after `key` and a blank, if it said that.
    #[must_use]
    pub fn answered(&self, key: &str) -> Option<&str> {
        let mut found = self
            .lines
            .iter()
            .filter_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        found.next()
    }
}

/// What a rank has said so far.
#[derive(Debug, Default)]
struct Heard {
    lines: Mutex<Vec<String>>,
    more: Condvar,
}

impl Heard {
    fn add(&self, line: String) {
        if let Some(said) = line.strip_prefix(SAYS) {
            self.lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(said.to_owned());
            self.more.notify_all();
        }
    }

    fn said(&self) -> Vec<String> {
        self.lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn wait_for(&self, text: &str, end: Instant) -> Option<String> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(line) = lines.iter().find(|line| line.contains(text)) {
                return Some(line.clone());
            }
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.more.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn number<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok()?.parse().ok()
}
