//! Runs programs on numbers, through the geometry: what an executor does, in its simplest form.
//!
//! Every rank has its own buffers and runs its steps in order; ranks take turns. Slots, scratch and
//! buffers are addressed by element offsets alone, so a wrong cut or offset gives wrong numbers.

use std::collections::VecDeque;

use unisono_plan::ir::MIN_SLOTS;
use unisono_plan::verify::programs;
use unisono_plan::{Action, Algorithm, Blocks, Buffer, Geometry, Op, Place, Program, Value};

/// Fits one element of each block of the widest put here: six, and a little more.
const SLOT_BYTES: u64 = 56;
const ELEMENT_BYTES: u32 = 8;

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
    geometry: Geometry,
    in_place: bool,
    /// In, Out and Scratch of each rank, each as long as the message.
    memory: Vec<[Vec<u64>; 3]>,
    channels: Vec<Vec<Channel>>,
}

impl Run {
    fn elements(&self, blocks: Blocks, piece: u64) -> Vec<usize> {
        let ranges = blocks.iter().map(|block| self.geometry.piece(block, piece));
        ranges.flatten().map(|index| index as usize).collect()
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
                let slot = &self.channels[from as usize][me as usize].current;
                let slot = slot.as_ref().expect("a current slot");
                let at = self
                    .geometry
                    .packed_offset(slot.blocks, blocks.first, piece)
                    as usize;
                let size = self.geometry.packed(blocks, piece) as usize;
                return slot.data[at..at + size].to_vec();
            }
        };
        let elements = self.elements(place.blocks(), piece);
        let memory = self.buffer(rank, buffer);
        elements.into_iter().map(|index| memory[index]).collect()
    }

    fn store(&mut self, me: u32, place: Place, piece: u64, data: &[u64]) {
        let (rank, buffer) = match place {
            Place::Local { buffer, .. } => (me, buffer),
            Place::Peer { rank, buffer, .. } => (rank, buffer),
            Place::Slot { .. } => panic!("a slot is written"),
        };
        let elements = self.elements(place.blocks(), piece);
        assert_eq!(elements.len(), data.len());
        let memory = self.buffer(rank, buffer);
        for (index, &value) in elements.into_iter().zip(data) {
            memory[index] = value;
        }
    }

    fn sum(&mut self, me: u32, a: Place, b: Place, piece: u64) -> Vec<u64> {
        let (x, y) = (self.load(me, a, piece), self.load(me, b, piece));
        assert_eq!(x.len(), y.len());
        x.iter().zip(&y).map(|(x, y)| x + y).collect()
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
                assert!(bytes <= SLOT_BYTES, "a put of {bytes} bytes");
                let blocks = value.blocks();
                let channel = &mut self.channels[me as usize][to as usize];
                channel.queue.push_back(Put { blocks, data });
            }
            Action::Wait { from, .. } => {
                let channel = &mut self.channels[from as usize][me as usize];
                let Some(put) = channel.queue.pop_front() else {
                    return false;
                };
                channel.current = Some(put);
            }
            Action::Release { from } => {
                self.channels[from as usize][me as usize].current = None;
            }
        }
        true
    }

    fn run(&mut self) {
        let mut at = vec![(0u64, 0usize); self.programs.len()];
        let pieces = self.geometry.pieces();
        let programs = self.programs.clone();
        loop {
            let (mut moved, mut ended) = (false, 0);
            for (program, (round, step)) in programs.iter().zip(&mut at) {
                while *round < pieces + u64::from(program.max_skew) {
                    if let Some(&now) = program.steps.get(*step) {
                        let piece = round.wrapping_sub(u64::from(now.skew));
                        if piece < pieces && !self.act(program.rank, now.action, piece) {
                            break;
                        }
                        *step += 1;
                    } else {
                        (*round, *step) = (*round + 1, 0);
                    }
                    moved = true;
                }
                ended += usize::from(*round >= pieces + u64::from(program.max_skew));
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

fn check(algorithm: Algorithm, op: Op, ranks: u32, count: u64, windowed: bool, in_place: bool) {
    let programs = programs(algorithm, op, ranks, windowed).unwrap();
    let first = &programs[0];
    let geometry = Geometry::for_program(first, count, ELEMENT_BYTES, SLOT_BYTES).unwrap();
    let memory = (0..ranks).map(|rank| {
        let input = (0..count).map(|index| input(rank, index)).collect();
        [
            input,
            vec![u64::MAX / 2; count as usize],
            vec![u64::MAX / 2; count as usize],
        ]
    });
    let mut run = Run {
        in_place,
        memory: memory.collect(),
        channels: (0..ranks)
            .map(|_| (0..ranks).map(|_| Channel::default()).collect())
            .collect(),
        geometry,
        programs,
    };
    run.run();
    for program in run.programs.clone() {
        let rank = program.rank;
        for block in program.holds(Buffer::Out).iter() {
            for index in run.geometry.block(block) {
                let wanted = match op {
                    Op::AllGather => input(block, index),
                    Op::Broadcast { root } => input(root, index),
                    _ => (0..ranks).map(|rank| input(rank, index)).sum(),
                };
                let got = run.buffer(rank, Buffer::Out)[index as usize];
                assert_eq!(
                    got, wanted,
                    "{algorithm} {op}, windowed {windowed}, in place {in_place}: rank {rank} of \
                     {ranks}, element {index} of {count}"
                );
            }
        }
    }
}

#[test]
fn programs_compute_what_they_promise() {
    let ops = [
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::Broadcast { root: 0 },
    ];
    let mut runs = 0;
    for ranks in 1..=6 {
        for mut op in ops {
            if let Op::Broadcast { root } = &mut op {
                *root = ranks - 1;
            }
            for algorithm in Algorithm::ALL {
                for windowed in [false, true] {
                    if algorithm.supports(op, ranks, windowed).is_err() {
                        continue;
                    }
                    for count in [0, 1, 2, 5, 30, 97] {
                        let each = if op.has_block_per_rank() { ranks } else { 1 };
                        for in_place in [false, true] {
                            let count = count * u64::from(each);
                            check(algorithm, op, ranks, count, windowed, in_place);
                            runs += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(runs, 6 * (6 + 4 + 4 + 5) * 6 * 2);
}
