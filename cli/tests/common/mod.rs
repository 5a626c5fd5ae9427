//! What the tests of the command line share: running it with a limit.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a command may take; it is killed then, and the test fails.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// The command line, without what the environment of the tests says about jobs.
pub fn unisono() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unisono"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("UNISONO_") {
            command.env_remove(&*name);
        }
    }
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Done {
    finish(start(command))
}

/// Starts a command whose output is kept.
pub fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

/// Waits for its end.
pub fn finish(mut child: Child) -> Done {
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).map(|_| text)
        })
    };
    let out = read(Box::new(child.stdout.take().expect("piped")));
    let err = read(Box::new(child.stderr.take().expect("piped")));
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("a child of this process");
            let _ = child.wait();
            panic!("not done within {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = |reader: std::thread::JoinHandle<std::io::Result<String>>| {
        reader.join().expect("no panic").expect("UTF-8")
    };
    Done {
        code: status.code(),
        out: text(out),
        err: text(err),
    }
}
