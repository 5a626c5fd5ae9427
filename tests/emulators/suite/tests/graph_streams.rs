//! Batches that are submitted again and again to one stream, one command at a time looked at: what runs
//! as a graph, what does not, and that the two can follow each other.
#![allow(unsafe_code, reason = "hands addresses to streams")]

use std::time::{Duration, Instant};

use unisono::hal::{Batch, Device, Queue, Reduce, State, Status, Stream};
use unisono::{Communicator, InitOptions};
use unisono_emulated_tests::{Calls, Driver, Emulated, Flags, Values, all_done, own_device};
use unisono_tests::Rank;

const LEN: usize = 300;
const VENDORS: [(&str, &str); 2] = [("cuda", "h100x8"), ("rocm", "mi300x8")];
const PLUGIN: &str = "TEST_PLUGIN";

/// Two buffers, flags, and a stream that opens the gate.
struct Bench {
    calls: Calls,
    src: Values<i32>,
    mid: Values<i32>,
    dst: Values<i32>,
    flags: Flags,
    opener: Stream,
    rounds: u64,
    /// Keeps the device.
    _world: Communicator,
}

impl Bench {
    fn new(rank: &Rank) -> Self {
        let plugin = std::env::var(PLUGIN).expect("a plugin");
        let own = |options: &mut InitOptions| {
            own_device(&plugin)(options);
            options.plugins[0].params = vec![("graphs".to_owned(), "true".to_owned())];
        };
        let world = rank.init(own);
        let device = world.device();
        let values = || Values::<i32>::new(device, LEN);
        Self {
            calls: Calls::of(&plugin),
            src: values(),
            mid: values(),
            dst: values(),
            flags: Flags::new(device),
            opener: device.stream(0).expect("a stream"),
            rounds: 0,
            _world: world,
        }
    }

    fn device(&self) -> &Device {
        self._world.device()
    }

    /// Times that memory of the host's was registered.
    fn registered(&self) -> u64 {
        self.calls.count("MemHostRegister") + self.calls.count("HostRegister")
    }

    /// dst = 2 src behind a gate with such words, with a signal at the end.
    fn batch(&self, words: [u64; 3]) -> Batch {
        // SAFETY: memory of this test, which waits for all that uses it.
        let mut batch = unsafe { Batch::new() };
        self.add_to(&mut batch, words);
        batch
    }

    fn add_to(&self, batch: &mut Batch, words: [u64; 3]) {
        let (src, mid, dst) = (&self.src, &self.mid, &self.dst);
        batch.wait(self.flags.line(0), self.flags.line(4), Some(words));
        batch.copy(mid.address(), src.address(), (LEN * 4) as u64);
        batch.reduce(&Reduce {
            dst: dst.address(),
            a: src.address(),
            b: mid.address(),
            elements: LEN as u64,
            repeat: 1,
            dst_stride: 0,
            a_stride: 0,
            b_stride: 0,
            dtype: 5,
            reduction: 1,
            divisor: 0,
            streaming: false,
        });
        batch.signal(self.flags.line(1), self.flags.line(5), 0, Some(words));
    }

    /// Opens the gate for one batch.
    fn open(&mut self, words: [u64; 3]) {
        // SAFETY: as above.
        let mut gate = unsafe { Batch::new() };
        gate.signal(self.flags.line(0), self.flags.line(6), 0, Some(words));
        submit(&mut self.opener, &mut gate);
        settle(&mut self.opener);
    }

    /// One batch, with input and words of its own: the graphs that it launched.
    fn round(&mut self, stream: &mut Stream) -> u64 {
        self.rounds += 1;
        let words = [1, 2, self.rounds];
        let values: Vec<i32> = (0..LEN as i32).map(|i| i * self.rounds as i32).collect();
        self.src.write(&values);
        let before = self.calls.launches();
        submit(stream, &mut self.batch(words));
        let launches = self.calls.launches() - before;
        self.open(words);
        settle(stream);
        let doubled: Vec<i32> = values.iter().map(|value| value * 2).collect();
        assert_eq!(self.dst.read(), doubled, "round {}", self.rounds);
        assert_eq!(self.flags.value(1), self.rounds);
        launches
    }
}

fn submit(stream: &mut Stream, batch: &mut Batch) {
    stream.submit(batch).expect("a batch");
    assert!(batch.is_empty(), "all of it was taken");
}

fn settle(stream: &mut Stream) {
    let end = Instant::now() + Duration::from_secs(20);
    while stream.poll(1 << 20).expect("a poll").state != State::Idle {
        assert!(Instant::now() < end, "it takes too long");
        std::thread::yield_now();
    }
}

fn on_each_vendor(test: &str, body: impl Fn(Bench) + Copy) {
    for (plugin, name) in VENDORS {
        on(test, plugin, name, body);
    }
}

fn on(test: &str, plugin: &str, name: &str, body: impl Fn(Bench) + Copy) {
    // Queues for all streams: one that shares a queue takes no waits, and has no graphs.
    let adjust = |text: String| {
        let text = text.replace("queues: 4\n", "queues: 8\n");
        text + "delays: {one_in: 16, longest_us: 50}\n"
    };
    let Some(machine) = Emulated::new(test, name, adjust) else {
        return;
    };
    let ranks = machine
        .job(test, 1)
        .env(PLUGIN, plugin)
        .env("GPU_MAX_HW_QUEUES", 8)
        .start(move |rank| {
            body(Bench::new(&rank));
            rank.say("done");
        });
    all_done(&ranks.finish());
}

/// Twice as it is, then as a graph: words and counters are new each time.
#[test]
fn the_third_time_it_is_a_graph() {
    on_each_vendor("the_third_time_it_is_a_graph", |mut bench| {
        let mut stream = bench.device().stream(0).expect("a stream");
        let registered = bench.registered();
        let launches: Vec<u64> = (0..8).map(|_| bench.round(&mut stream)).collect();
        assert_eq!(launches, [0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(bench.registered(), registered, "that may wait for others");
        assert_eq!(bench.calls.graphs(), 1);
        assert_eq!(bench.calls.count("GraphUpload"), 1, "ahead of its launches");
        drop(stream);
        drop(bench.device().stream(0));
        assert_eq!(bench.calls.graphs(), 0, "it goes with its stream");
    });
}

/// A graph that is under way is not launched again, as its numbers are being read; the counters go on.
#[test]
fn what_is_under_way_is_not_launched_again() {
    on_each_vendor("what_is_under_way_is_not_launched_again", |mut bench| {
        let mut stream = bench.device().stream(0).expect("a stream");
        for _ in 0..4 {
            bench.round(&mut stream);
        }
        for _ in 0..20 {
            let (before, first) = (bench.calls.launches(), bench.rounds + 1);
            for round in first..first + 3 {
                submit(&mut stream, &mut bench.batch([1, 2, round]));
            }
            assert_eq!(bench.calls.launches() - before, 1, "the first of three");
            for round in first..first + 3 {
                assert_eq!(bench.flags.value(1), round - 1, "nothing passes the gate");
                bench.open([1, 2, round]);
                let end = Instant::now() + Duration::from_secs(20);
                while bench.flags.value(1) < round {
                    assert!(Instant::now() < end, "the gate is open");
                    std::thread::yield_now();
                }
            }
            settle(&mut stream);
            bench.rounds += 3;
            assert_eq!(bench.round(&mut stream), 1);
        }
    });
}

/// Another call's words are found by a graph as by a command, and told with what was found.
#[test]
fn a_graph_finds_other_words() {
    on_each_vendor("a_graph_finds_other_words", |mut bench| {
        let mut stream = bench.device().stream(0).expect("a stream");
        for _ in 0..6 {
            bench.round(&mut stream);
        }
        let before = bench.calls.launches();
        submit(&mut stream, &mut bench.batch([1, 2, 7]));
        assert_eq!(bench.calls.launches() - before, 1);
        bench.open([1, 2, 8]);
        let end = Instant::now() + Duration::from_secs(20);
        let error = loop {
            assert!(Instant::now() < end, "nobody is told");
            match stream.poll(1 << 20) {
                Err(error) => break error,
                Ok(_) => std::thread::yield_now(),
            }
        };
        assert_eq!(error.status, Status::Mismatch, "{error}");
        assert_eq!(error.words, [1, 2, 8], "{error}");
    });
}

/// A flag that only this process raises is raised by a program's stream, whose work may need the whole
/// device: where a stream can wait without a kernel, no graph does it with one.
#[test]
fn no_kernel_waits_for_a_program() {
    on_each_vendor("no_kernel_waits_for_a_program", |mut bench| {
        let mut stream = bench.device().stream(0).expect("a stream");
        let own = Flags::private(bench.device());
        let by_kernel = std::env::var(PLUGIN).is_ok_and(|plugin| plugin == "rocm");
        for round in 1..=8 {
            let words = [1, 2, round];
            // SAFETY: memory of this test, which waits for all that uses it.
            let (mut batch, mut ready) = unsafe { (Batch::new(), Batch::new()) };
            batch.wait(own.line(0), own.line(4), None);
            bench.add_to(&mut batch, words);
            ready.signal(own.line(0), own.line(6), 0, None);
            let before = bench.calls.launches();
            submit(&mut stream, &mut batch);
            let graphs = u64::from(by_kernel && round > 2);
            assert_eq!(bench.calls.launches() - before, graphs, "round {round}");
            bench.open(words);
            assert_eq!(
                bench.flags.value(1),
                round - 1,
                "nothing passes the own flag"
            );
            submit(&mut bench.opener, &mut ready);
            settle(&mut stream);
            // A graph is made while no stream has anything under way.
            settle(&mut bench.opener);
            assert_eq!(bench.flags.value(1), round);
        }
    });
}

/// An abort finds the wait that a graph is at.
#[test]
fn an_abort_ends_a_graph() {
    on_each_vendor("an_abort_ends_a_graph", |mut bench| {
        let mut stream = bench.device().stream(0).expect("a stream");
        for _ in 0..6 {
            bench.round(&mut stream);
        }
        submit(&mut stream, &mut bench.batch([1, 2, 7]));
        stream.aborter().abort();
        let end = Instant::now() + Duration::from_secs(20);
        while stream.state().expect("an answer").state != State::Failed {
            assert!(Instant::now() < end, "it waits on");
            std::thread::yield_now();
        }
        let again = stream.submit(&mut bench.batch([1, 2, 8]));
        assert_eq!(again.expect_err("it is over").status, Status::Aborted);
        drop(stream);
        // Its wait was released, and its graph is ended.
        drop(bench.device().stream(0));
        assert_eq!(bench.calls.graphs(), 0);
    });
}

/// A stream of the program's own is the program's: it may record at any time.
#[test]
fn a_programs_own_stream_has_no_graphs() {
    on(
        "a_programs_own_stream_has_no_graphs",
        "cuda",
        "h100x8",
        |mut bench| {
            let driver = Driver::open();
            driver.enter(0);
            let native = driver.stream();
            // SAFETY: the stream lives as long as the process.
            let mut stream =
                unsafe { bench.device().wrap_stream(native as u64) }.expect("a stream");
            for _ in 0..8 {
                assert_eq!(bench.round(&mut stream), 0);
            }
        },
    );
}

/// A program that has the handle of a stream records it: that is the program's graph, and from then on
/// kernels advance the counters.
#[test]
fn a_program_records_what_ran_as_a_graph() {
    on(
        "a_program_records_what_ran_as_a_graph",
        "cuda",
        "h100x8",
        |mut bench| {
            let driver = Driver::open();
            driver.enter(0);
            let mut stream = bench.device().stream(0).expect("a stream");
            for _ in 0..6 {
                bench.round(&mut stream);
            }
            let native = stream.native() as *mut std::ffi::c_void;
            assert_eq!(
                bench.round(&mut stream),
                1,
                "the handle alone changes nothing"
            );
            driver.begin(native);
            submit(&mut stream, &mut bench.batch([5, 5, 5]));
            let recorded = driver.end(native);
            assert_eq!(bench.flags.value(1), bench.rounds, "recording runs nothing");
            for _ in 0..5 {
                driver.launch(recorded, native);
                bench.open([5, 5, 5]);
                driver.synchronise(native);
                bench.rounds += 1;
                assert_eq!(bench.flags.value(1), bench.rounds);
            }
            for _ in 0..5 {
                assert_eq!(
                    bench.round(&mut stream),
                    0,
                    "its counters are in memory now"
                );
            }
            // The stream's own will not be used again, and is kept: destroying it might wait for a replay.
            assert_eq!(
                bench.calls.graphs(),
                2,
                "that of the program, and the stream's own"
            );
        },
    );
}

/// A graph that is made does not spoil what the program records on another thread, in the strictest mode.
#[test]
fn a_programs_recording_is_not_disturbed() {
    on(
        "a_programs_recording_is_not_disturbed",
        "cuda",
        "h100x8",
        |mut bench| {
            let mut stream = bench.device().stream(0).expect("a stream");
            let (begun, is_begun) = std::sync::mpsc::channel();
            let (made, is_made) = std::sync::mpsc::channel();
            let program = std::thread::spawn(move || {
                let driver = Driver::open();
                driver.enter(0);
                let native = driver.stream();
                driver.begin(native);
                begun.send(()).expect("somebody listens");
                is_made.recv().expect("a graph");
                // It ends, and can be run: both are looked at.
                driver.launch(driver.end(native), native);
                driver.synchronise(native);
            });
            is_begun.recv().expect("it records");
            let launches: Vec<u64> = (0..4).map(|_| bench.round(&mut stream)).collect();
            made.send(()).expect("it still records");
            program.join().expect("its recording");
            assert_eq!(launches, [0, 0, 1, 1]);
        },
    );
}

/// An event is recorded anew each time: such a batch goes as it is.
#[test]
fn a_batch_with_an_event_is_no_graph() {
    on_each_vendor("a_batch_with_an_event_is_no_graph", |bench| {
        let mut stream = bench.device().stream(0).expect("a stream");
        let event = bench.device().event().expect("an event");
        for _ in 0..8 {
            // SAFETY: memory of this test, which waits for all that uses it.
            let mut batch = unsafe { Batch::new() };
            for _ in 0..4 {
                batch.copy(bench.dst.address(), bench.src.address(), (LEN * 4) as u64);
            }
            batch.record(&event);
            submit(&mut stream, &mut batch);
            settle(&mut stream);
            assert!(event.is_complete().expect("an answer"));
        }
        assert_eq!(bench.calls.launches(), 0);
    });
}
