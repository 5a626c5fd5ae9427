//! Recordings that fork: the vendors' rules for them, and what runs of such a graph keep to.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::raw::{Runtime, Vendor, call};
use super::{comes, on};

/// What both vendors answer.
const ILLEGAL_STATE: i32 = 401;
const UNSUPPORTED: i32 = 900;
const INVALIDATED: i32 = 901;
const MERGE: i32 = 902;
const UNMATCHED: i32 = 903;
const UNJOINED: i32 = 904;
const ISOLATION: i32 = 905;
const IMPLICIT: i32 = 906;
const CAPTURED_EVENT: i32 = 907;

const LATE: &str = "delays: {one_in: 3, longest_us: 300}\n";
const BYTES: usize = 1 << 16;

/// Those with recordings.
fn on_both(test: &str, adjust: &str, body: impl Fn(Program) + Copy) {
    for vendor in [Vendor::Cuda, Vendor::Hip] {
        on(
            test,
            vendor,
            |text| text + adjust,
            |runtime| body(Program(runtime)),
        );
    }
}

/// A program that records.
struct Program(Runtime);

impl Program {
    fn name(&self, cuda: &'static str, hip: &'static str) -> &'static str {
        self.0.vendor.name(cuda, hip, "")
    }

    fn begin(&self, stream: u64) -> i32 {
        let name = self.name("cuStreamBeginCapture_v2", "hipStreamBeginCapture");
        call!(self.0, name, (stream): u64, (0): u32)
    }

    /// A graph, or why not.
    fn end(&self, stream: u64) -> Result<u64, i32> {
        let (name, mut graph) = (self.name("cuStreamEndCapture", "hipStreamEndCapture"), 0);
        match call!(self.0, name, (stream): u64, (&raw mut graph): *mut u64) {
            0 => Ok(graph),
            code => Err(code),
        }
    }

    /// A graph, ready to run.
    fn made(&self, stream: u64) -> u64 {
        let (graph, mut runnable) = (self.end(stream).expect("a graph"), 0);
        let to = &raw mut runnable;
        let code = match self.0.vendor {
            Vendor::Cuda => {
                let name = "cuGraphInstantiateWithFlags";
                call!(self.0, name, (to): *mut u64, (graph): u64, (0): u64)
            }
            _ => {
                let (name, none) = ("hipGraphInstantiate", ptr::null_mut());
                call!(
                    self.0, name, (to): *mut u64, (graph): u64, (none): *mut u64, (none): *mut u64,
                    (0): usize,
                )
            }
        };
        assert_eq!(code, 0);
        runnable
    }

    fn launch(&self, graph: u64, stream: u64) -> i32 {
        let name = self.name("cuGraphLaunch", "hipGraphLaunch");
        call!(self.0, name, (graph): u64, (stream): u64)
    }

    fn event(&self) -> u64 {
        let name = self.name("cuEventCreate", "hipEventCreateWithFlags");
        let mut event = 0;
        assert_eq!(call!(self.0, name, (&raw mut event): *mut u64, (2): u32), 0);
        event
    }

    fn record(&self, event: u64, stream: u64) -> i32 {
        let name = self.name("cuEventRecord", "hipEventRecord");
        call!(self.0, name, (event): u64, (stream): u64)
    }

    fn wait(&self, stream: u64, event: u64) -> i32 {
        self.wait_as(stream, event, 0)
    }

    fn wait_as(&self, stream: u64, event: u64, flags: u32) -> i32 {
        let name = self.name("cuStreamWaitEvent", "hipStreamWaitEvent");
        call!(self.0, name, (stream): u64, (event): u64, (flags): u32)
    }

    fn query(&self, event: u64) -> i32 {
        let name = self.name("cuEventQuery", "hipEventQuery");
        call!(self.0, name, (event): u64)
    }

    /// Whether a stream records, and the number of what it records.
    fn info(&self, stream: u64) -> (u32, u64) {
        let (mut status, mut id) = (9, 0);
        let (to, id_to) = (&raw mut status, &raw mut id);
        let code = match self.0.vendor {
            Vendor::Cuda => {
                let (name, none) = ("cuStreamGetCaptureInfo_v2", ptr::null_mut());
                call!(
                    self.0, name, (stream): u64, (to): *mut u32, (id_to): *mut u64,
                    (none): *mut u64, (none): *mut u64, (none): *mut u64,
                )
            }
            _ => {
                let name = "hipStreamGetCaptureInfo";
                call!(self.0, name, (stream): u64, (to): *mut u32, (id_to): *mut u64)
            }
        };
        assert_eq!(code, 0);
        (status, id)
    }

    /// Puts a call on a stream that adds one to a count.
    fn count(&self, stream: u64, count: &'static AtomicU64) {
        unsafe extern "C" fn add(count: *mut c_void) {
            // SAFETY: the count, which is static.
            unsafe { &*count.cast::<AtomicU64>() }.fetch_add(1, Ordering::SeqCst);
        }
        type Call = unsafe extern "C" fn(*mut c_void);
        let name = self.name("cuLaunchHostFunc", "hipLaunchHostFunc");
        let data = ptr::from_ref(count).cast_mut().cast();
        assert_eq!(
            call!(self.0, name, (stream): u64, (add): Call, (data): *mut c_void),
            0
        );
    }
}

/// Diamonds: what forks is behind what it forked from, and what joins behind both branches.
#[test]
fn branches_keep_to_their_order() {
    static COUNTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    let test = "captures::branches_keep_to_their_order";
    on_both(test, LATE, |program| {
        let runtime = &program.0;
        let at = runtime.alloc(5 * BYTES);
        let place = |number: usize| at + (number * BYTES) as u64;
        let copy = |stream, to, from| {
            assert_eq!(runtime.copy(stream, place(to), place(from), BYTES), 0);
        };
        let [first, second, third] = [(); 3].map(|()| runtime.stream());
        assert_eq!(program.begin(first), 0);
        let (status, id) = program.info(first);
        assert_eq!((status, program.info(second)), (1, (0, 0)));
        copy(first, 1, 0);
        runtime.order(first, second);
        runtime.order(second, third);
        assert_eq!([second, third].map(|s| program.info(s)), [(1, id); 2]);
        copy(first, 2, 1);
        copy(second, 3, 1);
        program.count(second, &COUNTS[0]);
        copy(third, 4, 1);
        runtime.order(third, second);
        copy(second, 4, 3);
        runtime.order(second, first);
        copy(first, 3, 4);
        copy(first, 1, 2);
        program.count(first, &COUNTS[1]);
        let graph = program.made(first);
        assert_eq!(program.info(second), (0, 0), "it ends for all");
        assert_eq!(COUNTS[0].load(Ordering::SeqCst), 0, "nothing has run");
        for round in 1..=100 {
            assert_eq!(program.launch(graph, third), 0);
            copy(third, 1, 4);
            if round % 16 == 0 {
                assert_eq!(runtime.synchronise(third), 0);
                let counts = COUNTS.each_ref().map(|count| count.load(Ordering::SeqCst));
                assert_eq!(counts, [round; 2]);
            }
        }
        assert_eq!(runtime.synchronise(third), 0);
        // Another recording has another number.
        assert_eq!(program.begin(second), 0);
        assert_ne!(program.info(second), (1, id));
        assert!(program.end(second).is_ok(), "an empty one");
    });
}

/// What only stood one behind the other in the program, on two branches, breaks the device.
#[test]
fn branches_that_nothing_orders_meet() {
    let test = "captures::branches_that_nothing_orders_meet";
    on_both(test, LATE, |program| {
        let runtime = &program.0;
        let at = runtime.alloc(3 << 20);
        let [first, second] = [(); 2].map(|()| runtime.stream());
        assert_eq!(program.begin(first), 0);
        runtime.order(first, second);
        assert_eq!(runtime.copy(first, at + (1 << 20), at, 1 << 20), 0);
        let from = at + (1 << 20);
        assert_eq!(runtime.copy(second, at + (2 << 20), from, 1 << 20), 0);
        runtime.order(second, first);
        let graph = program.made(first);
        let _ = (0..300).all(|_| program.launch(graph, first) == 0);
        let race = runtime.vendor.codes().race;
        assert_eq!(runtime.synchronise(first), race, "{:?}", runtime.vendor);
    });
}

/// One branch waits, the other goes on; what is behind the launch waits for both.
#[test]
fn branches_run_beside_each_other() {
    static COUNTS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
    let test = "captures::branches_run_beside_each_other";
    on_both(test, "", |program| {
        let runtime = &program.0;
        let word = runtime.word();
        let [first, second] = [(); 2].map(|()| runtime.stream());
        assert_eq!(program.begin(first), 0);
        runtime.order(first, second);
        runtime.hold(first, word);
        program.count(second, &COUNTS[0]);
        runtime.order(second, first);
        let graph = program.made(first);
        let mut beside = 0;
        for round in 1..=20 {
            word.set(0);
            assert_eq!(program.launch(graph, first), 0);
            program.count(first, &COUNTS[1]);
            let end = Instant::now() + Duration::from_millis(100);
            while COUNTS[0].load(Ordering::SeqCst) < round && Instant::now() < end {
                std::thread::yield_now();
            }
            // No vendor promises that it does each time.
            beside += u64::from(COUNTS[0].load(Ordering::SeqCst) == round);
            assert_eq!(COUNTS[1].load(Ordering::SeqCst), round - 1);
            word.set(1);
            assert!(comes(|| COUNTS[1].load(Ordering::SeqCst) == round));
            assert_eq!(COUNTS[0].load(Ordering::SeqCst), round);
        }
        assert!(beside > 0, "{:?}", runtime.vendor);
    });
}

/// What a recording cannot have spoils it, and is told again at its end.
#[test]
fn rules_of_recordings() {
    on_both("captures::rules_of_recordings", "", |program| {
        let runtime = &program.0;
        let at = runtime.alloc(4096);
        let [first, second, other] = [(); 3].map(|()| runtime.stream());
        let [inside, outside, foreign] = [(); 3].map(|()| program.event());
        let fork = || {
            assert_eq!(program.begin(first), 0);
            assert_eq!(program.record(inside, first), 0);
            assert_eq!(program.wait(second, inside), 0);
        };
        let is_spoilt = || {
            assert_eq!(program.info(first).0, 2);
            assert_eq!(program.info(second).0, 2);
            assert_eq!(runtime.copy(second, at, at + 64, 64), INVALIDATED);
            assert_eq!(program.record(inside, second), INVALIDATED);
            assert_eq!(program.end(first), Err(INVALIDATED));
            assert_eq!([first, second].map(|s| program.info(s).0), [0; 2]);
        };
        assert_eq!(program.end(first), Err(ILLEGAL_STATE));

        // Only where it began, and once.
        fork();
        assert_eq!(program.begin(second), ILLEGAL_STATE);
        assert_eq!(program.end(second), Err(UNMATCHED));
        is_spoilt();

        // Work that is not joined; a branch with none needs no joining.
        fork();
        assert_eq!(runtime.copy(second, at, at + 64, 64), 0);
        assert_eq!(program.end(first), Err(UNJOINED));
        assert_eq!(program.end(first), Err(ILLEGAL_STATE));
        fork();
        assert!(program.end(first).is_ok());
        // Joined, and then more.
        fork();
        runtime.order(second, first);
        assert_eq!(runtime.copy(second, at, at + 64, 64), 0);
        assert_eq!(program.end(first), Err(UNJOINED));

        // An event of outside, recorded or not.
        fork();
        assert_eq!(program.wait(second, outside), ISOLATION);
        is_spoilt();
        assert_eq!(program.record(outside, other), 0);
        fork();
        assert_eq!(program.wait(first, outside), ISOLATION);
        is_spoilt();

        // Another recording's.
        fork();
        assert_eq!(program.begin(other), 0);
        assert_eq!(program.record(foreign, other), 0);
        assert_eq!(program.wait(second, foreign), MERGE);
        is_spoilt();
        assert_eq!(program.end(other), Err(INVALIDATED));

        // The host asks for a point of a recording, during it and after.
        fork();
        assert_eq!(program.query(inside), CAPTURED_EVENT);
        is_spoilt();
        assert_eq!(program.query(inside), CAPTURED_EVENT);
        assert_eq!(program.wait(other, inside), CAPTURED_EVENT);
        // Recorded outside it is an event like any other.
        assert_eq!(program.record(inside, other), 0);
        assert_eq!(program.wait(first, inside), 0);
        assert!(comes(|| program.query(inside) == 0));

        // A stream that joined cannot be asked either, and the default stream cannot join.
        fork();
        let query = program.name("cuStreamQuery", "hipStreamQuery");
        assert_eq!(call!(runtime, query, (second): u64), UNSUPPORTED);
        is_spoilt();
        fork();
        assert_eq!(program.wait(0, inside), IMPLICIT);
        is_spoilt();

        // Nor does a copy from memory that is not pinned wait its turn.
        let here = [0_u8; 64];
        fork();
        let (name, from) = (
            program.name("cuMemcpyAsync", "hipMemcpyAsync"),
            here.as_ptr() as u64,
        );
        let code = match runtime.vendor {
            Vendor::Cuda => {
                call!(runtime, name, (at): u64, (from): u64, (64): usize, (second): u64)
            }
            _ => {
                call!(runtime, name, (at): u64, (from): u64, (64): usize, (4): u32, (second): u64)
            }
        };
        assert_eq!(code, UNSUPPORTED);
        is_spoilt();
    });
}

/// A graph that waits for what is none of it, as it is told to, waits for what is recorded when it runs.
#[test]
fn a_graph_waits_for_others_if_it_is_told_to() {
    const EXTERNAL: u32 = 1;
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let test = "captures::a_graph_waits_for_others_if_it_is_told_to";
    on_both(test, "", |program| {
        let runtime = &program.0;
        let [first, other] = [(); 2].map(|()| runtime.stream());
        let (event, word) = (program.event(), runtime.word());
        let invalid = runtime.vendor.codes().invalid_value;
        assert_eq!(program.wait_as(first, event, EXTERNAL), invalid);
        assert_eq!(program.begin(first), 0);
        assert_eq!(program.wait_as(first, event, EXTERNAL), 0);
        program.count(first, &COUNT);
        let graph = program.made(first);
        runtime.hold(other, word);
        assert_eq!(program.record(event, other), 0);
        assert_eq!(program.launch(graph, first), 0);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(COUNT.load(Ordering::SeqCst), 0);
        word.set(1);
        assert!(comes(|| COUNT.load(Ordering::SeqCst) == 1));
    });
}
