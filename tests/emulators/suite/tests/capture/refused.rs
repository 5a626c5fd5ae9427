//! What cannot be recorded is refused before anything is, and alike everywhere.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use unisono::bootstrap::NodeId;
use unisono::{Error, InitOptions, PluginRequest};
use unisono_emulated_tests::{Emulated, Values, all_done};
use unisono_tests::threads;

use super::{Program, VENDORS, all_given, own, sums, told};

/// A rank that calls and one that records are told of each other.
#[test]
fn who_does_not_record_is_found() {
    let test = "refused::who_does_not_record_is_found";
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let job = machine.job(test, 3).env("TEST_PLUGIN", plugin);
        let ranks = job.start(|rank| {
            let plugin = told("TEST_PLUGIN");
            let program = Program::new(rank.init(own(&plugin)), &plugin);
            let data = Values::<i32>::new(program.world.device(), 1000);
            if program.world.rank() == 1 {
                program.all_reduce(&data, 1000).expect("it starts");
            } else {
                let _ = program.record(|| match program.all_reduce(&data, 1000) {
                    // The news may be here already.
                    Ok(()) | Err(Error::Mismatch(_)) => {}
                    Err(error) => panic!("{error}"),
                });
            }
            let end = Instant::now() + Duration::from_secs(5);
            let error = loop {
                if let Some(error) = program.world.async_error() {
                    break error;
                }
                assert!(Instant::now() < end, "long before a deadline");
                std::thread::sleep(Duration::from_millis(5));
            };
            assert!(matches!(error, Error::Mismatch(_)), "{error}");
            assert!(
                error.to_string().contains("recorded into a graph"),
                "{error}"
            );
            program.synchronise();
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// Two ranks refuse, and go on as if they had not asked.
fn refused(program: &Program, data: &Values<i32>, why: &[&str]) {
    let _ = program.record(|| {
        let error = program.all_reduce(data, 1000).expect_err("it cannot");
        assert!(error.is_harmless(), "{error}");
        for why in why {
            assert!(error.to_string().contains(why), "{error}");
        }
    });
}

/// Devices of two nodes, between which a link carries all.
#[test]
fn where_a_link_takes_part() {
    let test = "refused::where_a_link_takes_part";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let two_nodes = |options: &mut InitOptions| {
            own("cuda")(options);
            options.plugins.push(PluginRequest::named("tcp"));
            options.node_id = Some(NodeId([options.rank as u8 / 2 + 1; 16]));
        };
        let ready = Barrier::new(3);
        threads(3, two_nodes, move |world| {
            let program = Program::beside_others(world, "cuda");
            let data = Values::<i32>::new(program.world.device(), 1000);
            refused(
                &program,
                &data,
                &["rank 0 needs", "a link that the host drives", "split"],
            );
            data.write(&all_given(program.world.rank(), 1, 1000));
            ready.wait();
            program.all_reduce(&data, 1000).expect("it runs outside");
            program.synchronise();
            assert!(data.read() == sums(3, 1, 1000));
            ready.wait();
            program.world.finalize().expect("finalize");
        });
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Devices that reach each other through the host's memory alone.
#[test]
fn where_the_hosts_memory_takes_part() {
    let test = "refused::where_the_hosts_memory_takes_part";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| {
        let world = rank.init(|options| {
            own("cuda")(options);
            options.plugins.push(PluginRequest::named("host"));
            if options.rank == 2 {
                options.device = Some(("host".to_owned(), 0));
            }
        });
        if world.rank() < 2 {
            let program = Program::new(world, "cuda");
            let data = Values::<i32>::new(program.world.device(), 1000);
            refused(&program, &data, &["rank 0 needs", "the host's memory"]);
            // Those that can are a communicator of their own.
            let part = program
                .world
                .split(Some(0), 0)
                .expect("split")
                .expect("a part");
            let part = Program::new(part, "cuda");
            let graph = part.record(|| part.all_reduce(&data, 1000).expect("recorded"));
            part.launch(graph);
            part.synchronise();
            part.world.finalize().expect("finalize");
            program.world.finalize().expect("finalize");
        } else {
            assert!(world.split(None, 0).expect("split").is_none());
            world.finalize().expect("finalize");
        }
        rank.say("done");
    });
    all_done(&ranks.finish());
}
