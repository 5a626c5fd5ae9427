//! Runs programs on numbers, through the geometry: what an executor does, in its simplest form.
//!
//! Every rank has its own buffers and runs its steps in order; ranks take turns. Slots, scratch and
//! buffers are addressed by element offsets alone, so a wrong cut or offset gives wrong numbers.

use std::collections::VecDeque;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use unisono_plan::geometry::Sizes;
use unisono_plan::ir::{MIN_SLOTS, ProgramCounter};
use unisono_plan::template::{Hierarchical, Level, Order, Ring, Rings, Route, Routes, Tree, Trees};
use unisono_plan::verify::programs;
use unisono_plan::{
    Action, Algorithm, Blocks, Buffer, Geometry, Op, OpKind, Place, Program, Template, Value,
};

/// Fits one element of each block of most puts here, and a little more.
const SLOT_BYTES: u64 = 56;
const ELEMENT_BYTES: u32 = 8;
/// What was never written.
const NOTHING: u64 = u64::MAX / 2;

struct Put {
    blocks: Blocks,
    data: Vec<u64>,
}

#[derive(Default)]
struct Channel {
    queue: VecDeque<Put>,
    current: Option<Put>,
}

struct Run {
    programs: Vec<Program>,
    /// By rank: in an all_to_all_v each knows only its own sizes.
    geometry: Vec<Geometry>,
    in_place: bool,
    slot_bytes: u64,
    /// In and Out of each rank, each as long as the message, and scratch.
    memory: Vec<[Vec<u64>; 3]>,
    channels: Vec<Vec<Channel>>,
}

impl Run {
    /// Where the elements of some blocks are in a buffer of a rank.
    fn elements(&self, rank: u32, buffer: Buffer, blocks: Blocks, piece: u64) -> Vec<usize> {
        let (program, geometry) = (&self.programs[rank as usize], &self.geometry[rank as usize]);
        let names = blocks.iter(geometry.section());
        if buffer == Buffer::Scratch {
            let scratch = program.scratch;
            let instance = piece % u64::from(program.scratch_instances());
            let base = instance * geometry.room(scratch.count);
            let of = |name: u32| {
                let start = base + geometry.scratch_offset(scratch, name, piece);
                start..start + geometry.packed(Blocks::one(name), piece)
            };
            return names.flat_map(of).map(|index| index as usize).collect();
        }
        let input = geometry.start_of(program, Buffer::In, rank);
        let output = geometry.start_of(program, buffer, rank);
        let shift = match program.op {
            // In place, what goes and what comes is the same memory.
            Op::AllToAll if self.in_place && buffer == Buffer::Out => output - input,
            _ => 0,
        };
        let ranges = names.map(|name| geometry.piece(name, piece));
        ranges
            .flatten()
            .map(|index| (index - shift) as usize)
            .collect()
    }

    fn buffer(&mut self, rank: u32, buffer: Buffer) -> &mut Vec<u64> {
        let index = match buffer {
            Buffer::Out if self.in_place => Buffer::In,
            other => other,
        };
        &mut self.memory[rank as usize][index as usize]
    }

    fn load(&mut self, me: u32, place: Place, piece: u64) -> Vec<u64> {
        let (rank, buffer) = match place {
            Place::Local { buffer, .. } => (me, buffer),
            Place::Peer { rank, buffer, .. } => (rank, buffer),
            Place::Slot { from, blocks } => {
                let geometry = &self.geometry[me as usize];
                let slot = &self.channels[from as usize][me as usize].current;
                let slot = slot.as_ref().expect("a current slot");
                let start = slot.blocks.find(blocks, geometry.section());
                let start = start.expect("a part of the slot");
                let at = geometry.packed_offset(slot.blocks, start, piece) as usize;
                let size = geometry.packed(blocks, piece) as usize;
                return slot.data[at..at + size].to_vec();
            }
        };
        let elements = self.elements(rank, buffer, place.blocks(), piece);
        let memory = self.buffer(rank, buffer);
        elements.into_iter().map(|index| memory[index]).collect()
    }

    fn store(&mut self, me: u32, place: Place, piece: u64, data: &[u64]) {
        let (rank, buffer) = match place {
            Place::Local { buffer, .. } => (me, buffer),
            Place::Peer { rank, buffer, .. } => (rank, buffer),
            Place::Slot { .. } => panic!("a slot is written"),
        };
        let elements = self.elements(rank, buffer, place.blocks(), piece);
        assert_eq!(elements.len(), data.len());
        let memory = self.buffer(rank, buffer);
        for (index, &value) in elements.into_iter().zip(data) {
            memory[index] = value;
        }
    }

    fn sum(&mut self, me: u32, a: Place, b: Place, piece: u64) -> Vec<u64> {
        let (x, y) = (self.load(me, a, piece), self.load(me, b, piece));
        assert_eq!(x.len(), y.len());
        x.iter().zip(&y).map(|(x, y)| x.wrapping_add(*y)).collect()
    }

    /// Runs one action if it need not wait.
    fn act(&mut self, me: u32, action: Action, piece: u64) -> bool {
        match action {
            Action::Copy { dst, src } => {
                let data = self.load(me, src, piece);
                self.store(me, dst, piece, &data);
            }
            Action::Reduce { dst, a, b, .. } => {
                let data = self.sum(me, a, b, piece);
                self.store(me, dst, piece, &data);
            }
            Action::Put { to, value } => {
                let channel = &self.channels[me as usize][to as usize];
                let used = channel.queue.len() + usize::from(channel.current.is_some());
                if used == MIN_SLOTS as usize {
                    return false;
                }
                let data = match value {
                    Value::Empty => Vec::new(),
                    Value::Copy(src) => self.load(me, src, piece),
                    Value::Reduce { a, b, .. } => self.sum(me, a, b, piece),
                };
                let bytes = data.len() as u64 * u64::from(ELEMENT_BYTES);
                assert!(bytes <= self.slot_bytes, "a put of {bytes} bytes");
                let blocks = value.blocks();
                let channel = &mut self.channels[me as usize][to as usize];
                channel.queue.push_back(Put { blocks, data });
            }
            Action::Wait { from, blocks } => {
                let channel = &mut self.channels[from as usize][me as usize];
                let Some(mut put) = channel.queue.pop_front() else {
                    return false;
                };
                // The two sides of an all_to_all know blocks by different numbers.
                put.blocks = blocks;
                let size = self.geometry[me as usize].packed(blocks, piece);
                assert_eq!(put.data.len() as u64, size, "both sides know the size");
                self.channels[from as usize][me as usize].current = Some(put);
            }
            Action::Release { from } => {
                self.channels[from as usize][me as usize].current = None;
            }
        }
        true
    }

    fn run(&mut self) {
        let mut at = vec![ProgramCounter::START; self.programs.len()];
        let programs = self.programs.clone();
        loop {
            let (mut moved, mut ended) = (false, 0);
            for (program, counter) in programs.iter().zip(&mut at) {
                let pieces = self.geometry[program.rank as usize].pieces();
                let mut next = program.seek(counter, pieces);
                while let Some((step, piece)) = next {
                    let geometry = &self.geometry[program.rank as usize];
                    let pieces_of = geometry.pieces_of(&step.action, program.ranks);
                    if piece < pieces_of && !self.act(program.rank, step.action, piece) {
                        break;
                    }
                    program.pass(counter);
                    next = program.seek(counter, pieces);
                    moved = true;
                }
                ended += usize::from(next.is_none());
            }
            if ended == programs.len() {
                return;
            }
            assert!(moved, "the programs hang");
        }
    }
}

fn input(rank: u32, index: u64) -> u64 {
    (u64::from(rank) + 1) * 1_000_003 + index * 7919
}

/// Elements of each part of a message, as a rank knows them.
type Parts<'a> = dyn Fn(u32) -> Vec<u64> + 'a;

/// Runs an operation and compares every element of every output.
fn check(programs: Vec<Program>, parts: &Parts<'_>, in_place: bool, what: &str) {
    let ranks = programs[0].ranks;
    let widest = u64::from(programs[0].max_put_blocks) * u64::from(ELEMENT_BYTES);
    let slot_bytes = SLOT_BYTES.max(widest);
    let geometry: Vec<Geometry> = (0..ranks)
        .map(|rank| {
            let program = &programs[rank as usize];
            let parts = parts(rank);
            let equal = parts.iter().all(|n| *n == parts[0]);
            let sizes = match program.op {
                // What a rank hands on for others is a part as well.
                Op::AllToAll if equal => Sizes::Equal(parts[0] * u64::from(ranks)),
                _ => Sizes::Parts(&parts),
            };
            let unequal = program.op == Op::AllToAll && !equal;
            let cut = match unequal {
                true => Geometry::of(program, sizes)
                    .and_then(|whole| whole.in_own_pieces(ELEMENT_BYTES, slot_bytes)),
                false => Geometry::for_program(program, sizes, ELEMENT_BYTES, slot_bytes),
            };
            cut.unwrap_or_else(|error| panic!("{what}: {error}"))
        })
        .collect();
    let memory = (geometry.iter().zip(&programs)).map(|(geometry, program)| {
        let count = geometry.count();
        let room = geometry.room(program.scratch.count) * u64::from(program.scratch_instances());
        [
            (0..count).map(|index| input(program.rank, index)).collect(),
            vec![NOTHING; count as usize],
            vec![NOTHING; room as usize],
        ]
    });
    let mut run = Run {
        in_place,
        slot_bytes,
        memory: memory.collect(),
        channels: (0..ranks)
            .map(|_| (0..ranks).map(|_| Channel::default()).collect())
            .collect(),
        geometry,
        programs,
    };
    run.run();
    for program in run.programs.clone() {
        let (op, rank) = (program.op, program.rank);
        let outputs = run.geometry[rank as usize].start_of(&program, Buffer::Out, rank);
        for part in op.holds(Buffer::Out, rank, ranks) {
            let place = span(&parts(rank), part);
            for index in place.clone() {
                let wanted = match op {
                    Op::AllGather | Op::Gather { .. } => input(part, index),
                    Op::AllToAll => {
                        let sent = span(&parts(part - ranks), rank);
                        input(part - ranks, sent.start + index - place.start)
                    }
                    Op::Broadcast { root } | Op::Scatter { root } => input(root, index),
                    Op::Recv { from } => input(from, index),
                    _ => (0..ranks).map(|rank| input(rank, index)).sum(),
                };
                let shift = match op {
                    Op::AllToAll if in_place => outputs,
                    _ => 0,
                };
                let got = run.buffer(rank, Buffer::Out)[(index - shift) as usize];
                assert_eq!(
                    got, wanted,
                    "{what}, in place {in_place}: rank {rank} of {ranks}, element {index}"
                );
            }
        }
    }
}

/// The elements of a part, counted from the start of the message.
fn span(parts: &[u64], part: u32) -> Range<u64> {
    let start = parts[..part as usize].iter().sum();
    start..start + parts[part as usize]
}

/// Every collective at one root.
fn ops(ranks: u32) -> impl Iterator<Item = Op> {
    let root = ranks - 1;
    OpKind::ALL.into_iter().filter_map(move |kind| match kind {
        OpKind::AllReduce => Some(Op::AllReduce),
        OpKind::ReduceScatter => Some(Op::ReduceScatter),
        OpKind::AllGather => Some(Op::AllGather),
        OpKind::Broadcast => Some(Op::Broadcast { root }),
        OpKind::Reduce => Some(Op::Reduce { root }),
        OpKind::Gather => Some(Op::Gather { root }),
        OpKind::Scatter => Some(Op::Scatter { root }),
        OpKind::AllToAll => Some(Op::AllToAll),
        OpKind::Barrier | OpKind::Send | OpKind::Recv => None,
    })
}

/// Calls `run` for every algorithm that has an operation, with and without windows.
fn for_each_plan(ranks: u32, mut run: impl FnMut(Op, Algorithm, bool)) {
    for op in ops(ranks) {
        for algorithm in Algorithm::ALL {
            for windowed in [false, true] {
                if algorithm.supports(op, ranks, windowed).is_ok() {
                    run(op, algorithm, windowed);
                }
            }
        }
    }
}

#[test]
fn programs_compute_what_they_promise() {
    let mut runs = 0;
    for ranks in 1..=9 {
        for_each_plan(ranks, |op, algorithm, windowed| {
            for count in [0, 1, 2, 5, 30, 97] {
                let direct = windowed || algorithm.reads_peers();
                let in_place = op.runs_in_place(direct).then_some(true);
                for in_place in iter::once(false).chain(in_place) {
                    let programs = programs(algorithm, op, ranks, windowed).unwrap();
                    let parts = |_| vec![count; op.parts(ranks) as usize];
                    let what = format!("{algorithm} {op}, windowed {windowed}, {count} each");
                    check(programs, &parts, in_place, &what);
                    runs += 1;
                }
            }
        });
    }
    println!("{runs} runs");
    assert!(runs > 9 * 20 * 12, "{runs}");
}

#[test]
fn parts_may_have_sizes_of_their_own() {
    let mut runs = 0;
    for ranks in 1..=9 {
        for_each_plan(ranks, |op, algorithm, windowed| {
            if !algorithm.allows_unequal(op) || (windowed && op == Op::AllToAll) {
                return;
            }
            for in_place in [false, true] {
                let programs = programs(algorithm, op, ranks, windowed).unwrap();
                // Wildly different, and some nothing. In place both directions must be the same.
                let pair = |from: u32, to: u32| match in_place {
                    true => [0, 1, 40, 3][((from + to) % 4) as usize],
                    false => [0, 50, 2, 1, 9][((3 * from + to) % 5) as usize],
                };
                let parts = |rank: u32| match op {
                    Op::AllToAll => {
                        let sent = (0..ranks).map(|to| pair(rank, to));
                        sent.chain((0..ranks).map(|from| pair(from, rank)))
                            .collect()
                    }
                    _ => (0..ranks)
                        .map(|part| [3, 0, 97, 1][(part % 4) as usize])
                        .collect(),
                };
                let what = format!("{algorithm} {op}, windowed {windowed}, unequal");
                check(programs, &parts, in_place, &what);
                runs += 1;
            }
        });
    }
    println!("{runs} runs");
    assert!(runs > 9 * 8 * 2, "{runs}");
}

/// Templates of every kind for five ranks, in groups of two and three where there are groups.
fn templates() -> Vec<Template> {
    let order = |ranks: [u32; 5]| Order::new(ranks.to_vec()).unwrap();
    let rings = [([0, 2, 4, 1, 3], 3), ([3, 1, 4, 2, 0], 2)];
    let rings = rings.map(|(order, weight)| Ring::new(order, weight).unwrap());
    let levels = |within, weights: [u32; 5]| {
        let levels = [
            Level {
                weights: weights.into(),
                ..Level::new([0, 1, 0, 1, 1], within)
            },
            Level::new([0, 0], Algorithm::MeshOneShot),
        ];
        Template::Hierarchical(Arc::new(Hierarchical::new(levels).unwrap()))
    };
    // From each root a path and a star, with unequal shares.
    let trees: Vec<Tree> = (0..5)
        .flat_map(|root| {
            let path: Vec<u32> = (0..5)
                .map(|rank| if rank == root { root } else { (rank + 4) % 5 })
                .collect();
            [Tree::new(root, 5, path), Tree::new(root, 2, vec![root; 5])]
        })
        .collect();
    let pairs = (0..5).flat_map(|from| (0..5).map(move |to| (from, to)));
    let routes: Vec<Route> = pairs
        .filter(|(from, to)| from != to)
        .flat_map(|(from, to)| {
            let between = (0..5).find(|rank| *rank != from && *rank != to).unwrap();
            let route = |weight, path: &[u32]| Route {
                weight,
                path: path.into(),
            };
            [
                route(2 + u64::from(from), &[from, to]),
                route(1, &[from, between, to]),
            ]
        })
        .collect();
    vec![
        Template::Ordered {
            algorithm: Algorithm::Bruck,
            order: Arc::new(order([4, 2, 0, 1, 3])),
        },
        Template::Ordered {
            algorithm: Algorithm::Binomial,
            order: Arc::new(order([1, 3, 0, 4, 2])),
        },
        Template::Ordered {
            algorithm: Algorithm::Binomial,
            order: Arc::new(order([1, 3, 0, 4, 2]).in_runs(3)),
        },
        Template::Rings(Arc::new(Rings::new(rings).unwrap())),
        levels(Algorithm::MeshOneShot, [1; 5]),
        levels(Algorithm::Ring, [1; 5]),
        levels(Algorithm::HalvingDoubling, [1; 5]),
        levels(Algorithm::MeshOneShot, [3, 2, 1, 4, 1]),
        levels(Algorithm::Ring, [1, 1, 6, 2, 5]),
        levels(Algorithm::HalvingDoubling, [1, 5, 2, 3, 3]),
        Template::Trees(Arc::new(Trees::new(5, trees.clone(), trees).unwrap())),
        Template::Routes(Arc::new(Routes::new(5, routes).unwrap())),
    ]
}

#[test]
fn templates_compute_what_they_promise() {
    let mut runs = 0;
    for template in templates() {
        for op in ops(5).filter(|op| template.supports(*op, 5, false).is_ok()) {
            for count in [0, 1, 2, 5, 30, 97] {
                for in_place in [false, true] {
                    let programs = template.programs(op, 5, false).unwrap();
                    let parts = |_| vec![count; op.parts(5) as usize];
                    let what = format!("{template} {op}, {count} each");
                    check(programs, &parts, in_place, &what);
                    runs += 1;
                }
            }
            if template.allows_unequal(op) {
                for in_place in [false, true] {
                    let programs = template.programs(op, 5, false).unwrap();
                    let what = format!("{template} {op}, unequal");
                    check(programs, &|_| vec![3, 0, 97, 1, 20], in_place, &what);
                    runs += 1;
                }
            }
        }
    }
    println!("{runs} runs");
    assert!(runs > 8 * 4 * 12, "{runs}");
}
