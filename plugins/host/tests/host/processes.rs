//! Two processes: one runs this test binary again as its peer.

use std::env;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use unisono_plugin::Pack;
use unisono_plugin::abi::{CommandReduce, dtype, place, reduction, sleep, status};

use crate::contract::{Host, Memory, copy, signal, wait};
use crate::sleep::drive;

const ROLE: &str = "UNISONO_TEST_PEER_WAY";
const SLOT: u64 = 4096;
const BYTES: u64 = 1 << 20;
const ROUNDS: u64 = 200;
/// In each arena: its flag, then its owner's counters for sending and receiving.
const COUNTERS: u64 = 64;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("strings take all");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |i: usize| u8::from_str_radix(&text[i..i + 2], 16).expect("hex");
    (0..text.trim().len()).step_by(2).map(digit).collect()
}

/// What one process has of itself and of the other.
struct Pair {
    host: Host,
    own: Memory,
    peer: Memory,
    peer_bell: Memory,
    _bell: Memory,
}

impl Pair {
    /// Exchanges descriptions by lines.
    fn meet(mut say: impl FnMut(String), mut hear: impl FnMut() -> String) -> Self {
        let host = Host::open();
        let (own, bell) = (host.exportable(SLOT + BYTES), host.bell());
        say(format!("MEMORY {}", hex(&own.export().unwrap())));
        say(format!("MEMORY {}", hex(&bell.export().unwrap())));
        let peer = host.import(&unhex(&hear())).unwrap();
        let peer_bell = host.import(&unhex(&hear())).unwrap();
        assert_eq!(
            (peer.view.place, peer.view.bytes),
            (place::IMPORTED, SLOT + BYTES)
        );
        Self {
            host,
            own,
            peer,
            peer_bell,
            _bell: bell,
        }
    }

    /// Rounds of all-reduce of two, each writing into the other's slot.
    fn exchange(&self, way: u32, mine: u32, theirs: u32) {
        let data = self.host.exportable(BYTES);
        let mut stream = self.host.stream();
        let counter = self.own.base() + COUNTERS;
        for round in 0..ROUNDS {
            let value = |rank: u32, i: u32| rank.wrapping_mul(1000) + i + round as u32;
            let elements = BYTES as u32 / 4;
            let ints = data.at(0).cast::<u32>();
            for i in (0..elements).step_by(997) {
                // SAFETY: within the data, which no stream uses now.
                unsafe { ints.add(i as usize).write(value(mine, i)) };
            }
            let mut reduce = CommandReduce::zeroed();
            (reduce.dst, reduce.a, reduce.b) = (data.base(), data.base(), self.own.base() + SLOT);
            (reduce.elements, reduce.repeat) = (u64::from(elements), 1);
            (reduce.dtype, reduce.reduction) = (dtype::U32, reduction::SUM);
            let mut pack = Pack::new();
            pack.copy(0, copy(self.peer.base() + SLOT, data.base(), BYTES));
            let bell = self.peer_bell.base();
            pack.signal(0, signal(self.peer.base(), counter, bell, [0; 3]));
            pack.wait(0, wait(self.own.base(), counter + 16, [0; 3]));
            pack.reduce(0, reduce);
            // The slot is free again: the credit of the other.
            pack.signal(
                0,
                signal(self.peer.base() + 256, counter + 32, bell, [0; 3]),
            );
            pack.wait(0, wait(self.own.base() + 256, counter + 48, [0; 3]));
            assert_eq!(stream.submit(&pack), Ok(6));
            drive(&mut stream, way);
            for i in (0..elements).step_by(997) {
                // SAFETY: as above.
                let found = unsafe { ints.add(i as usize).read() };
                assert_eq!(
                    found,
                    value(mine, i) + value(theirs, i),
                    "round {round} element {i}"
                );
            }
        }
    }
}

fn spawn(way: u32) -> (Child, ChildStdin, impl FnMut() -> String) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "processes::peer", "--ignored", "--nocapture"])
        .env(ROLE, way.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The test harness speaks on the same stream.
    let hear = move || loop {
        let line = lines.next().expect("the peer speaks").unwrap();
        if let Some((_, description)) = line.split_once("MEMORY ") {
            return description.to_owned();
        }
    };
    (child, input, hear)
}

fn with_peer(way: u32) {
    let (mut child, mut input, mut hear) = spawn(way);
    let say = |line: String| writeln!(input, "{}", line.replace("MEMORY ", "")).unwrap();
    let pair = Pair::meet(say, &mut hear);
    pair.exchange(way, 1, 2);
    assert!(child.wait().unwrap().success(), "the peer failed");
    // Its memory stays mapped, and a signal to the dead does no harm.
    pair.peer.store(0, 1);
    let mut pack = Pack::new();
    let counter = pair.own.base() + COUNTERS;
    pack.signal(
        0,
        signal(pair.peer.base(), counter, pair.peer_bell.base(), [0; 3]),
    );
    let mut stream = pair.host.stream();
    stream.submit(&pack).unwrap();
    assert_eq!(stream.poll().unwrap().completed, 1);
}

#[test]
fn two_processes_reduce_through_each_others_memory() {
    with_peer(sleep::FUTEX);
}

#[test]
fn two_processes_wake_each_other_by_pipe() {
    with_peer(sleep::FD);
}

#[test]
fn a_dead_process_exports_nothing() {
    let (mut child, input, mut hear) = spawn(sleep::FUTEX);
    let description = unhex(&hear());
    drop(input);
    child.kill().unwrap();
    child.wait().unwrap();
    let error = Host::open().import(&description).map(|_| ()).unwrap_err();
    assert_eq!(error.status, status::PEER);
    assert!(error.message.contains("alive"), "{}", error.message);
}

#[test]
#[ignore = "run by the tests above, as their other process"]
fn peer() {
    let way = env::var(ROLE)
        .expect("started by a test above")
        .parse()
        .unwrap();
    let say = |line: String| {
        println!("{line}");
        std::io::stdout().flush().unwrap();
    };
    let hear = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    Pair::meet(say, hear).exchange(way, 2, 1);
}
