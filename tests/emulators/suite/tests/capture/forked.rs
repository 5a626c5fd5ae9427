//! Recordings that fork: calls of one communicator on several branches come one after another, in the order in
//! which they were called, and what else is on the branches runs beside them.

use std::time::Duration;

use unisono::plan::Op;
use unisono::{InitOptions, Stream};
use unisono_emulated_tests::{Handle, Values};
use unisono_tests::{Count, Rng};

use super::ranks::{in_one_process, processes};
use super::replays::few_slots;
use super::{Program, all_given, sums};

/// Replays of each.
const ROUNDS: Count = Count::new(200, 2000);

/// A stream beside the program's first.
struct Branch {
    native: Handle,
    stream: Stream,
}

impl Branch {
    fn new(program: &Program) -> Self {
        let native = program.driver.stream();
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { program.world.wrap_stream(native as u64) }.expect("a stream");
        Self { native, stream }
    }
}

/// A branch's work: copies of the program's own around a call.
struct Ends {
    len: usize,
    input: Values<i32>,
    data: Values<i32>,
    output: Values<i32>,
}

impl Ends {
    fn new(program: &Program, len: usize) -> Self {
        let [input, data, output] = [(); 3].map(|()| Values::new(program.world.device(), len));
        Self {
            len,
            input,
            data,
            output,
        }
    }

    /// Puts this on a stream: in, a call, out.
    fn through(&self, program: &Program, native: Handle, call: impl FnOnce(u64, usize)) {
        let (at, bytes) = (self.data.address(), 4 * self.len);
        let (from, to) = (self.input.address(), self.output.address());
        // SAFETY: all three live as long as the graph.
        unsafe { program.driver.copy_within(native, at, from, bytes) };
        call(at, self.len);
        // SAFETY: as above.
        unsafe { program.driver.copy_within(native, to, at, bytes) };
    }
}

/// A graph of which each branch copies in, calls and copies out: two all_reduces and what lies between.
fn forked(program: &Program, len: usize, rounds: u64, ready: &dyn Fn()) {
    let (rank, ranks) = (program.world.rank(), program.world.size());
    let [second, third, fourth] = [(); 3].map(|()| Branch::new(program));
    let ends = [len, len / 2, len / 3, len].map(|len| Ends::new(program, len));
    let tiny = Ends::new(program, 5);
    let mut between = None;
    let graph = program.record(|| {
        let [a, b, c, d] = &ends;
        let main = program.native;
        let call = |stream: &Stream, op, at, len| {
            let called = program.on(stream, op, [at; 2], len);
            called.expect("it is recorded");
        };
        program.driver.order(main, second.native);
        program.driver.order(main, third.native);
        let sum = Op::AllReduce;
        a.through(program, main, |at, len| {
            call(&program.stream, sum, at, len);
        });
        // A recording beside this one takes nothing of its order. One that forbids what others do allows none.
        between = program.beside_others.then(|| {
            program.record_from(fourth.native, || {
                tiny.through(program, fourth.native, |at, len| {
                    call(&fourth.stream, sum, at, len);
                });
            })
        });
        b.through(program, second.native, |at, len| {
            call(&second.stream, sum, at, len);
        });
        c.through(program, third.native, |at, len| {
            let tell = Op::Broadcast { root: 1 };
            call(&third.stream, tell, at, len);
        });
        // On the first again, which knows of none of the others yet.
        d.through(program, main, |at, len| {
            call(&program.stream, sum, at, len);
        });
        program.driver.order(third.native, second.native);
        program.driver.order(second.native, main);
    });
    // Another recording begins where no call of the one before was the last.
    let small = Ends::new(program, 7);
    let other = program.record(|| {
        program.driver.order(program.native, third.native);
        small.through(program, third.native, |at, len| {
            let called = program.on(&third.stream, Op::AllReduce, [at; 2], len);
            called.expect("it is recorded");
        });
        program.driver.order(third.native, program.native);
    });
    ready();
    let mut random = Rng::new(Rng::seed() ^ u64::from(rank));
    for round in 0..rounds {
        for (number, ends) in (0..).zip(&ends) {
            let given = all_given(rank, 7 * round + number, ends.len);
            ends.input.write(&given);
        }
        small.input.write(&all_given(rank, round, 7));
        tiny.input.write(&all_given(rank, round, 5));
        if random.below(16) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        }
        program.launch(graph);
        if round % 3 == 0 {
            program.launch(other);
            between.into_iter().for_each(|graph| program.launch(graph));
        }
        program.synchronise();
        for (number, ends) in (0..).zip(&ends) {
            let (round, len) = (7 * round + number, ends.len);
            let right = match number {
                2 => all_given(1, round, len),
                _ => sums(ranks, round, len),
            };
            assert!(
                ends.output.read() == right,
                "call {number} of round {round}"
            );
        }
        if round % 3 == 0 {
            assert_eq!(small.output.read(), sums(ranks, round, 7), "round {round}");
            if between.is_some() {
                assert_eq!(tiny.output.read(), sums(ranks, round, 5), "round {round}");
            }
        }
    }
    assert_eq!(program.world.async_error().map(|e| e.to_string()), None);
}

fn between_processes(test: &str, len: usize, rounds: u64, adjust: fn(&mut InitOptions)) {
    println!("{rounds} replays ({ROUNDS})");
    processes(test, adjust, |program| {
        forked(program, len, rounds, &|| {});
    });
}

#[test]
fn calls_on_branches_come_in_order() {
    let test = "forked::calls_on_branches_come_in_order";
    between_processes(test, 600, ROUNDS.get(), |_| {});
}

/// More puts than slots, in numbers of which none divides another.
#[test]
fn calls_of_many_pieces_on_branches() {
    let test = "forked::calls_of_many_pieces_on_branches";
    between_processes(test, 8011, ROUNDS.get() / 4, few_slots);
}

/// Each rank's recording is one of its own, also in one process.
#[test]
fn branches_of_threads() {
    let test = "forked::branches_of_threads";
    in_one_process(test, |program, ready| {
        forked(program, 600, ROUNDS.get() / 2, ready);
    });
}
