//! Inside a box every link carries what the plan says, to the byte and each way, and no byte passes the
//! host's memory; and on which devices which reductions do pass it, by necessity.
//!
//! Bytes are those of copies and kernels: what streams write and wait for are flags, not data.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use std::collections::BTreeMap;
use std::path::Path;

use unisono::plan::traffic::{Traffic as Planned, add_traffic};
use unisono::plan::{Geometry, Op, Shape};
use unisono::{Communicator, DataType, RawCall, ReduceOp, Reduction, Sizes};
use unisono_emulated_tests::{Emulated, Values, all_done, own_device};
use unisono_emulator::{Place, TRAFFIC, Traffic};
use unisono_tests::threads;

const RANKS: u32 = 8;
/// Elements of the larger buffer: short and long messages, which go by other plans.
const COUNTS: [usize; 3] = [8 * 32, 8 * 5000, 8 * 100_000];
/// Types of one, two, four and eight bytes, at all lengths; the others at the first alone.
const LONG: [DataType; 4] = [DataType::I8, DataType::Bf16, DataType::F32, DataType::U64];
/// Tells a rank's process whose devices it has.
const PLUGIN: &str = "TEST_PLUGIN";

/// A box and the plugin for it.
type Machine = (&'static str, &'static str);

const H100: Machine = ("h100x8", "cuda");
const MI300X: Machine = ("mi300x8", "rocm");
const ASCEND_910B: Machine = ("ascend910bx8", "ascend");

/// Whether a device of this plugin's reduces so by itself. The last one's runtime has sums of six types, and
/// says of least and greatest ones only for integers what they are.
fn reduces(plugin: &str, dtype: DataType, op: ReduceOp) -> bool {
    use DataType::{Bf16, F16, F32, I8, I16, I32};
    match (plugin, op) {
        ("cuda" | "rocm", _) => true,
        (_, ReduceOp::Sum) => matches!(dtype, I8 | I16 | I32 | F16 | Bf16 | F32),
        (_, ReduceOp::Min | ReduceOp::Max) => matches!(dtype, I8 | I16 | I32),
        _ => false,
    }
}

/// A rank's buffers, large enough for every call, and what it looks at.
struct Rank {
    world: Communicator,
    input: Values<u8>,
    output: Values<u8>,
    traffic: Traffic,
}

/// One call, the same on all ranks.
#[derive(Clone, Debug)]
struct Call {
    op: Op,
    dtype: DataType,
    /// Elements of the larger buffer.
    count: usize,
    reduction: Option<Reduction>,
}

/// Bytes by where they came from and went to.
type Moved = BTreeMap<(Place, Place), u64>;

impl Rank {
    fn new(world: Communicator) -> Self {
        let most = COUNTS[COUNTS.len() - 1] * size_of::<u64>();
        let buffer = || Values::new(world.device(), most);
        let path = std::env::var_os(TRAFFIC).expect("counts");
        Self {
            input: buffer(),
            output: buffer(),
            traffic: Traffic::open(Some(Path::new(&path))).expect("counts"),
            world,
        }
    }

    fn counts(&self) -> Moved {
        let devices = (0..RANKS).map(Place::Device);
        let places: Vec<Place> = devices.chain([Place::Host]).collect();
        let pairs = places
            .iter()
            .flat_map(|from| places.iter().map(move |to| (*from, *to)));
        let apart = pairs.filter(|(from, to)| from != to);
        apart
            .map(|(from, to)| ((from, to), self.traffic.data(from, to)))
            .collect()
    }

    /// Makes a call on all ranks; what all of them moved for it, as far as this one knows: nobody moves
    /// anything while rank 0 counts.
    fn moved(&self, call: &Call) -> Moved {
        let barrier = || self.world.barrier().expect("a barrier");
        barrier();
        let before = self.counts();
        barrier();
        let raw = RawCall {
            op: call.op,
            input: self.input.address(),
            output: self.output.address(),
            sizes: Sizes::Equal(call.count as u64),
            dtype: call.dtype,
            reduction: call.reduction.clone(),
        };
        // SAFETY: device memory that lives until the call is complete, and nobody else uses.
        let done = unsafe { self.world.call_raw(raw) };
        done.unwrap_or_else(|error| panic!("{call:?}: {error}"));
        barrier();
        let after = self.counts();
        let moved = after.into_iter().map(|(way, to)| (way, to - before[&way]));
        moved.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// What the call's plan moves from device to device.
    fn planned(&self, call: &Call) -> Moved {
        let bytes = (call.count * call.dtype.size()) as u64;
        let explained = self.world.explain(call.op, bytes, call.dtype);
        let explained = explained.expect("a plan");
        let winner = explained.selection().winner();
        let mut sum = Planned::new();
        for rank in 0..RANKS {
            let shape = Shape {
                op: call.op,
                ranks: RANKS,
                rank,
                windowed: winner.windowed,
                turns: false,
            };
            let program = winner.template.generate(&shape).expect("a program");
            let geometry = Geometry::of(&program, Sizes::Equal(call.count as u64));
            add_traffic(&mut sum, &program, &geometry.expect("a geometry"), false);
        }
        let bytes = sum.into_iter().map(|((from, to), elements)| {
            let way = (Place::Device(from), Place::Device(to));
            (way, elements * call.dtype.size() as u64)
        });
        bytes.filter(|(_, bytes)| *bytes > 0).collect()
    }
}

/// Every collective, of one type.
fn calls(dtype: DataType, count: usize, reduction: Option<Reduction>) -> Vec<Call> {
    let mut ops = vec![Op::AllGather, Op::AllToAll];
    for root in [0, 5] {
        ops.extend([Op::Broadcast { root }, Op::Gather { root }]);
        ops.push(Op::Scatter { root });
    }
    let call = |op, reduction| Call {
        op,
        dtype,
        count,
        reduction,
    };
    let mut calls: Vec<_> = ops.into_iter().map(|op| call(op, None)).collect();
    if reduction.is_some() {
        let ops = [Op::AllReduce, Op::ReduceScatter];
        let rooted = [0, 5].map(|root| Op::Reduce { root });
        let all = ops.into_iter().chain(rooted);
        calls.extend(all.map(|op| call(op, reduction.clone())));
    }
    calls
}

/// Every collective of every type, by the first reductions that the device has of it.
fn every_call(rank: &Rank, plugin: &str) {
    let mut seen = 0;
    for (number, dtype) in DataType::ALL.into_iter().enumerate() {
        let mut own = ReduceOp::ALL.into_iter().cycle().skip(number).take(8);
        let own = own.find(|op| op.applies_to(dtype) && reduces(plugin, dtype, *op));
        let lengths = if LONG.contains(&dtype) { 3 } else { 1 };
        for count in &COUNTS[..lengths] {
            for call in calls(dtype, *count, own.map(Reduction::from)) {
                let moved = rank.moved(&call);
                if rank.world.rank() == 0 {
                    assert_eq!(moved, rank.planned(&call), "{call:?}");
                    seen += moved.values().sum::<u64>();
                }
            }
        }
    }
    assert!(rank.world.rank() != 0 || seen > 64 << 20, "{seen} bytes");
}

fn plugin() -> &'static str {
    std::env::var(PLUGIN).expect("a plugin").leak()
}

fn between_threads(test: &str, (name, plugin_name): Machine) {
    let Some(machine) = Emulated::new(test, name, |text| text) else {
        return;
    };
    let job = machine.job(test, 1).env(PLUGIN, plugin_name);
    let ranks = job.start(|rank| {
        let plugin = plugin();
        threads(RANKS, own_device(plugin), |world| {
            every_call(&Rank::new(world), plugin);
        });
        rank.say("done");
    });
    all_done(&ranks.finish());
}

fn between_processes(test: &str, (name, plugin_name): Machine) {
    let Some(machine) = Emulated::new(test, name, |text| text) else {
        return;
    };
    let job = machine.job(test, RANKS).env(PLUGIN, plugin_name);
    let ranks = job.start(|rank| {
        let world = rank.init(own_device(plugin()));
        every_call(&Rank::new(world), plugin());
        rank.say("done");
    });
    all_done(&ranks.finish());
}

#[test]
fn eight_h100_between_threads() {
    between_threads("eight_h100_between_threads", H100);
}

#[test]
fn eight_h100_between_processes() {
    between_processes("eight_h100_between_processes", H100);
}

#[test]
fn eight_mi300x_between_threads() {
    between_threads("eight_mi300x_between_threads", MI300X);
}

#[test]
fn eight_mi300x_between_processes() {
    between_processes("eight_mi300x_between_processes", MI300X);
}

#[test]
fn eight_910b_between_threads() {
    between_threads("eight_910b_between_threads", ASCEND_910B);
}

#[test]
fn eight_910b_between_processes() {
    between_processes("eight_910b_between_processes", ASCEND_910B);
}

/// Each reduction of each type: which pass the host's memory, and no other does.
fn only_these_pass_the_host(test: &str, (name, plugin_name): Machine) {
    let Some(machine) = Emulated::new(test, name, |text| text) else {
        return;
    };
    let job = machine.job(test, 1).env(PLUGIN, plugin_name);
    let ranks = job.start(|rank| {
        let plugin = plugin();
        threads(RANKS, own_device(plugin), move |world| {
            let rank = Rank::new(world);
            for dtype in DataType::ALL {
                let ops = ReduceOp::ALL.into_iter().filter(|op| op.applies_to(dtype));
                let ops = ops.map(|op| (op.into(), reduces(plugin, dtype, op)));
                // Bits of one, of whatever it is taken for.
                let scaled = Reduction::scaled_sum_of(dtype, [1, 0, 0, 0, 0, 0, 0, 0]);
                for (reduction, own) in ops.chain([(scaled, plugin != "ascend")]) {
                    let call = Call {
                        op: Op::AllReduce,
                        dtype,
                        count: COUNTS[1],
                        reduction: Some(reduction),
                    };
                    let moved = rank.moved(&call);
                    let host = |way: &(Place, Place)| way.0 == Place::Host || way.1 == Place::Host;
                    let passes = moved.keys().any(host);
                    if rank.world.rank() == 0 {
                        assert_eq!(passes, !own, "{call:?}: {moved:?}");
                    }
                }
            }
        });
        rank.say("done");
    });
    all_done(&ranks.finish());
}

#[test]
fn h100_reduce_everything_themselves() {
    only_these_pass_the_host("h100_reduce_everything_themselves", H100);
}

#[test]
fn mi300x_reduce_everything_themselves() {
    only_these_pass_the_host("mi300x_reduce_everything_themselves", MI300X);
}

#[test]
fn what_910b_cannot_reduce_passes_the_host() {
    only_these_pass_the_host("what_910b_cannot_reduce_passes_the_host", ASCEND_910B);
}
