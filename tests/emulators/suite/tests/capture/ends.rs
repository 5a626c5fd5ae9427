//! What ends a replay that waits, and who is told.

use std::time::{Duration, Instant};

use unisono::Error;
use unisono_emulated_tests::{Emulated, Values, all_done};

use super::{Program, VENDORS, own, told};

/// What broke the communicator, which it does within a few seconds.
fn broken(program: &Program) -> Error {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(error) = program.world.async_error() {
            return error;
        }
        assert!(Instant::now() < end, "nothing breaks it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ranks of which each runs `body` with two graphs of all_reduces, each run once.
fn with_graphs(test: &str, body: impl Fn(&Program, [*mut std::ffi::c_void; 2])) {
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text + "finds_races: false\n") else {
            return;
        };
        let job = machine.job(test, 3).env("TEST_PLUGIN", plugin);
        let mut ranks = job.start(|rank| {
            let plugin = told("TEST_PLUGIN");
            let adjust = own(&plugin);
            let world = rank.init(|options| {
                adjust(options);
                options.timeouts.op = Duration::from_millis(1500);
            });
            let program = Program::new(world, &plugin);
            let data = [1000, 2000].map(|len| Values::<i32>::new(program.world.device(), len));
            let graphs = [0, 1].map(|which| {
                let len = [1000, 2000][which];
                program.record(|| program.all_reduce(&data[which], len).expect("recorded"))
            });
            for graph in graphs {
                program.launch(graph);
            }
            program.synchronise();
            body(&program, graphs);
            rank.say("done");
            // Memory that is shared by handle goes with its maker: nobody leaves while others replay.
            let _ = rank.told().recv();
        });
        for rank in 0..3 {
            let _ = ranks.wait_for(rank, "done");
        }
        for rank in 0..3 {
            ranks.tell(rank, "go");
        }
        all_done(&ranks.finish());
    }
}

/// A replay waits for a rank that is late; who drops memory meanwhile does not wait for it, as the runtime
/// would.
#[test]
fn memory_is_dropped_while_a_replay_waits() {
    with_graphs(
        "ends::memory_is_dropped_while_a_replay_waits",
        |program, [graph, _]| {
            let memory = Values::<i32>::new(program.world.device(), 5000);
            if program.world.rank() == 2 {
                std::thread::sleep(Duration::from_millis(1000));
            }
            program.launch(graph);
            let start = Instant::now();
            drop(memory);
            let took = start.elapsed();
            program.synchronise();
            assert!(took < Duration::from_millis(500), "it took {took:?}");
        },
    );
}

#[test]
fn an_abort_ends_a_replay_that_waits() {
    with_graphs(
        "ends::an_abort_ends_a_replay_that_waits",
        |program, [graph, other]| {
            if program.world.rank() == 2 {
                std::thread::sleep(Duration::from_millis(300));
                program.world.abort_handle().abort("to see what happens");
            } else {
                program.launch(graph);
                program.launch(other);
                program.synchronise();
            }
            let error = broken(program).to_string();
            assert!(error.contains("to see what happens"), "{error}");
            // Nor does one hang that is launched only now.
            program.launch(other);
            program.launch(graph);
            program.synchronise();
        },
    );
}

#[test]
fn a_replay_that_a_rank_does_not_run_ends_at_the_deadline() {
    let test = "ends::a_replay_that_a_rank_does_not_run_ends_at_the_deadline";
    with_graphs(test, |program, [graph, _]| {
        if program.world.rank() != 1 {
            program.launch(graph);
            program.synchronise();
        }
        let error = broken(program);
        assert!(matches!(error, Error::Timeout(_)), "{error}");
        let error = error.to_string();
        assert!(error.contains("missing ranks: 1"), "{error}");
        assert!(error.contains("rank 0 runs a graph"), "{error}");
        assert!(error.contains("waiting for rank 1"), "{error}");
    });
}

#[test]
fn ranks_that_run_different_graphs_are_told_of_both_calls() {
    let test = "ends::ranks_that_run_different_graphs_are_told_of_both_calls";
    with_graphs(test, |program, [graph, other]| {
        let which = if program.world.rank() == 1 {
            other
        } else {
            graph
        };
        program.launch(which);
        program.synchronise();
        let error = broken(program).to_string();
        assert!(error.contains("made different calls"), "{error}");
        for count in ["count 1000", "count 2000"] {
            assert!(error.contains(count), "{error}");
        }
    });
}

/// A rank that is gone is named, and nothing hangs.
#[test]
fn a_death_ends_a_replay_that_waits() {
    let test = "ends::a_death_ends_a_replay_that_waits";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| {
        let program = Program::new(rank.init(own("cuda")), "cuda");
        let data = Values::<i32>::new(program.world.device(), 1000);
        let graph = program.record(|| program.all_reduce(&data, 1000).expect("recorded"));
        program.launch(graph);
        program.synchronise();
        if program.world.rank() == 1 {
            std::process::exit(3);
        }
        program.launch(graph);
        program.synchronise();
        let error = broken(&program).to_string();
        assert!(error.contains("rank 1 died"), "{error}");
        rank.say("done");
    });
    let exits = ranks.finish();
    let survivors = exits.iter().filter(|exit| exit.rank != 1);
    assert!(survivors.clone().all(|exit| exit.said("done")), "{exits:?}");
    assert_eq!(survivors.count(), 2);
}
