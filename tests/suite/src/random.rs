//! Random collectives, in several communicators at once, from several threads.

use unisono::{Communicator, DataType};

use crate::{Collective, Fold, Rng, Try};

/// Makes `total` random collectives over all, in four communicators (the world, a copy of it, its
/// halves, and the odd and even ranks), each on a thread of its own, and checks every element.
///
/// # Panics
/// If a result is wrong or a call fails; the message holds all that is needed to repeat it.
pub fn random_collectives(world: Communicator, total: u64, seed: u64) {
    let (rank, size) = (world.rank(), world.size());
    let copy = world.duplicate().expect("duplicate");
    let half = world
        .split(Some(u32::from(rank >= size / 2)), 0)
        .expect("split");
    let parity = world
        .split(Some(rank % 2), -i64::from(rank))
        .expect("split");
    let members = [Some(world), Some(copy), half, parity];
    std::thread::scope(|scope| {
        for (number, communicator) in (0..).zip(members.iter().flatten()) {
            scope.spawn(move || {
                let mut rng = Rng::new(seed ^ number << 48);
                for step in 0..total / 4 {
                    let dtype = *rng.pick(&DataType::ALL);
                    let attempt = attempt(&mut rng, communicator.size(), dtype);
                    let context = || format!("seed {seed}, communicator {number}, step {step}: {attempt:?} of {dtype}");
                    attempt
                        .run_as(communicator, dtype)
                        .unwrap_or_else(|error| panic!("rank {rank}, {}: {error}", context()))
                        .unwrap_or_else(|wrong| panic!("rank {rank}, {}: {wrong}", context()));
                }
            });
        }
    });
    for communicator in members.into_iter().flatten() {
        communicator.finalize().expect("finalize");
    }
}

fn attempt(rng: &mut Rng, ranks: u32, dtype: DataType) -> Try {
    let root = rng.below(u64::from(ranks)) as u32;
    let collective = *rng.pick(&[
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::ReduceScatterV,
        Collective::AllGather,
        Collective::AllGatherV,
        Collective::AllToAll,
        Collective::AllToAllV,
        Collective::Broadcast(root),
        Collective::Reduce(root),
        Collective::Gather(root),
        Collective::Scatter(root),
    ]);
    // Mostly small, now and then many pieces.
    let most = *rng.pick(&[1, 16, 300, 5_000, 60_000]);
    let folds: Vec<_> = Fold::all().filter(|fold| fold.applies_to(dtype)).collect();
    Try {
        collective,
        count: rng.below(most + 1) as usize,
        op: *rng.pick(&folds),
        in_place: rng.below(2) == 0,
        salt: rng.below(1 << 20),
    }
}
