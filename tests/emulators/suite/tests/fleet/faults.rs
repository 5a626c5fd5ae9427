//! What breaks in a fleet: every survivor names the rank that broke it, in a bounded time, and after a
//! death the survivors go on.

use std::time::{Duration, Instant};

use unisono::{Communicator, ReduceOp};
use unisono_emulated_tests::{attempt, attempts};
use unisono_tests::{Count, Exit, Rank, Rng};

use crate::{DELAYS, EACH, PLUGINS, RANKS, interleaved, machine_of};

/// Of a call, with its deadline, the time to gather who waits for whom, and a slow machine.
const MOST: Duration = Duration::from_secs(40);
/// Seeds of each kind of fault.
const SEEDS: Count = Count::new(1, 100);
const SEED: &str = "TEST_SALT";
/// Elements of a large call, 0 for none.
const LARGE: &str = "TEST_LARGE";

/// Vendors whose devices break: those of the first boxes, by what their box files say.
const VENDORS: [(&str, &str); 3] = [
    ("cuda", "model: NVIDIA"),
    ("rocm", "model: AMD"),
    ("ascend", "model: Ascend"),
];

/// The vendor of a seed, by its place in [`VENDORS`] and, alike, in [`PLUGINS`].
fn vendor(seed: u64) -> usize {
    seed as usize % VENDORS.len()
}

/// The ranks on a vendor's devices, by the devices' numbers.
fn ranks_of(vendor: usize) -> [u32; EACH as usize] {
    [0, 1].map(|device| device * PLUGINS.len() as u32 + vendor as u32)
}

fn own_seed() -> u64 {
    let text = std::env::var(SEED).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Random collectives until something breaks; where memory is to run out, a large one among them.
fn until_it_breaks(rank: &Rank) -> Option<Communicator> {
    let large = std::env::var(LARGE).ok().and_then(|text| text.parse().ok());
    let mut large = vec![1_f32; large.unwrap_or(0)];
    let world = rank.init(|options| {
        interleaved(options);
        options.timeouts.op = Duration::from_secs(15);
        // Memory is to run out in a call, not where the communicator is made.
        options.memory.slot = (!large.is_empty()).then_some(64 << 10);
    });
    let (mut rng, begin) = (Rng::new(own_seed()), Instant::now());
    for turn in 1_u64.. {
        let start = Instant::now();
        let done = match turn % 20 {
            0 if !large.is_empty() => world.all_reduce_in_place(&mut large, ReduceOp::Max),
            _ => attempt(&world, &mut rng).map(|_| ()),
        };
        if let Err(error) = done {
            let took = start.elapsed();
            assert!(took < MOST, "{took:?}");
            rank.say(&format!("error: {error}"));
            // It stays broken, and says so at once.
            let start = Instant::now();
            let again = world.barrier().expect_err("it is broken");
            assert!(start.elapsed() < Duration::from_secs(1), "{again}");
            assert_eq!(again.to_string(), error.to_string());
            return Some(world);
        }
        if begin.elapsed() > 2 * MOST {
            break;
        }
    }
    rank.say("nothing broke");
    None
}

/// Everybody has ended in time, with an error that names one of these ranks; or, as one of them, with
/// what its plugin says.
fn all_name(exits: &[Exit], culprits: &[u32], own: &str, seed: u64) {
    for exit in exits {
        let error = exit.lines.iter().find(|line| line.starts_with("error: "));
        let told = error.is_some_and(|error| {
            let named = |rank: &u32| error.contains(&format!("rank {rank}"));
            // A deadline's error names all ranks, which is no answer.
            let blames = !error.contains("the deadline of");
            let is_own = culprits.contains(&exit.rank) && error.contains(own);
            blames && (culprits.iter().any(named) || is_own)
        });
        assert!(told && !exit.late, "seed {seed}: {exit:?} of {exits:?}");
    }
}

/// What an abort released may touch the same bytes in any order.
const ABORTS: &str = "finds_races: false\n";

/// A job for each seed on a fleet where something breaks in a vendor's box, with calls of `large` elements
/// among the others.
fn breaks(test: &str, what: &str, large: usize, adjust: fn(String, u64) -> String) {
    for seed in 0..SEEDS.get() {
        let broken = VENDORS[vendor(seed)].1;
        let machine = machine_of(test, |text| {
            let breaks = text.contains(broken);
            let text = text + DELAYS + ABORTS;
            if breaks { adjust(text, seed) } else { text }
        });
        let Some(machine) = machine.map(|machine| machine.seeded(seed)) else {
            return;
        };
        let job = machine.job(test, RANKS).limit(3 * MOST);
        let ranks = job.env(SEED, seed).env(LARGE, large).start(|rank| {
            until_it_breaks(&rank);
        });
        all_name(
            &ranks.finish(),
            &ranks_of(vendor(seed)),
            VENDORS[vendor(seed)].0,
            seed,
        );
    }
    println!("soak: {what}, {SEEDS} seeds: every rank told whose it is, and none hung");
}

#[test]
fn a_device_is_lost() {
    breaks(
        "faults::a_device_is_lost",
        "a device is lost",
        0,
        |text, seed| {
            let after = 400 + seed * 31 % 500;
            text + &format!(
                "faults: [{{kind: lost, device: {}, after: {after}}}]\n",
                seed / 3 % 2
            )
        },
    );
}

#[test]
fn a_link_fails_in_mid_operation() {
    let test = "faults::a_link_fails_in_mid_operation";
    breaks(test, "a link between devices fails", 0, |text, seed| {
        let after = 20_000 + seed * 7_001;
        text + &format!("faults: [{{kind: link, device: 0, peer: 1, after: {after}}}]\n")
    });
}

#[test]
fn a_device_runs_out_of_memory() {
    let test = "faults::a_device_runs_out_of_memory";
    breaks(test, "a device is out of memory", 8 << 20, |text, _| {
        let small = |line: &str| match line.split_once(':') {
            Some((key @ "memory_bytes", _)) => format!("{key}: {}\n", 24 << 20),
            _ => format!("{line}\n"),
        };
        text.lines().map(small).collect()
    });
}

/// By a seed's moment, any rank; the others form a communicator without it, which works.
#[test]
fn a_rank_is_killed_and_the_others_go_on() {
    let test = "faults::a_rank_is_killed_and_the_others_go_on";
    for seed in 0..SEEDS.get() {
        let Some(machine) = machine_of(test, |text| text + DELAYS + ABORTS) else {
            return;
        };
        let machine = machine.seeded(seed);
        let killed = (seed * 5 + 2) as u32 % RANKS;
        let job = machine.job(test, RANKS).limit(4 * MOST);
        let job = job.env(SEED, seed).env("TEST_KILLED", killed);
        let ranks = job.start(|rank| {
            let killed = std::env::var("TEST_KILLED");
            if killed.is_ok_and(|killed| killed == rank.rank.to_string()) {
                // Among the calls, not while they meet.
                let moment = Duration::from_millis(50 + own_seed() * 67 % 900);
                let world = rank.init(interleaved);
                std::thread::spawn(move || {
                    std::thread::sleep(moment);
                    std::process::abort();
                });
                let mut rng = Rng::new(own_seed());
                while attempt(&world, &mut rng).is_ok() {}
                return;
            }
            if let Some(world) = until_it_breaks(&rank) {
                let fewer = world.shrink().expect("the others agree");
                assert_eq!(fewer.size(), RANKS - 1);
                let done = attempts(&fewer, 10, own_seed());
                rank.say(&format!("went on with {done}"));
            }
        });
        let mut exits = ranks.finish();
        exits.retain(|exit| exit.rank != killed);
        all_name(&exits, &[killed], "", seed);
        for exit in &exits {
            assert!(exit.said("went on with"), "seed {seed}: {exit:?}");
        }
    }
    println!(
        "soak: a rank is killed, {SEEDS} seeds: every survivor named it, and went on with the others"
    );
}
