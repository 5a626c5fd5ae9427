//! What breaks in a communicator of devices and CPUs: an error on every rank, and no hang.

use std::time::{Duration, Instant};

use unisono::{InitOptions, PluginRequest, ReduceOp};
use unisono_emulated_tests::Emulated;
use unisono_tests::{Exit, Rank};

/// Ranks 0 and 2 have devices, the others are the CPU.
fn interleaved(options: &mut InitOptions) {
    options.plugins = vec![PluginRequest::named("host"), PluginRequest::named("cuda")];
    options.device = Some(match options.rank % 2 {
        0 => ("cuda".to_owned(), options.rank / 2),
        _ => ("host".to_owned(), 0),
    });
    options.timeouts.op = Duration::from_secs(5);
}

/// Calls until something breaks, and says how long the last call took to say so.
fn until_it_breaks(rank: &Rank, len: usize) {
    let world = rank.init(interleaved);
    let mut data = vec![0_f32; len];
    // Nobody breaks before all have joined, but perhaps before all have left the barrier.
    let mut done = world.barrier();
    for _ in 0..2000 {
        let start = Instant::now();
        done = done.and_then(|()| world.all_reduce_in_place(&mut data, ReduceOp::Sum));
        if let Err(error) = &done {
            let took = start.elapsed();
            assert!(took < Duration::from_secs(15), "{took:?}");
            rank.say(&format!("error: {error}"));
            return;
        }
    }
    rank.say("nothing broke");
}

fn all_say_an_error(exits: &[Exit], but: Option<u32>) {
    for exit in exits.iter().filter(|exit| Some(exit.rank) != but) {
        let told = exit.lines.iter().any(|line| line.starts_with("error: "));
        assert!(told && !exit.late, "{exit:?}");
    }
}

/// A job of four on a machine of which something breaks.
fn breaks(test: &str, adjust: impl FnOnce(String) -> String, len: usize) -> Option<Vec<Exit>> {
    let machine = Emulated::new(test, "h100x8", adjust)?;
    let ranks = machine.job(test, 4);
    let exits = ranks
        .start(move |rank| until_it_breaks(&rank, len))
        .finish();
    all_say_an_error(&exits, None);
    Some(exits)
}

#[test]
fn a_device_that_is_lost() {
    let lost = |text: String| text + "faults: [{kind: lost, device: 1, after: 400}]\n";
    let Some(exits) = breaks("a_device_that_is_lost", lost, 50_000) else {
        return;
    };
    let told = exits[2].lines.concat();
    assert!(told.contains("CUDA_ERROR_DEVICE_UNAVAILABLE"), "{told}");
}

#[test]
fn a_link_between_devices_that_fails() {
    let fails =
        |text: String| text + "faults: [{kind: link, device: 0, peer: 1, after: 3000000}]\n";
    breaks("a_link_between_devices_that_fails", fails, 200_000);
}

#[test]
fn a_device_without_room_for_a_slice() {
    let small = |text: String| text.replace("85899345920", "67108864");
    let Some(exits) = breaks("a_device_without_room_for_a_slice", small, 12 << 20) else {
        return;
    };
    for exit in &exits {
        let told = exit.lines.concat();
        assert!(told.contains("CUDA_ERROR_OUT_OF_MEMORY"), "{told}");
    }
}

#[test]
fn a_rank_that_is_killed() {
    let test = "a_rank_that_is_killed";
    for killed in [1, 2] {
        let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
            return;
        };
        let ranks = machine.job(test, 4).env("TEST_KILLED", killed);
        let exits = ranks.start(|rank| {
            let killed =
                std::env::var("TEST_KILLED").is_ok_and(|text| text == rank.rank.to_string());
            if killed {
                std::thread::spawn(|| {
                    std::thread::sleep(Duration::from_millis(1500));
                    std::process::abort();
                });
            }
            loop_until_it_breaks(&rank);
        });
        all_say_an_error(&exits.finish(), Some(killed));
    }
}

/// As long as it takes until the other is killed.
fn loop_until_it_breaks(rank: &Rank) {
    let world = rank.init(interleaved);
    let mut data = vec![0_f32; 5000];
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if let Err(error) = world.all_reduce_in_place(&mut data, ReduceOp::Sum) {
            rank.say(&format!("error: {error}"));
            return;
        }
    }
    rank.say("nothing broke");
}
