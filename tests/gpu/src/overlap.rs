//! A stream of computation beside a collective: how much of the shorter is hidden by the longer.
#![allow(unsafe_code, reason = "hands addresses to streams")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use unisono::hal::Batch;
use unisono::plan::Op;
use unisono_emulated_tests::Values;
use unisono_tests::threads;

use crate::collectives::{Home, Prepared};
use crate::copies::{add, finish, run, start};
use crate::{Scale, first_device};

/// Each alone, and both at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overlap {
    pub computation: Duration,
    pub collective: Duration,
    pub both: Duration,
}

impl Overlap {
    /// The hidden part of the shorter one: 1 if it costs nothing, 0 if nothing overlaps.
    pub fn hidden(&self) -> f64 {
        let [a, b, both] =
            [self.computation, self.collective, self.both].map(|time| time.as_secs_f64());
        ((a + b - both) / a.min(b).max(1e-9)).clamp(0.0, 1.0)
    }
}

/// Two ranks on one device, an all_reduce of each beside a computation of the first.
pub fn measure(scale: Scale) -> Overlap {
    let (ready, done) = (Barrier::new(2), Barrier::new(2));
    let of_ranks = threads(2, first_device, move |world| {
        let prepared = Prepared::new(&world, Home::Own, scale.long / 4);
        let device = world.device();
        let elements = scale.long / 16;
        let data = Values::<f32>::new(device, elements);
        let mut stream = device.stream(0).expect("a stream");
        // SAFETY: memory of this function's, which waits for all that uses it.
        let mut batch = unsafe { Batch::new() };
        for _ in 0..8 {
            add(&mut batch, data.address(), data.address(), elements as u64);
        }
        ready.wait();
        let first = world.rank() == 0;
        let collective = prepared.times(&world, Op::AllReduce, 1)[0];
        let mut found = Overlap {
            collective,
            ..Overlap::default()
        };
        if first {
            run(&mut stream, &mut batch);
            found.computation = run(&mut stream, &mut batch);
        }
        world.barrier().expect("a barrier");
        let since = if first {
            start(&mut stream, &mut batch)
        } else {
            Instant::now()
        };
        prepared.call(&world, Op::AllReduce);
        if first {
            finish(&mut stream, since);
        }
        found.both = since.elapsed();
        done.wait();
        found
    });
    of_ranks.into_iter().next().unwrap_or_default()
}
