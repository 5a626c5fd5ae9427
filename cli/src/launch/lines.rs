//! The ranks' output, line by line, with the rank before each.

use std::io::{IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A line that is longer is printed in pieces.
const LINE_MAX: usize = 64 << 10;

/// How long output is waited for that something else than a rank holds open.
const PATIENCE: Duration = Duration::from_millis(500);

/// Prints the lines of all ranks, one at a time.
pub struct Printer {
    shared: Arc<Shared>,
    readers: Mutex<Vec<JoinHandle<()>>>,
    /// Digits of the largest rank.
    width: usize,
}

struct Shared {
    one_at_a_time: Mutex<()>,
    nobody_reads: AtomicBool,
}

/// One of the two outputs.
#[derive(Clone, Copy)]
pub enum Stream {
    Out,
    Err,
}

impl Printer {
    pub fn new(ranks: u32) -> Self {
        Self {
            shared: Arc::new(Shared {
                one_at_a_time: Mutex::new(()),
                nobody_reads: AtomicBool::new(false),
            }),
            readers: Mutex::default(),
            width: ranks.saturating_sub(1).to_string().len(),
        }
    }

    /// Prints what comes from here, on a thread of its own, until it ends.
    pub fn follow(&self, rank: u32, from: impl Read + Send + 'static, stream: Stream) {
        let prefix = prefix(rank, self.width, stream.has_colors());
        let shared = self.shared.clone();
        let reader = std::thread::spawn(move || {
            split(from, |line| shared.print(stream, &prefix, line));
        });
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.push(reader);
    }

    /// Whether the reader of this process's output has gone.
    pub fn nobody_reads(&self) -> bool {
        self.shared.nobody_reads.load(Ordering::Relaxed)
    }

    /// Waits until everything is printed. A process that left its rank's group may hold an output
    /// open: it is not waited for.
    pub fn finish(&self) {
        let until = Instant::now() + PATIENCE;
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for reader in readers.drain(..) {
            while !reader.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            if reader.is_finished() {
                // It does not panic; if it did, its rank's output ended early.
                let _ = reader.join();
            }
        }
    }
}

impl Shared {
    fn print(&self, stream: Stream, prefix: &str, line: &[u8]) {
        let mut text = Vec::with_capacity(prefix.len() + line.len() + 1);
        text.extend_from_slice(prefix.as_bytes());
        text.extend_from_slice(line);
        text.push(b'\n');
        let _one = self
            .one_at_a_time
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let written = match stream {
            Stream::Out => {
                let mut out = std::io::stdout().lock();
                out.write_all(&text).and_then(|()| out.flush())
            }
            Stream::Err => std::io::stderr().lock().write_all(&text),
        };
        if written.is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            self.nobody_reads.store(true, Ordering::Relaxed);
        }
    }
}

impl Stream {
    fn has_colors(self) -> bool {
        let terminal = match self {
            Self::Out => std::io::stdout().is_terminal(),
            Self::Err => std::io::stderr().is_terminal(),
        };
        terminal && std::env::var_os("NO_COLOR").is_none_or(|text| text.is_empty())
    }
}

fn prefix(rank: u32, width: usize, colors: bool) -> String {
    if colors {
        // Six colors that are readable on dark and on light.
        let color = 31 + rank % 6;
        format!("\x1b[{color}m[{rank:width$}]\x1b[0m ")
    } else {
        format!("[{rank:width$}] ")
    }
}

/// Calls `line` for each line, without its end; the last one may lack it.
fn split(mut from: impl Read, mut line: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 16 << 10];
    let mut pending: Vec<u8> = Vec::new();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                line(&pending[..pending.len() - 1]);
                pending.clear();
            }
        }
        while pending.len() > LINE_MAX {
            line(&pending[..LINE_MAX]);
            pending.drain(..LINE_MAX);
        }
    }
    if !pending.is_empty() {
        line(&pending);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_and_the_last_may_lack_its_end() {
        let mut lines = Vec::new();
        split(&b"a\n\nbc\nd"[..], |line| lines.push(line.to_vec()));
        assert_eq!(lines, [&b"a"[..], b"", b"bc", b"d"]);
        let long = vec![b'x'; LINE_MAX + 7];
        let mut lengths = Vec::new();
        split(&long[..], |line| lengths.push(line.len()));
        assert_eq!(lengths, [LINE_MAX, 7]);
    }

    #[test]
    fn prefixes_are_aligned() {
        assert_eq!(prefix(3, 2, false), "[ 3] ");
        assert_eq!(prefix(7, 1, true), "\x1b[32m[7]\x1b[0m ");
    }
}
