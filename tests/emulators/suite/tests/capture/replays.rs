//! Replays are right each time, whatever stands between them.

use std::time::Duration;

use unisono::plan::Op;
use unisono::{InitOptions, MemoryOptions, ReduceOp};
use unisono_emulated_tests::{Emulated, Values, all_done};
use unisono_tests::{Count, Rng};

use super::ranks::{in_one_process, processes};
use super::{Program, all_given, own, sums};

/// Replays of each.
const ROUNDS: Count = Count::new(100, 1000);

/// Slots of which neither number nor size fits anything.
pub(super) fn few_slots(options: &mut InitOptions) {
    options.memory = MemoryOptions {
        slot: Some(4096),
        slots: 3,
        ..MemoryOptions::default()
    };
}

/// One captured all_reduce, replayed with other inputs each time and ranks that come late; all are `ready`
/// before the first.
fn replay(program: &Program, len: usize, rounds: u64, ready: &dyn Fn()) {
    let (rank, ranks) = (program.world.rank(), program.world.size());
    let data = Values::<i32>::new(program.world.device(), len);
    let graph = program.record(|| program.all_reduce(&data, len).expect("it is recorded"));
    ready();
    let mut random = Rng::new(Rng::seed() ^ u64::from(rank));
    let mut outputs = Vec::new();
    for round in 0..rounds {
        let input = all_given(rank, round, len);
        outputs.push((round, input, vec![0; len]));
        let (_, input, output) = outputs.last_mut().expect("one");
        if random.below(16) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        }
        program.copy_in(&data, input);
        program.launch(graph);
        program.copy_out(output, &data);
        // Several may be on their way.
        if random.below(4) == 0 || round + 1 == rounds {
            program.synchronise();
            for (round, _, output) in outputs.drain(..) {
                assert!(output == sums(ranks, round, len), "round {round} of {len}");
            }
        }
    }
}

fn replays_between_processes(test: &str, len: usize, rounds: u64, adjust: fn(&mut InitOptions)) {
    println!("{rounds} replays ({ROUNDS})");
    processes(test, adjust, |program| {
        replay(program, len, rounds, &|| {});
    });
}

#[test]
fn one_captured_all_reduce_is_right_each_time() {
    let test = "replays::one_captured_all_reduce_is_right_each_time";
    replays_between_processes(test, 300, ROUNDS.get(), |_| {});
}

/// More puts than slots, in numbers of which none divides another.
#[test]
fn one_captured_all_reduce_of_many_pieces() {
    let test = "replays::one_captured_all_reduce_of_many_pieces";
    replays_between_processes(test, 20_011, ROUNDS.get() / 5, few_slots);
}

#[test]
fn between_threads_of_one_process() {
    let test = "replays::between_threads_of_one_process";
    in_one_process(test, |program, ready| {
        replay(program, 3000, ROUNDS.get() / 2, ready);
    });
}

/// Several collectives in one graph, another graph, calls on the stream and blocking ones, in any order
/// that is the same on all ranks.
#[test]
fn among_other_graphs_and_calls() {
    const LEN: usize = 1200;
    let test = "replays::among_other_graphs_and_calls";
    processes(test, few_slots, |program| mix(program, LEN));
}

fn mix(program: &Program, len: usize) {
    let world = &program.world;
    let (rank, ranks) = (world.rank(), world.size());
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let part = len / ranks as usize;
    let value = |len| Values::<i32>::new(world.device(), len);
    let (sum, scattered, gathered, told, sent) = (
        value(len),
        value(part),
        value(len),
        value(part),
        value(part),
    );
    let on = |op, ends, len| program.on_stream(op, ends, len).expect("it is recorded");
    let several = program.record(|| {
        on(Op::ReduceScatter, [sum.address(), scattered.address()], len);
        on(
            Op::AllGather,
            [scattered.address(), gathered.address()],
            len,
        );
        on(Op::Broadcast { root: 1 }, [told.address(); 2], part);
        on(Op::Barrier, [0; 2], 0);
        // In pairs: the first sends first.
        let send = || on(Op::Send { to: next }, [told.address(); 2], part);
        let recv = || on(Op::Recv { from: before }, [sent.address(); 2], part);
        if rank == 0 {
            send();
            recv();
        } else {
            recv();
            send();
        }
    });
    let other = value(7);
    let small = program.record(|| program.all_reduce(&other, 7).expect("it is recorded"));
    let mut random = Rng::new(Rng::seed());
    for round in 0..ROUNDS.get() / 2 {
        match random.below(4) {
            0 => {
                sum.write(&all_given(rank, round, len));
                let note = all_given(rank + 7, round, part);
                told.write(&note);
                program.launch(several);
                program.synchronise();
                assert!(gathered.read() == sums(ranks, round, len), "round {round}");
                assert_eq!(sent.read(), all_given(1 + 7, round, part), "round {round}");
            }
            1 => {
                other.write(&all_given(rank, round, 7));
                program.launch(small);
                program.launch(small);
                program.synchronise();
                let twice = sums(ranks, round, 7);
                let twice: Vec<_> = twice.iter().map(|sum| sum * ranks as i32).collect();
                assert_eq!(other.read(), twice, "round {round}");
            }
            2 => {
                sum.write(&all_given(rank, round, len));
                program.all_reduce(&sum, len).expect("it runs");
                program.launch(small);
                program.synchronise();
                assert!(sum.read() == sums(ranks, round, len), "round {round}");
            }
            _ => {
                let mut data = all_given(rank, round, len);
                let done = world.all_reduce_in_place(&mut data, ReduceOp::Sum);
                done.expect("it runs");
                assert!(data == sums(ranks, round, len), "round {round}");
            }
        }
    }
}

/// A graph uses buffers that the program has let go of, for as long as the communicator keeps them.
#[test]
fn buffers_of_a_graph_are_kept() {
    let test = "replays::buffers_of_a_graph_are_kept";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let program = Program::new(rank.init(own("cuda")), "cuda");
        let world = &program.world;
        let held = world.held_bytes();
        let graph = program.record(|| {
            let buffer = world.buffer::<i32>(1 << 20).expect("a buffer");
            let pending = world.on(&program.stream).all_reduce(buffer, ReduceOp::Sum);
            let pending = pending.expect("it is recorded");
            assert!(pending.is_done().expect("sound"), "nothing of it runs");
            drop(pending.wait().expect("nothing to wait for"));
        });
        for _ in 0..5 {
            program.launch(graph);
        }
        program.synchronise();
        assert_eq!(world.async_error().map(|error| error.to_string()), None);
        // SAFETY: it has run, and is not run again.
        unsafe { world.forget_recorded() };
        assert_eq!(world.held_bytes(), held);
        program.world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}
