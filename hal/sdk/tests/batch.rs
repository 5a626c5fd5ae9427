//! The check of batches: total, and before anything is taken.
#![allow(unsafe_code, reason = "batches are raw")]

use proptest::prelude::*;
use unisono_plugin::abi::{self, CMD_STREAMING, CMD_WORDS, NO_WINDOW, dtype, reduction};
use unisono_plugin::{Batch, Command, Kinds, NoEvent, Pack, Status};

fn copy() -> abi::CommandCopy {
    let mut c = abi::CommandCopy::zeroed();
    (c.dst, c.src, c.bytes, c.repeat) = (0x1000, 0x2000, 64, 1);
    c
}

fn reduce() -> abi::CommandReduce {
    let mut c = abi::CommandReduce::zeroed();
    (c.dst, c.a, c.b, c.elements, c.repeat) = (0x1000, 0x1000, 0x2000, 16, 1);
    (c.dtype, c.reduction) = (dtype::F32, reduction::SUM);
    c
}

fn wait() -> abi::CommandWait {
    let mut c = abi::CommandWait::zeroed();
    (c.flag, c.counter) = (64, 128);
    c
}

fn signal() -> abi::CommandSignal {
    let mut c = abi::CommandSignal::zeroed();
    (c.flag, c.counter, c.words) = (64, 128, [7, 8, 9]);
    c
}

fn put() -> abi::CommandPut {
    let mut c = abi::CommandPut::zeroed();
    (c.src, c.bytes, c.repeat, c.signal_window) = (0x1000, 10, 1, NO_WINDOW);
    c
}

fn scale() -> abi::CommandScale {
    let mut c = abi::CommandScale::zeroed();
    (c.dst, c.src, c.elements, c.repeat) = (0x1000, 0x2000, 16, 1);
    c.dtype = dtype::F64;
    c
}

fn call() -> abi::CommandCall {
    let mut c = abi::CommandCall::zeroed();
    (c.function, c.dst, c.a, c.b) = (0x3000, 0x1000, 0x1000, 0x2000);
    (c.elements, c.element_bytes) = (16, 8);
    c
}

fn read() -> abi::CommandRead {
    let mut c = abi::CommandRead::zeroed();
    (c.process, c.base, c.offset) = (0x4000, 0x5000, u64::MAX);
    (c.dst, c.bytes) = (0x1000, 64);
    c
}

/// What a stream that can do everything takes.
const ALL: Kinds = Kinds::STREAM.with_scale().with_call().with_read();

/// The status of a batch; `None` if it is accepted.
fn check(pack: &Pack, kinds: Kinds) -> Option<Status> {
    // SAFETY: these batches name no events.
    unsafe { Batch::<NoEvent>::parse(pack.words(), pack.count(), kinds) }
        .err()
        .map(|error| error.status())
}

#[test]
fn commands_come_out_as_they_went_in() {
    let mut pack = Pack::new();
    pack.copy(CMD_STREAMING, copy())
        .reduce(0, reduce())
        .signal(CMD_WORDS, signal())
        .wait(0, wait())
        .scale(CMD_STREAMING, scale())
        .call(0, call())
        .read(0, read());
    // SAFETY: no events.
    let batch = unsafe { Batch::<NoEvent>::parse(pack.words(), pack.count(), ALL) }.unwrap();
    assert_eq!((batch.len(), batch.is_empty()), (7, false));
    let commands: Vec<_> = batch.iter().collect();
    assert!(
        matches!(commands[0], Command::Copy(c) if c.bytes == 64 && c.head.flags == CMD_STREAMING)
    );
    assert!(matches!(commands[1], Command::Reduce(c) if c.dtype == dtype::F32));
    assert!(matches!(commands[2], Command::Signal(c) if c.words == [7, 8, 9]));
    assert!(matches!(commands[3], Command::Wait(c) if c.counter == 128));
    assert!(matches!(commands[4], Command::Scale(c) if c.dtype == dtype::F64));
    assert!(matches!(commands[5], Command::Call(c) if c.function == 0x3000));
    assert!(matches!(commands[6], Command::Read(c) if c.offset == u64::MAX));
    assert_eq!(commands.len(), 7);
}

#[test]
fn a_longer_command_of_a_newer_host_is_taken() {
    let mut pack = Pack::new();
    pack.wait(0, wait());
    let mut words = pack.words().to_vec();
    let mut head = words[0].to_ne_bytes();
    head[2..4].copy_from_slice(&((words.len() as u16 + 1) * 8).to_ne_bytes());
    words[0] = u64::from_ne_bytes(head);
    words.push(99);
    // SAFETY: no events.
    let batch = unsafe { Batch::<NoEvent>::parse(&words, 1, Kinds::STREAM) }.unwrap();
    assert_eq!(batch.iter().count(), 1);
}

#[test]
fn what_breaks_the_contract_is_refused() {
    use Status::{Invalid, Unsupported};
    let mut cases = Vec::new();
    let mut case = |what: &'static str, kinds, status, fill: &dyn Fn(&mut Pack)| {
        let mut pack = Pack::new();
        pack.copy(0, copy());
        let kinds: Kinds = kinds;
        if kinds == Kinds::LINK {
            pack.clear();
            pack.put(0, put());
        }
        assert_eq!(check(&pack, kinds), None, "the command before is good");
        fill(&mut pack);
        cases.push((what, check(&pack, kinds), Some(status)));
    };
    let (s, l) = (Kinds::STREAM, Kinds::LINK);
    case("put on a stream", s, Unsupported, &|p| {
        p.put(0, put());
    });
    case("copy on a link", l, Unsupported, &|p| {
        p.copy(0, copy());
    });
    case("scale on a stream of 1.0", s, Unsupported, &|p| {
        p.scale(0, scale());
    });
    case("call on a stream of 1.0", s, Unsupported, &|p| {
        p.call(0, call());
    });
    case("call on a link", l, Unsupported, &|p| {
        p.call(0, call());
    });
    case("read on a stream of 1.6", s, Unsupported, &|p| {
        p.read(0, read());
    });
    case("read of no process", ALL, Invalid, &|p| {
        let process = 0;
        p.read(0, abi::CommandRead { process, ..read() });
    });
    case(
        "read from an address that is told nowhere",
        ALL,
        Invalid,
        &|p| {
            let base = 0;
            p.read(0, abi::CommandRead { base, ..read() });
        },
    );
    case("read from an odd address", ALL, Invalid, &|p| {
        let base = 12;
        p.read(0, abi::CommandRead { base, ..read() });
    });
    case("read beyond all addresses", ALL, Invalid, &|p| {
        let dst = u64::MAX;
        p.read(0, abi::CommandRead { dst, ..read() });
    });
    case("scale of no known type", ALL, Unsupported, &|p| {
        let dtype = 99;
        p.scale(0, abi::CommandScale { dtype, ..scale() });
    });
    case("scale of no piece", ALL, Invalid, &|p| {
        let repeat = 0;
        p.scale(0, abi::CommandScale { repeat, ..scale() });
    });
    case("scale that wraps", ALL, Invalid, &|p| {
        let elements = u64::MAX / 8;
        p.scale(
            0,
            abi::CommandScale {
                elements,
                ..scale()
            },
        );
    });
    case("call of nothing", ALL, Invalid, &|p| {
        let function = 0;
        p.call(0, abi::CommandCall { function, ..call() });
    });
    case("call on elements of no bytes", ALL, Invalid, &|p| {
        let element_bytes = 0;
        p.call(
            0,
            abi::CommandCall {
                element_bytes,
                ..call()
            },
        );
    });
    case("call that wraps", ALL, Invalid, &|p| {
        let elements = u64::MAX;
        p.call(0, abi::CommandCall { elements, ..call() });
    });
    case("call with flags", ALL, Unsupported, &|p| {
        p.call(CMD_STREAMING, call());
    });
    case("events without events", s, Unsupported, &|p| {
        p.record(0, abi::CommandEvent::zeroed());
    });
    case("unknown flag", s, Unsupported, &|p| {
        p.copy(CMD_WORDS, copy());
    });
    case("repeat 0", s, Invalid, &|p| {
        p.copy(
            0,
            abi::CommandCopy {
                repeat: 0,
                ..copy()
            },
        );
    });
    case("wrapping extent", s, Invalid, &|p| {
        p.copy(
            0,
            abi::CommandCopy {
                repeat: 3,
                src_stride: u64::MAX / 2,
                ..copy()
            },
        );
    });
    case("wrapping elements", s, Invalid, &|p| {
        p.reduce(
            0,
            abi::CommandReduce {
                elements: u64::MAX / 2,
                ..reduce()
            },
        );
    });
    case("unknown type", s, Unsupported, &|p| {
        p.reduce(
            0,
            abi::CommandReduce {
                dtype: 15,
                ..reduce()
            },
        );
    });
    case("xor of floats", s, Unsupported, &|p| {
        p.reduce(
            0,
            abi::CommandReduce {
                reduction: reduction::XOR,
                ..reduce()
            },
        );
    });
    case("no flag", s, Invalid, &|p| {
        p.wait(0, abi::CommandWait { flag: 0, ..wait() });
    });
    case("flag not aligned", s, Invalid, &|p| {
        p.signal(
            0,
            abi::CommandSignal {
                flag: 72,
                ..signal()
            },
        );
    });
    case("no counter", l, Invalid, &|p| {
        p.wait(
            0,
            abi::CommandWait {
                counter: 0,
                ..wait()
            },
        );
    });
    case("half a done", l, Invalid, &|p| {
        p.put(
            0,
            abi::CommandPut {
                done_flag: 64,
                ..put()
            },
        );
    });
    case("wrapping offset", l, Invalid, &|p| {
        p.put(
            0,
            abi::CommandPut {
                dst_offset: u64::MAX,
                ..put()
            },
        );
    });
    for (what, found, expected) in cases {
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn count_and_bytes_must_agree() {
    let mut pack = Pack::new();
    pack.wait(0, wait()).wait(0, wait());
    for count in [0, 1, 3, u32::MAX] {
        // SAFETY: no events.
        let batch = unsafe { Batch::<NoEvent>::parse(pack.words(), count, Kinds::STREAM) };
        assert_eq!(
            batch.unwrap_err().status(),
            Status::Invalid,
            "count {count}"
        );
    }
}

proptest! {
    /// Whatever the words are: an answer, and an accepted batch has as many commands as it says.
    #[test]
    fn any_words_get_an_answer(words: Vec<u64>, count in 0u32..8, kind in 0u16..9, size in 0u16..200) {
        let mut words = words;
        if let Some(first) = words.first_mut() {
            let mut head = [0; 8];
            head[..2].copy_from_slice(&kind.to_ne_bytes());
            head[2..4].copy_from_slice(&size.to_ne_bytes());
            *first = u64::from_ne_bytes(head);
        }
        for kinds in [Kinds::STREAM, Kinds::LINK] {
            // SAFETY: without events in the plugin, none is followed.
            if let Ok(batch) = unsafe { Batch::<NoEvent>::parse(&words, count, kinds) } {
                prop_assert_eq!(batch.iter().count() as u32, count);
            }
        }
    }
}
