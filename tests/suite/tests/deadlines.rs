//! What a deadline's error says about who waits for what.

use std::time::Duration;

use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Error, Rules};
use unisono_tests::threads;

fn chain() -> Rules {
    Rules::new(|_, _| Overrides {
        rules: vec![Override {
            op: None,
            bytes: 1 << 20..=u64::MAX,
            algorithm: Algorithm::Chain.into(),
            windowed: Some(false),
            put_bytes: Some(128 << 10),
        }],
    })
}

/// A message goes from 0 over 1 to 2, which does not come: who is held up by whom is told for each
/// rank, also where what it waits for is its own link to the next.
#[test]
fn each_rank_names_the_one_that_holds_it_up() {
    threads(
        3,
        |options| {
            options.without_links = vec!["shm".to_owned()];
            options.timeouts.op = Duration::from_secs(1);
            options.rules = chain();
        },
        |world| {
            world.barrier().expect("barrier");
            if world.rank() == 2 {
                while world.async_error().is_none() {
                    std::thread::sleep(Duration::from_millis(5));
                }
                return;
            }
            let error = world.broadcast(&mut vec![1_u8; 12 * (128 << 10)], 0);
            let Err(Error::Timeout(timeout)) = error else {
                panic!("{error:?}");
            };
            for (rank, holds_up) in [(0, 1), (1, 2)] {
                let peer = timeout.ranks[rank].waits_for.map(|(peer, _)| peer);
                assert_eq!(peer, Some(holds_up), "{timeout}");
            }
            assert_eq!(timeout.ranks[2].call, None, "{timeout}");
        },
    );
}
