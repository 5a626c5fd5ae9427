//! A rank about to make a call in which its peers are already.
#![allow(unsafe_code, reason = "plugins are linked in, by their queries")]

use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use unisono::bootstrap::{InterfaceFilter, RootSpec, UniqueId};
use unisono::hal::{Plugin, QueryFn};
use unisono::{Communicator, InitOptions, PluginRequest};

use crate::call::{Call, Side};

/// Calls before the one that is counted: the plan is made, and the shortcuts of repeated calls are found. A
/// rank gives credits back in every fourth call, which takes more: the one that is counted is such a call.
const WARM_UP: usize = 203;
/// How long the peer has to come into the call. Valgrind runs one thread at a time, each for some
/// milliseconds if it does not sleep.
const HEAD_START: Duration = Duration::from_millis(2);
/// The same before the call that is counted.
const LAST_HEAD_START: Duration = Duration::from_millis(100);

/// The rank whose turn it is.
pub struct Turn {
    call: Call,
    side: Side,
    peers: Vec<JoinHandle<Side>>,
}

impl Turn {
    /// Makes the call until it is warm, and once more up to the point where only this rank is missing.
    pub fn come(call: Call, bytes: usize) -> Box<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        assert!(
            cores >= 2.min(call.ranks as usize),
            "two cores are needed: with one, the peers would sleep, and be woken by what is counted"
        );
        let id = UniqueId::create(&InterfaceFilter::loopback(), 0).expect("a unique id");
        let together = Arc::new(Barrier::new(call.ranks as usize));
        let others = (0..call.ranks).filter(|rank| *rank != call.rank);
        let peer = |rank| {
            let (id, together) = (id.clone(), together.clone());
            thread::spawn(move || {
                let mut side = Side::join(&call, rank, id, bytes);
                for _ in 0..=WARM_UP {
                    together.wait();
                    (call.other)(&mut side).expect("another rank's part of the call");
                }
                side
            })
        };
        let peers = others.map(peer).collect();
        let side = Side::join(&call, call.rank, id, bytes);
        let mut turn = Box::new(Self { call, side, peers });
        for _ in 0..WARM_UP {
            together.wait();
            // The peers are always first, as they will be in the end.
            thread::sleep(HEAD_START);
            turn.make();
        }
        together.wait();
        thread::sleep(LAST_HEAD_START);
        turn
    }

    /// Makes the call: what is counted.
    #[inline]
    pub fn make(&mut self) {
        (self.call.counted)(&mut self.side).expect("the call");
    }

    /// Leaves, together with the peers.
    #[allow(
        clippy::boxed_local,
        reason = "the benchmark hands a pointer on: to move all of it would be counted"
    )]
    pub fn end(self: Box<Self>) {
        let Self { side, peers, .. } = *self;
        let leave =
            |peer: JoinHandle<Side>| thread::spawn(|| peer.join().expect("no panic").leave());
        let left: Vec<_> = peers.into_iter().map(leave).collect();
        side.leave();
        for peer in left {
            peer.join().expect("no panic");
        }
    }
}

impl Side {
    fn join(call: &Call, rank: u32, id: UniqueId, bytes: usize) -> Self {
        let size = call.ranks;
        let mut options = InitOptions::new(rank, size, RootSpec::UniqueId(id));
        options.plugins = vec![host()];
        if call.tcp {
            options.plugins.push(tcp());
            options.without_links = vec!["shm".to_owned()];
        }
        // A rank that waits polls and never sleeps: else what is counted would wake it.
        options.spin = Duration::from_secs(3600);
        let world =
            Communicator::init(options).unwrap_or_else(|error| panic!("rank {rank}: {error}"));
        let count = bytes / size_of::<f32>();
        Self {
            world,
            block: vec![1.0; count],
            result: vec![0.0; count],
            blocks: vec![1.0; count * size as usize],
        }
    }

    fn leave(self) {
        let rank = self.world.rank();
        (self.world.finalize()).unwrap_or_else(|error| panic!("rank {rank}: {error}"));
    }
}

fn host() -> PluginRequest {
    // SAFETY: it is the query that the plugin's crate makes for this.
    linked("host", unsafe { QueryFn::new(unisono_plugin_host::query) })
}

fn tcp() -> PluginRequest {
    // SAFETY: as for the host's.
    linked("tcp", unsafe { QueryFn::new(unisono_plugin_tcp::query) })
}

/// Linked in, so that all of it is built for valgrind (see Cargo.toml).
fn linked(name: &str, query: QueryFn) -> PluginRequest {
    PluginRequest {
        linked: Some(Plugin::from_static(query).expect("the plugin is sound")),
        ..PluginRequest::named(name)
    }
}
