//! A log, translated: addresses become cells and flags, ready to be replayed many times.

use std::collections::HashMap;
use std::ops::Range;

use crate::case::Case;
use crate::command::{Command, words};
use crate::log::{Log, Queue};

pub(crate) mod flags;
mod memory;
mod place;

pub use flags::{Flag, Line};
pub(crate) use memory::Memory;

/// Bytes of an element: one cell.
pub(crate) const ELEMENT: u64 = 4;

/// What the ranks of a case executed, by queue.
#[derive(Debug)]
pub struct Program {
    pub(crate) case: Case,
    pub(crate) queues: Vec<Lane>,
    pub(crate) flags: Vec<Flag>,
    /// How many counters there are.
    pub(crate) counters: usize,
    pub(crate) memory: Memory,
    /// By call, the cells of each rank's input and output.
    pub(crate) calls: Vec<Vec<Ends>>,
}

/// A queue's steps in order.
#[derive(Debug)]
pub(crate) struct Lane {
    pub rank: u32,
    pub peer: Option<u32>,
    pub steps: Vec<Step>,
}

/// Cells of a rank's buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub input: Range<u32>,
    pub output: Range<u32>,
}

/// One command. Cells that belong together have numbers that follow each other.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Copy {
        dst: u32,
        src: u32,
        len: u32,
    },
    Reduce {
        dst: u32,
        a: u32,
        b: u32,
        len: u32,
    },
    Raise(Raise),
    Wait {
        flag: u32,
        counter: u32,
        words: Option<[u64; 3]>,
    },
    Put {
        src: Range<u32>,
        dst: u32,
        signal: Option<Raise>,
        done: Option<Raise>,
    },
    /// A rank tells where its buffers are, in a flag's line.
    Tell {
        line: u64,
        ends: [u64; 2],
    },
    /// The other keeps it.
    Keep {
        dst: u64,
        src: u64,
    },
    /// Reads a peer's buffer, which begins where was told.
    Read {
        dst: u32,
        base: u64,
        offset: u64,
        len: u32,
    },
    /// The call with this number has returned to its caller.
    End(u32),
}

/// A signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raise {
    pub flag: u32,
    /// A signal at the other end of a link has none: that end counts.
    pub counter: Option<u32>,
    pub words: Option<[u64; 3]>,
}

impl Program {
    /// Translates what was recorded of a case.
    ///
    /// # Errors
    /// A command that this case has no reason for, in words: of a kind that it needs none of, or at
    /// an address that nobody gave.
    pub fn new(case: Case, log: &Log) -> Result<Self, String> {
        let mut translation = Translation {
            log,
            memory: Memory::new(log)?,
            flags: flags::Flags::new(log, case.ranks)?,
            counters: HashMap::new(),
        };
        let mut queues = Vec::with_capacity(log.queues.len());
        for queue in &log.queues {
            let steps = queue.commands.iter().enumerate();
            let steps = steps.map(|(index, command)| {
                translation.step(queue, command).map_err(|why| {
                    let (rank, peer) = (queue.rank, queue.peer);
                    format!("rank {rank}, link to {peer:?}, command {index}: {why}: {command:?}")
                })
            });
            queues.push(Lane {
                rank: queue.rank,
                peer: queue.peer,
                steps: steps.collect::<Result<_, _>>()?,
            });
        }
        let calls = (log.calls.iter()).map(|ranks| {
            let ends = |buffers: &crate::log::Buffers| {
                Ok(Ends {
                    input: translation.memory.range(&buffers.input)?,
                    output: translation.memory.range(&buffers.output)?,
                })
            };
            ranks.iter().map(ends).collect::<Result<_, String>>()
        });
        Ok(Self {
            case,
            queues,
            calls: calls.collect::<Result<_, _>>()?,
            counters: translation.counters.len(),
            flags: translation.flags.list,
            memory: translation.memory,
        })
    }

    /// Commands of all ranks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.steps.len()).sum()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

struct Translation<'a> {
    log: &'a Log,
    memory: Memory,
    flags: flags::Flags,
    counters: HashMap<u64, u32>,
}

impl Translation<'_> {
    fn step(&mut self, queue: &Queue, command: &Command) -> Result<Step, String> {
        Ok(match command {
            Command::Copy(c) if c.repeat == 1 => Step::Copy {
                dst: self.memory.cell(c.dst, c.bytes)?,
                src: self.memory.cell(c.src, c.bytes)?,
                len: len(c.bytes)?,
            },
            Command::Reduce(c) if c.repeat == 1 => {
                let bytes = c.elements * ELEMENT;
                Step::Reduce {
                    dst: self.memory.cell(c.dst, bytes)?,
                    a: self.memory.cell(c.a, bytes)?,
                    b: self.memory.cell(c.b, bytes)?,
                    len: len(bytes)?,
                }
            }
            Command::Signal(c) => Step::Raise(Raise {
                flag: self.flags.at(c.flag)?,
                counter: Some(self.counter(c.counter)),
                words: words(&c.head, c.words),
            }),
            Command::Wait(c) => Step::Wait {
                flag: self.flags.at(c.flag)?,
                counter: self.counter(c.counter),
                words: words(&c.head, c.words),
            },
            Command::Put(c) if c.repeat == 1 => {
                let signal = match c.signal_window {
                    unisono_abi::NO_WINDOW => None,
                    window => Some(Raise {
                        flag: (self.flags).at(self.remote(
                            queue,
                            window,
                            c.signal_offset,
                            64,
                        )?)?,
                        counter: None,
                        words: words(&c.head, c.words),
                    }),
                };
                let done = (c.done_flag != 0).then(|| {
                    Ok::<_, String>(Raise {
                        flag: self.flags.at(c.done_flag)?,
                        counter: Some(self.counter(c.done_counter)),
                        words: None,
                    })
                });
                let (src, dst) = match c.bytes {
                    0 => (0..0, 0),
                    bytes => {
                        let from = self.memory.cell(c.src, bytes)?;
                        let to = self.remote(queue, c.dst_window, c.dst_offset, bytes)?;
                        (from..from + len(bytes)?, self.memory.cell(to, bytes)?)
                    }
                };
                Step::Put {
                    src,
                    dst,
                    signal,
                    done: done.transpose()?,
                }
            }
            Command::Tell { line, ends } => Step::Tell {
                line: *line,
                ends: *ends,
            },
            Command::Keep(c) if c.repeat == 1 && c.bytes == 16 => Step::Keep {
                dst: c.dst,
                src: c.src,
            },
            Command::Read(c) => Step::Read {
                dst: self.memory.cell(c.dst, c.bytes)?,
                base: c.base,
                offset: c.offset,
                len: len(c.bytes)?,
            },
            Command::End(call) => Step::End(*call),
            Command::Copy(_) | Command::Keep(_) | Command::Reduce(_) | Command::Put(_) => {
                return Err("one piece was expected".to_owned());
            }
            Command::Other(kind) => return Err(format!("nothing here needs kind {kind}")),
        })
    }

    /// An address behind a window of the link's other end.
    fn remote(&self, queue: &Queue, id: u32, offset: u64, bytes: u64) -> Result<u64, String> {
        let end = (self.log.queues.iter())
            .find(|other| other.peer == Some(queue.rank) && queue.peer == Some(other.rank));
        let end = end.ok_or("a link has two ends")?;
        let window = end.windows.iter().find(|window| window.0 == id);
        let &(_, base, room) = window.ok_or("no such window at the other end")?;
        if offset + bytes > room {
            return Err(format!("outside window {id}, which has {room} bytes"));
        }
        Ok(base + offset)
    }

    fn counter(&mut self, address: u64) -> u32 {
        let next = self.counters.len() as u32;
        *self.counters.entry(address).or_insert(next)
    }
}

/// Cells of some bytes.
fn len(bytes: u64) -> Result<u32, String> {
    match (bytes % ELEMENT, u32::try_from(bytes / ELEMENT)) {
        (0, Ok(len)) => Ok(len),
        _ => Err("not whole elements".to_owned()),
    }
}
