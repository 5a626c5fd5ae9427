//! Whether what is written to outputs says that it may go past the caches.

use std::sync::{Arc, Barrier};

use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Op, PluginRequest, Rules};
use unisono_abi::CMD_STREAMING;
use unisono_tests::threads;

use crate::command::Command;
use crate::job::alone;
use crate::log::{self, Buffers, Log};
use crate::tap;

/// Bytes that were copied to outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// By copies with the hint that nobody reads them again soon.
    pub past: u64,
    /// By all copies.
    pub all: u64,
}

/// What an all_gather to `bytes` bytes on each of `ranks` ranks, which pass slots, copies to their outputs.
///
/// # Panics
/// If a rank cannot join, or the call fails.
#[must_use]
pub fn copied(ranks: u32, bytes: usize) -> Copied {
    let _alone = alone();
    let meet = Arc::new(Barrier::new(ranks as usize));
    let adjust = |options: &mut unisono::InitOptions| {
        let host = tap::host();
        options.plugins = vec![PluginRequest {
            linked: Some(host.clone()),
            ..PluginRequest::named(host.name())
        }];
        options.rules = Rules::new(|_, _| Overrides {
            rules: vec![Override {
                op: Some(Op::AllGather.kind()),
                bytes: 0..=u64::MAX,
                algorithm: Algorithm::MeshOneShot.into(),
                windowed: None,
                put_bytes: None,
            }],
        });
    };
    let logs = threads(ranks, adjust, move |world| {
        log::enter(world.rank());
        meet.wait();
        if world.rank() == 0 {
            log::begin();
        }
        meet.wait();
        let own = world.split_named(Some(0), i64::from(world.rank()), "past");
        let own = own.expect("a communicator").expect("one of them");
        let len = bytes / size_of::<f32>();
        let share = vec![1.0_f32; len / ranks as usize];
        let mut all = vec![0.0_f32; len];
        let range = all.as_ptr_range();
        let output = range.start as u64..range.end as u64;
        let buffers = Buffers {
            output,
            ..Buffers::default()
        };
        log::buffers(0, ranks, buffers);
        own.all_gather(&share, &mut all).expect("all_gather");
        assert!(all.iter().all(|element| *element == 1.0));
        own.finalize().expect("finalize");
        meet.wait();
        let log = (world.rank() == 0).then(log::take);
        meet.wait();
        world.finalize().expect("finalize");
        log
    });
    logs.into_iter()
        .flatten()
        .next()
        .map_or_else(Copied::default, |log| of(&log))
}

fn of(log: &Log) -> Copied {
    let outputs: Vec<_> = (log.calls.iter().flatten())
        .map(|call| call.output.clone())
        .collect();
    let mut copied = Copied::default();
    for command in log.queues.iter().flat_map(|queue| &queue.commands) {
        let Command::Copy(copy) = command else {
            continue;
        };
        if outputs.iter().any(|output| output.contains(&copy.dst)) {
            let bytes = copy.bytes * copy.repeat;
            copied.all += bytes;
            if copy.head.flags & CMD_STREAMING != 0 {
                copied.past += bytes;
            }
        }
    }
    copied
}
