//! One try of a collective: call it with known data, compare every element.

use half::{bf16, f16};
use unisono::{Communicator, DataType, F8E4M3, F8E5M2, Result};

use crate::values::{Fold, Value, input, reduced};

/// A collective to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names of the collectives; a number is the root"
)]
pub enum Collective {
    AllReduce,
    Reduce(u32),
    ReduceScatter,
    ReduceScatterV,
    AllGather,
    AllGatherV,
    Gather(u32),
    Scatter(u32),
    Broadcast(u32),
    AllToAll,
    AllToAllV,
}

impl Collective {
    /// Every one, the rooted ones with the first and the last rank as root.
    #[must_use]
    pub fn all(ranks: u32) -> Vec<Self> {
        let mut all = vec![
            Self::AllReduce,
            Self::ReduceScatter,
            Self::ReduceScatterV,
            Self::AllGather,
            Self::AllGatherV,
            Self::AllToAll,
            Self::AllToAllV,
        ];
        let mut roots = vec![0, ranks - 1];
        roots.dedup();
        for root in roots {
            all.extend([
                Self::Reduce(root),
                Self::Gather(root),
                Self::Scatter(root),
                Self::Broadcast(root),
            ]);
        }
        all
    }

    /// Whether it combines contributions.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Self::AllReduce | Self::Reduce(_) | Self::ReduceScatter | Self::ReduceScatterV
        )
    }

    /// Whether it can run in place.
    #[must_use]
    pub const fn in_place(self) -> bool {
        !matches!(self, Self::AllToAllV)
    }
}

/// One try: the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// What to call.
    pub collective: Collective,
    /// Elements of one rank's share, where each rank has one, or of the message.
    pub count: usize,
    /// How to reduce.
    pub op: Fold,
    /// Whether in place, where that can be.
    pub in_place: bool,
    /// Varies the values.
    pub salt: u64,
}

/// What came out, and what should have.
type Results<T> = (Vec<T>, Vec<T>);

/// Elements of rank `r`'s share, where shares are unequal: also none at all.
fn share(count: usize, r: u32) -> usize {
    count * (r as usize % 3) / 2 + usize::from(count > 0) * (r as usize % 2)
}

/// Elements that rank `from` sends to rank `to` in an all_to_all_v: also none at all.
fn sent(count: usize, from: u32, to: u32) -> usize {
    (count + from as usize) * ((from + 2 * to) as usize % 4) / 3
}

impl Try {
    /// Calls it and compares every element; the error says what differs.
    ///
    /// # Errors
    /// Wrong elements, as text.
    pub fn run<T: Value>(&self, world: &Communicator) -> Result<Result<(), String>> {
        let (rank, ranks) = (world.rank(), world.size());
        let (got, expected) = self.call::<T>(world)?;
        let wrong = got.iter().zip(&expected).position(|(a, b)| a != b);
        Ok(match wrong {
            None if got.len() == expected.len() => Ok(()),
            None => Err(format!("{self:?}: {} elements", got.len())),
            Some(at) => Err(format!(
                "{self:?} of {} on rank {rank} of {ranks}: element {at} is {:?}, not {:?}",
                T::TYPE,
                got[at],
                expected[at]
            )),
        })
    }

    fn call<T: Value>(&self, world: &Communicator) -> Result<Results<T>> {
        match self.collective {
            Collective::AllReduce | Collective::Reduce(_) => self.reduce(world),
            Collective::ReduceScatter | Collective::ReduceScatterV => self.reduce_scatter(world),
            Collective::AllGather | Collective::AllGatherV => self.all_gather(world),
            Collective::Gather(root) => self.gather(world, root),
            Collective::Scatter(root) => self.scatter(world, root),
            Collective::Broadcast(root) => self.broadcast(world, root),
            Collective::AllToAll => self.all_to_all(world),
            Collective::AllToAllV => self.all_to_all_v(world),
        }
    }

    /// `n` elements of a rank's input, where nothing is reduced.
    fn plain<T: Value>(&self, world: &Communicator, rank: u32, n: usize) -> Vec<T> {
        let of = |i| input(world.size(), rank, i, self.salt, None);
        (0..n).map(of).collect()
    }

    /// `n` elements of this rank's input to a reduction.
    fn operands<T: Value>(&self, world: &Communicator, n: usize) -> Vec<T> {
        let of = |i| input(world.size(), world.rank(), i, self.salt, Some(self.op));
        (0..n).map(of).collect()
    }

    fn reduced<T: Value>(&self, ranks: u32, at: std::ops::Range<usize>) -> Vec<T> {
        at.map(|i| reduced(ranks, i, self.salt, self.op)).collect()
    }

    fn reduce<T: Value>(&self, world: &Communicator) -> Result<Results<T>> {
        let (rank, ranks) = (world.rank(), world.size());
        let mut data = self.operands::<T>(world, self.count);
        let op = self.op.reduction::<T>(rank);
        let send = data.clone();
        let result = match (self.collective, self.in_place) {
            (Collective::Reduce(root), true) => {
                world.reduce_in_place(&mut data, op, root)?;
                rank == root
            }
            (Collective::Reduce(root), false) => {
                data.fill(T::default());
                let recv = if rank == root { &mut data[..] } else { &mut [] };
                world.reduce(&send, recv, op, root)?;
                if rank != root {
                    return Ok((data.clone(), vec![T::default(); self.count]));
                }
                true
            }
            (_, true) => {
                world.all_reduce_in_place(&mut data, op)?;
                true
            }
            (_, false) => {
                data.fill(T::default());
                world.all_reduce(&send, &mut data, op)?;
                true
            }
        };
        // What is not the result was only read.
        let expected = if result {
            self.reduced(ranks, 0..self.count)
        } else {
            send
        };
        Ok((data, expected))
    }

    fn shares(&self, ranks: u32) -> Vec<usize> {
        let unequal = matches!(
            self.collective,
            Collective::AllGatherV | Collective::ReduceScatterV
        );
        let of = |r| {
            if unequal {
                share(self.count, r)
            } else {
                self.count
            }
        };
        (0..ranks).map(of).collect()
    }

    fn reduce_scatter<T: Value>(&self, world: &Communicator) -> Result<Results<T>> {
        let (rank, ranks) = (world.rank(), world.size());
        let shares = self.shares(ranks);
        let start = shares[..rank as usize].iter().sum::<usize>();
        let own = start..start + shares[rank as usize];
        let mut data = self.operands::<T>(world, shares.iter().sum());
        let mut got = vec![T::default(); own.len()];
        let op = self.op.reduction::<T>(rank);
        match (self.collective, self.in_place) {
            (Collective::ReduceScatterV, false) => {
                world.reduce_scatter_v(&data, &mut got, &shares, op)?;
            }
            (Collective::ReduceScatterV, true) => {
                world.reduce_scatter_v_in_place(&mut data, &shares, op)?;
            }
            (_, false) => world.reduce_scatter(&data, &mut got, op)?,
            (_, true) => world.reduce_scatter_in_place(&mut data, op)?,
        }
        if self.in_place {
            got = data[own.clone()].to_vec();
        }
        Ok((got, self.reduced(ranks, own)))
    }

    fn all_gather<T: Value>(&self, world: &Communicator) -> Result<Results<T>> {
        let (rank, ranks) = (world.rank(), world.size());
        let shares = self.shares(ranks);
        let mine = self.plain::<T>(world, rank, shares[rank as usize]);
        let mut all = vec![T::default(); shares.iter().sum()];
        if self.in_place {
            let start = shares[..rank as usize].iter().sum::<usize>();
            all[start..start + mine.len()].copy_from_slice(&mine);
        }
        match (self.collective, self.in_place) {
            (Collective::AllGatherV, false) => world.all_gather_v(&mine, &mut all, &shares)?,
            (Collective::AllGatherV, true) => world.all_gather_v_in_place(&mut all, &shares)?,
            (_, false) => world.all_gather(&mine, &mut all)?,
            (_, true) => world.all_gather_in_place(&mut all)?,
        }
        let of = |r: u32| self.plain::<T>(world, r, shares[r as usize]);
        Ok((all, (0..ranks).flat_map(of).collect()))
    }

    fn gather<T: Value>(&self, world: &Communicator, root: u32) -> Result<Results<T>> {
        let (rank, ranks, count) = (world.rank(), world.size(), self.count);
        let mine = self.plain::<T>(world, rank, count);
        let mut all = vec![
            T::default();
            if rank == root {
                count * ranks as usize
            } else {
                0
            }
        ];
        if self.in_place && rank == root {
            all[rank as usize * count..][..count].copy_from_slice(&mine);
            world.gather_in_place(&mut all, root)?;
        } else if self.in_place {
            world.gather_in_place(&mut mine.clone(), root)?;
        } else {
            world.gather(&mine, &mut all, root)?;
        }
        let whole = (0..ranks).flat_map(|r| self.plain(world, r, count));
        Ok((all, whole.filter(|_| rank == root).collect()))
    }

    fn scatter<T: Value>(&self, world: &Communicator, root: u32) -> Result<Results<T>> {
        let (rank, ranks, count) = (world.rank(), world.size(), self.count);
        let whole = self.plain::<T>(world, root, count * ranks as usize);
        let own = rank as usize * count..(rank as usize + 1) * count;
        let expected = whole[own.clone()].to_vec();
        let mut mine = vec![T::default(); count];
        if self.in_place && rank == root {
            let mut data = whole.clone();
            world.scatter_in_place(&mut data, root)?;
            return Ok((data, whole));
        } else if self.in_place {
            world.scatter_in_place(&mut mine, root)?;
        } else {
            let send = if rank == root { &whole[..] } else { &[] };
            world.scatter(send, &mut mine, root)?;
        }
        Ok((mine, expected))
    }

    fn broadcast<T: Value>(&self, world: &Communicator, root: u32) -> Result<Results<T>> {
        let expected = self.plain::<T>(world, root, self.count);
        let mut data = if world.rank() == root {
            expected.clone()
        } else {
            vec![T::default(); self.count]
        };
        world.broadcast(&mut data, root)?;
        Ok((data, expected))
    }

    fn all_to_all<T: Value>(&self, world: &Communicator) -> Result<Results<T>> {
        let (rank, ranks, count) = (world.rank(), world.size(), self.count);
        let whole = count * ranks as usize;
        let mut data = self.plain::<T>(world, rank, whole);
        if self.in_place {
            world.all_to_all_in_place(&mut data)?;
        } else {
            let send = data.clone();
            world.all_to_all(&send, &mut data)?;
        }
        let own = rank as usize * count..(rank as usize + 1) * count;
        let of = |r: u32| self.plain::<T>(world, r, whole)[own.clone()].to_vec();
        Ok((data, (0..ranks).flat_map(of).collect()))
    }

    fn all_to_all_v<T: Value>(&self, world: &Communicator) -> Result<Results<T>> {
        let (rank, ranks) = (world.rank(), world.size());
        let row = |r: u32| -> Vec<usize> { (0..ranks).map(|to| sent(self.count, r, to)).collect() };
        let from: Vec<usize> = (0..ranks).map(|r| sent(self.count, r, rank)).collect();
        let whole = |r: u32| self.plain::<T>(world, r, row(r).iter().sum());
        let mut recv = vec![T::default(); from.iter().sum()];
        world.all_to_all_v(&whole(rank), &row(rank), &mut recv, &from)?;
        let of = |r: u32| {
            let start = row(r)[..rank as usize].iter().sum::<usize>();
            whole(r)[start..start + from[r as usize]].to_vec()
        };
        Ok((recv, (0..ranks).flat_map(of).collect()))
    }

    /// [`Try::run`] with the type given as a value.
    ///
    /// # Errors
    /// As there.
    pub fn run_as(&self, world: &Communicator, dtype: DataType) -> Result<Result<(), String>> {
        match dtype {
            DataType::I8 => self.run::<i8>(world),
            DataType::U8 => self.run::<u8>(world),
            DataType::I16 => self.run::<i16>(world),
            DataType::U16 => self.run::<u16>(world),
            DataType::I32 => self.run::<i32>(world),
            DataType::U32 => self.run::<u32>(world),
            DataType::I64 => self.run::<i64>(world),
            DataType::U64 => self.run::<u64>(world),
            DataType::F16 => self.run::<f16>(world),
            DataType::Bf16 => self.run::<bf16>(world),
            DataType::F32 => self.run::<f32>(world),
            DataType::F64 => self.run::<f64>(world),
            DataType::F8E4M3 => self.run::<F8E4M3>(world),
            DataType::F8E5M2 => self.run::<F8E5M2>(world),
        }
    }
}
