//! For suites of ranks that run ahead: over shared memory, and over links alone.

use unisono::{Communicator, InitOptions};

use crate::Rank;

/// Links to do without, so that ranks share memory, or have TCP alone.
pub const WITHOUT: [&[&str]; 2] = [&[], &["shm"]];

/// Runs `body` on communicators of a rank's process, one for each of [`WITHOUT`].
pub fn over_all_links(rank: &Rank, body: impl Fn(&Communicator)) {
    for without in WITHOUT {
        let world = rank.init(|options| {
            options.job.push_str(without.first().unwrap_or(&"-all"));
            do_without(without, options);
            options.memory.slots = 8;
        });
        body(&world);
    }
}

/// Takes these kinds of links away.
pub fn do_without(links: &[&str], options: &mut InitOptions) {
    options.without_links = links.iter().map(|&kind| kind.to_owned()).collect();
}

/// So many broadcasts of two words by rank 0, which are looked at.
pub fn few_broadcasts(world: &Communicator, count: u32) {
    for round in 0..count {
        let mut data = [if world.rank() == 0 { round } else { u32::MAX }; 2];
        world.broadcast(&mut data, 0).expect("broadcast");
        assert_eq!(data, [round; 2]);
    }
}
