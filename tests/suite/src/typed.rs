//! Test data of every type, with values whose sums and products are exact, so that every order of
//! reduction gives the same bits.

use half::{bf16, f16};
use unisono::{Communicator, DataType, Element, ReduceOp, Result};

/// An element that tests can make and compare.
pub trait Value: Element + PartialEq + std::fmt::Debug + Default {
    /// From a small whole number.
    fn of(number: i64) -> Self;
    /// `self op other`, as the library defines it.
    fn fold(self, other: Self, op: ReduceOp) -> Self;
    /// Divided by a number of ranks, for avg.
    fn over(self, ranks: u32) -> Self;
}

macro_rules! integers {
    ($($t:ty),+) => {$(
        impl Value for $t {
            fn of(number: i64) -> Self { number as Self }
            fn fold(self, other: Self, op: ReduceOp) -> Self {
                match op {
                    ReduceOp::Sum | ReduceOp::Avg => self.wrapping_add(other),
                    ReduceOp::Prod => self.wrapping_mul(other),
                    ReduceOp::Min => self.min(other),
                    ReduceOp::Max => self.max(other),
                }
            }
            fn over(self, ranks: u32) -> Self { ((self as i128) / i128::from(ranks)) as Self }
        }
    )+};
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! floats {
    ($($t:ty: $wide:ty, $from:expr, $to:expr);+ $(;)?) => {$(
        impl Value for $t {
            fn of(number: i64) -> Self { $from(number as $wide) }
            fn fold(self, other: Self, op: ReduceOp) -> Self {
                let (a, b): ($wide, $wide) = ($to(self), $to(other));
                $from(match op {
                    ReduceOp::Sum | ReduceOp::Avg => a + b,
                    ReduceOp::Prod => a * b,
                    ReduceOp::Min => a.min(b),
                    ReduceOp::Max => a.max(b),
                })
            }
            fn over(self, ranks: u32) -> Self { $from($to(self) / ranks as $wide) }
        }
    )+};
}
floats! {
    f32: f32, |x| x, |x| x;
    f64: f64, |x| x, |x| x;
    f16: f32, f16::from_f32, f16::to_f32;
    bf16: f32, bf16::from_f32, bf16::to_f32;
}

/// The element at `index` that `rank` contributes: small, so that sums over 64 ranks are exact in
/// every type, and products too (ones and twos, few of them).
pub fn input<T: Value>(rank: u32, index: usize, salt: u64, op: Option<ReduceOp>) -> T {
    let spread = (index as u64)
        .wrapping_mul(31)
        .wrapping_add(u64::from(rank) * 7)
        .wrapping_add(salt);
    match op {
        Some(ReduceOp::Prod) => T::of(1 + i64::from(rank < 3 && spread.is_multiple_of(3))),
        _ => T::of((spread % 4) as i64),
    }
}

/// What a reduction over `ranks` gives at `index`, folded in rank order.
pub fn reduced<T: Value>(ranks: u32, index: usize, salt: u64, op: ReduceOp) -> T {
    let fold = |sum: T, rank| sum.fold(input(rank, index, salt, Some(op)), op);
    let sum = (1..ranks).fold(input(0, index, salt, Some(op)), fold);
    if op == ReduceOp::Avg && ranks > 1 {
        sum.over(ranks)
    } else {
        sum
    }
}

/// A collective to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// As their names say.
    AllReduce,
    /// As their names say.
    ReduceScatter,
    /// As their names say.
    AllGather,
    /// From this root.
    Broadcast(u32),
}

/// One try: the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Try {
    /// What to call.
    pub collective: Collective,
    /// Elements of one rank's share (all_gather, reduce_scatter) or of the message.
    pub count: usize,
    /// How to reduce.
    pub op: ReduceOp,
    /// Whether in place.
    pub in_place: bool,
    /// Varies the values.
    pub salt: u64,
}

impl Try {
    /// Calls it and compares every element; the error says what differs.
    ///
    /// # Errors
    /// Wrong elements, as text.
    pub fn run<T: Value>(&self, world: &Communicator) -> Result<Result<(), String>> {
        let (rank, ranks) = (world.rank(), world.size());
        let Self {
            count, op, salt, ..
        } = *self;
        let reduces = Some(op);
        let fill =
            |rank, n: usize, op| -> Vec<T> { (0..n).map(|i| input(rank, i, salt, op)).collect() };
        let (got, expected): (Vec<T>, Vec<T>) = match self.collective {
            Collective::AllReduce => {
                let mut data = fill(rank, count, reduces);
                if self.in_place {
                    world.all_reduce_in_place(&mut data, op)?;
                } else {
                    let send = data.clone();
                    data.fill(T::default());
                    world.all_reduce(&send, &mut data, op)?;
                }
                let expected = (0..count).map(|i| reduced(ranks, i, salt, op)).collect();
                (data, expected)
            }
            Collective::ReduceScatter => {
                let mut data = fill(rank, count * ranks as usize, reduces);
                let own = rank as usize * count..(rank as usize + 1) * count;
                let got = if self.in_place {
                    world.reduce_scatter_in_place(&mut data, op)?;
                    data[own.clone()].to_vec()
                } else {
                    let mut got = vec![T::default(); count];
                    world.reduce_scatter(&data, &mut got, op)?;
                    got
                };
                (got, own.map(|i| reduced(ranks, i, salt, op)).collect())
            }
            Collective::AllGather => {
                let mine = fill(rank, count, None);
                let mut all = vec![T::default(); count * ranks as usize];
                if self.in_place {
                    all[rank as usize * count..][..count].copy_from_slice(&mine);
                    world.all_gather_in_place(&mut all)?;
                } else {
                    world.all_gather(&mine, &mut all)?;
                }
                let expected = (0..ranks).flat_map(|r| fill(r, count, None)).collect();
                (all, expected)
            }
            Collective::Broadcast(root) => {
                let mut data = if rank == root {
                    fill(root, count, None)
                } else {
                    vec![T::default(); count]
                };
                world.broadcast(&mut data, root)?;
                (data, fill(root, count, None))
            }
        };
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
        }
    }
}
