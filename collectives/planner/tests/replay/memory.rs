//! Buffers whose bytes are sums of inputs.

use std::collections::{BTreeMap, HashMap};

use super::{Run, Step};

/// Bytes of inputs that are added up: the rank, and where in its input. Sorted.
type Sum = Vec<(u64, u64)>;

/// From the start of each run of bytes its end and what it holds; of what is inside a run, inputs
/// are that much further on.
type Buffer = BTreeMap<u64, (u64, Sum)>;

/// All buffers of all ranks.
#[derive(Default)]
pub struct Memory {
    buffers: HashMap<(u64, String), Buffer>,
}

impl Memory {
    /// Runs all steps, each at once, in any order in which nothing comes before what it waits for;
    /// `chance` picks which.
    pub fn run(steps: &[Step], befores: &[Vec<usize>], mut chance: u64) -> Self {
        let mut memory = Self::default();
        let mut waits: Vec<usize> = befores.iter().map(Vec::len).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for (id, befores) in befores.iter().enumerate() {
            befores.iter().for_each(|&before| after[before].push(id));
        }
        let mut ready: Vec<usize> = (0..steps.len()).filter(|&id| waits[id] == 0).collect();
        let mut done = 0;
        while !ready.is_empty() {
            chance = chance
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let id = ready.swap_remove((chance >> 33) as usize % ready.len());
            memory.step(&steps[id]);
            done += 1;
            for &next in &after[id] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.push(next);
                }
            }
        }
        assert_eq!(done, steps.len(), "steps wait for each other in a circle");
        memory
    }

    fn step(&mut self, step: &Step) {
        for Run {
            from,
            with,
            to,
            bytes,
        } in &step.runs
        {
            let mut value = self.load(step.rank, &from.0, from.1, *bytes);
            if let Some(with) = with {
                let other = self.load(step.rank, &with.0, with.1, *bytes);
                value = sums(&value, &other);
            }
            self.store(step.peer, &to.0, to.1, *bytes, value);
        }
    }

    /// Runs of bytes from the start of the place, with their lengths.
    fn load(&self, rank: u64, buffer: &str, offset: u64, bytes: u64) -> Vec<(u64, Sum)> {
        if buffer == "in" {
            return vec![(bytes, vec![(rank, offset)])];
        }
        let missing = format!("rank {rank} reads {buffer}[{offset}; {bytes}], never written");
        let known = self
            .buffers
            .get(&(rank, buffer.to_owned()))
            .expect(&missing);
        let mut runs = Vec::new();
        let mut at = offset;
        while at < offset + bytes {
            let (&start, (end, sum)) = known.range(..=at).next_back().expect(&missing);
            assert!(*end > at, "{missing}");
            let next = (*end).min(offset + bytes);
            runs.push((next - at, moved(sum, at - start)));
            at = next;
        }
        runs
    }

    fn store(&mut self, rank: u64, buffer: &str, offset: u64, bytes: u64, value: Vec<(u64, Sum)>) {
        assert_ne!(buffer, "in", "inputs are not written");
        let known = self.buffers.entry((rank, buffer.to_owned())).or_default();
        let end = offset + bytes;
        let over: Vec<u64> = (known.range(..end))
            .rev()
            .take_while(|(_, (last, _))| *last > offset)
            .map(|(&start, _)| start)
            .collect();
        for start in over {
            let (last, sum) = known.remove(&start).expect("it was there");
            if last > end {
                known.insert(end, (last, moved(&sum, end - start)));
            }
            if start < offset {
                known.insert(start, (offset, sum));
            }
        }
        let mut at = offset;
        for (length, sum) in value {
            known.insert(at, (at + length, sum));
            at += length;
        }
        assert_eq!(at, end);
    }

    /// The output of a rank holds from `from` on the sum of the inputs at these places.
    pub fn expect(&self, rank: u64, from: u64, to: u64, sum: &[(u64, u64)]) {
        if from == to {
            return;
        }
        let mut at = from;
        for (length, got) in self.load(rank, "out", from, to - from) {
            let expected = moved(sum, at - from);
            assert_eq!(got, expected, "out[{at}] of rank {rank}");
            at += length;
        }
    }
}

fn moved(sum: &[(u64, u64)], by: u64) -> Sum {
    sum.iter().map(|&(rank, at)| (rank, at + by)).collect()
}

fn sums(a: &[(u64, Sum)], b: &[(u64, Sum)]) -> Vec<(u64, Sum)> {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    a.reverse();
    b.reverse();
    let mut sums = Vec::new();
    while let (Some((la, sa)), Some((lb, sb))) = (a.pop(), b.pop()) {
        let length = la.min(lb);
        let mut sum = [sa.clone(), sb.clone()].concat();
        sum.sort_unstable();
        sums.push((length, sum));
        if la > length {
            a.push((la - length, moved(&sa, length)));
        }
        if lb > length {
            b.push((lb - length, moved(&sb, length)));
        }
    }
    sums
}
