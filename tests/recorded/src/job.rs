//! Runs cases on ranks that are threads, and gives their logs.

use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unisono::bootstrap::NodeId;
use unisono::plan::select::{Override, Overrides};
use unisono::plan::template::Family;
use unisono::{
    Algorithm, Communicator, Error, InitOptions, MemoryOptions, Op, PluginRequest, ReduceOp, Rules,
    Window,
};
use unisono_tests::threads;

use crate::case::{CALLS, Case};
use crate::log::{self, Buffers, Log};
use crate::tap;

/// Slots of a channel: the fewest, so that each is used again and again.
pub(crate) const SLOTS: u32 = unisono::plan::ir::MIN_SLOTS;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: u64 = MemoryOptions::SMALLEST_SLOT;
/// Bytes of the largest put: few, so that a short message has several pieces.
pub(crate) const PUT_BYTES: u64 = 64;

/// How ranks reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Mapped links: streams write the peers' memory.
    Memory,
    /// Posted links.
    Tcp,
    /// Two nodes, each with every other rank: mapped links within, posted links between.
    Nodes,
}

/// Runs all plans that there are on `ranks` ranks, and records each on a communicator of its own.
/// Over posted links there are no windows, and nobody's memory is read or shown; on nodes there are plans by nodes too.
///
/// # Panics
/// If a rank cannot join, or a call fails.
#[must_use]
pub fn record(ranks: u32, transport: Transport) -> Vec<(Case, Log)> {
    let _alone = alone();
    let cases: Arc<[Case]> = Case::all(ranks)
        .filter(|case| !case.shares_memory() || transport == Transport::Memory)
        .chain(Case::hierarchical(ranks).filter(|_| transport == Transport::Nodes))
        .collect();
    let meet = Arc::new(Barrier::new(ranks as usize));
    let logs = threads(
        ranks,
        move |options| adjust(options, transport),
        move |world| {
            log::enter(world.rank());
            let mut logs = Vec::new();
            for case in cases.iter() {
                meet.wait();
                if world.rank() == 0 {
                    log::begin();
                }
                meet.wait();
                let has_run = run(case, &world);
                meet.wait();
                if world.rank() == 0 {
                    let log = log::take();
                    logs.extend(has_run.then_some((*case, log)));
                }
            }
            meet.wait();
            world.finalize().expect("finalize");
            logs
        },
    );
    logs.into_iter().next().unwrap_or_default()
}

/// There is one recorder, and there may be several tests: nobody else records while the result lives.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn adjust(options: &mut InitOptions, transport: Transport) {
    options.plugins = [tap::host(), tap::tcp()]
        .map(|plugin| PluginRequest {
            linked: Some(plugin.clone()),
            ..PluginRequest::named(plugin.name())
        })
        .into();
    match transport {
        Transport::Memory => {}
        Transport::Tcp => options.without_links = vec!["shm".to_owned()],
        Transport::Nodes => options.node_id = Some(NodeId([1 + options.rank as u8 % 2; 16])),
    }
    // What is recorded are the commands of streams.
    options.direct = false;
    options.timeouts.op = Duration::from_secs(20);
    options.memory = MemoryOptions {
        slot: Some(SLOT_BYTES),
        slots: SLOTS,
        ..options.memory
    };
    options.rules = Rules::new(|name, _| Overrides {
        rules: rules(name).unwrap_or_default(),
    });
}

/// The plan that a communicator's name asks for: see `Case::name`.
fn rules(name: &str) -> Option<Vec<Override>> {
    let mut parts = name.split('/');
    let (op, algorithm, how) = (parts.next()?, parts.next()?, parts.next()?);
    let algorithm = match algorithm.parse::<Algorithm>() {
        Ok(algorithm) => algorithm.into(),
        Err(_) => Family::Hierarchical,
    };
    Some(vec![Override {
        // Others go by what costs least: the barrier of its end.
        op: Some(op.parse().ok()?),
        bytes: 0..=u64::MAX,
        algorithm,
        windowed: Some(how == "windowed"),
        put_bytes: Some(PUT_BYTES),
    }])
}

/// The calls of a case, and the end of its communicator. False if there is no such plan, which only
/// the communicator knows of plans by nodes.
fn run(case: &Case, world: &Communicator) -> bool {
    let place = i64::from(world.rank());
    let own = world.split_named(Some(0), place, &case.name());
    let own = own.expect("a communicator").expect("one of them");
    let (input, output) = case.elements();
    // All are kept until the log is complete: an address means one buffer.
    let mut calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let len = input.max(output) as usize;
            if case.windowed {
                [own.alloc(len), own.alloc(len)].map(|w| Data::Window(w.expect("a window")))
            } else {
                [vec![0.0; len], vec![0.0; len]].map(Data::Own)
            }
        })
        .collect();
    let mut has_run = true;
    for (call, [first, second]) in (0..).zip(&mut calls) {
        let in_place = call == CALLS - 1 && case.op.runs_in_place(case.windowed);
        let this = Call {
            case,
            own: &own,
            call,
        };
        match this.run(first.elements(), second.elements(), in_place) {
            Err(Error::Unsupported { .. }) if case.algorithm == Family::Hierarchical => {
                has_run = false;
                break;
            }
            done => done.unwrap_or_else(|error| panic!("{case}: {error}")),
        }
        log::end(call);
    }
    own.finalize().expect("finalize");
    has_run
}

/// Memory for a call.
enum Data {
    Own(Vec<f32>),
    Window(Window<f32>),
}

impl Data {
    fn elements(&mut self) -> &mut [f32] {
        match self {
            Self::Own(own) => own,
            Self::Window(window) => window,
        }
    }
}

struct Call<'a> {
    case: &'a Case,
    own: &'a Communicator,
    call: u32,
}

impl Call<'_> {
    fn run(&self, first: &mut [f32], second: &mut [f32], in_place: bool) -> unisono::Result<()> {
        let (input, output) = self.case.elements();
        let (input, output) = (input as usize, output as usize);
        if in_place {
            // Who has no part in the longer one has the shorter one alone.
            let rank = self.own.rank();
            let has = |it: bool, len| if it { len } else { 0 };
            let len = has(self.case.has_input(rank), input);
            let len = has(self.case.has_output(rank), output).max(len);
            self.in_place(&mut first[..len])
        } else {
            self.apart(&mut first[..input], &mut second[..output])
        }
    }

    /// Where input and output are memory of their own.
    fn apart(&self, send: &mut [f32], recv: &mut [f32]) -> unisono::Result<()> {
        let (own, sum) = (self.own, ReduceOp::Sum);
        match self.case.op {
            // One buffer is both.
            Op::Broadcast { .. } | Op::Send { .. } | Op::Recv { .. } | Op::Barrier => {
                return self.in_place(send);
            }
            _ => self.note(send, recv),
        }
        match self.case.op {
            Op::AllReduce => own.all_reduce(send, recv, sum),
            Op::ReduceScatter => own.reduce_scatter(send, recv, sum),
            Op::AllGather => own.all_gather(send, recv),
            Op::AllToAll => own.all_to_all(send, recv),
            Op::Reduce { root } => own.reduce(send, recv, sum, root),
            Op::Gather { root } => own.gather(send, recv, root),
            Op::Scatter { root } => own.scatter(send, recv, root),
            Op::Broadcast { .. } | Op::Send { .. } | Op::Recv { .. } | Op::Barrier => Ok(()),
        }
    }

    /// Where a buffer is both, or holds both.
    fn in_place(&self, data: &mut [f32]) -> unisono::Result<()> {
        let (own, sum, rank) = (self.own, ReduceOp::Sum, self.own.rank());
        let (input, output) = self.case.elements();
        // The shorter one is this rank's share of the longer one.
        let share = |len: u32| {
            let (len, all) = (len as usize, data.len());
            let start = if len < all { rank as usize * len } else { 0 };
            start..(start + len).min(all)
        };
        self.note(&data[share(input)], &data[share(output)]);
        match self.case.op {
            Op::AllReduce => own.all_reduce_in_place(data, sum),
            Op::ReduceScatter => own.reduce_scatter_in_place(data, sum).map(|_| ()),
            Op::AllGather => own.all_gather_in_place(data),
            Op::AllToAll => own.all_to_all_in_place(data),
            Op::Barrier => own.barrier(),
            Op::Broadcast { root } => own.broadcast(data, root),
            Op::Reduce { root } => own.reduce_in_place(data, sum, root),
            Op::Gather { root } => own.gather_in_place(data, root),
            Op::Scatter { root } => own.scatter_in_place(data, root),
            Op::Send { to } if rank == self.case.sender() => own.send(data, to),
            Op::Send { to } if rank == to => own.recv(data, self.case.sender()),
            Op::Send { .. } | Op::Recv { .. } => Ok(()),
        }
    }

    /// Says where this rank's buffers are, if it has them.
    fn note(&self, input: &[f32], output: &[f32]) {
        let rank = self.own.rank();
        let range = |has: bool, data: &[f32]| {
            let at = data.as_ptr_range();
            if has {
                at.start as u64..at.end as u64
            } else {
                0..0
            }
        };
        let buffers = Buffers {
            input: range(self.case.has_input(rank), input),
            output: range(self.case.has_output(rank), output),
        };
        log::buffers(self.call, self.own.size(), buffers);
    }
}
