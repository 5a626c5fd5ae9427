//! REDUCE, SCALE and CALL, and that `supports` tells the truth.

mod call;
mod operands;
mod reference;
mod scale;

use unisono_abi::{command_kind, dtype, reduction};
use unisono_hal::{Batch, Device, Place, Queue, Reduce, Status, Stream, SupportQuery};

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::store::Store;
use operands::operands;
use reference::{is_right, size};

const G: &str = "reduce";
const SAYS: &str = "Each reduction that `supports` claims gives what a plain reference gives.";

macro_rules! types {
    ($($name:literal $dtype:ident;)+) => {
        pub(super) const CHECKS: &[Check] = &[
            $(Check::one(G, $name, SAYS, |case| all(case, dtype::$dtype)),)+
            Check::one(G, "strided", "Pieces are reduced at their strides.", strided),
            Check::one(G, "in_place", "The result may be written over an operand.", in_place),
            Check::one(G, "order", "A reduction sees the commands before it.", order),
            Check::one(G, "scale", "SCALE multiplies as PROD does, where it is claimed.", scale::scale),
            Check::one(G, "call", "CALL calls for each element once, in order, where it is claimed.", call::call),
        ];
    };
}
types! {
    "i8" I8; "u8" U8; "i16" I16; "u16" U16; "i32" I32; "u32" U32; "i64" I64; "u64" U64;
    "f16" F16; "bf16" BF16; "f32" F32; "f64" F64; "f8e4m3fn" F8E4M3FN; "f8e5m2" F8E5M2;
}

/// Every reduction.
pub(super) const OPS: [u16; 7] = [
    reduction::SUM,
    reduction::PROD,
    reduction::MIN,
    reduction::MAX,
    reduction::AND,
    reduction::OR,
    reduction::XOR,
];

/// Whether `supports` says that the device's streams do it on their own memory.
pub(super) fn claims(device: &Device, dtype: u16, reduction: u16) -> bool {
    device.supports(&SupportQuery {
        command: command_kind::REDUCE,
        dtype,
        reduction,
        source: Place::Device,
        destination: Place::Device,
    })
}

fn whole(dst: u64, a: u64, b: u64, elements: u64, dtype: u16, reduction: u16) -> Reduce {
    Reduce {
        dst,
        a,
        b,
        elements,
        repeat: 1,
        dst_stride: 0,
        a_stride: 0,
        b_stride: 0,
        dtype,
        reduction,
        divisor: 0,
        streaming: false,
    }
}

fn one(reduce: &Reduce) -> Batch {
    let mut batch = queue::batch();
    batch.reduce(reduce);
    batch
}

/// Operands of a type, and a place for what becomes of them.
pub(super) struct Fixture {
    device: Device,
    stream: Stream,
    dtype: u16,
    pairs: Vec<(u64, u64)>,
    a: Store,
    b: Store,
    pub(super) dst: Store,
}

impl Fixture {
    pub(super) fn new(device: &Device, dtype: u16) -> Checked<Self> {
        let (pairs, size) = (operands(dtype), size(dtype));
        let bytes = ((pairs.len() + 2) * size) as u64;
        let make = || Store::new(device, bytes);
        let fixture = Self {
            device: device.clone(),
            stream: device.stream(0)?,
            dtype,
            a: make()?,
            b: make()?,
            dst: make()?,
            pairs,
        };
        fixture.fill()?;
        Ok(fixture)
    }

    /// Bytes of an element.
    pub(super) fn element_bytes(&self) -> u64 {
        size(self.dtype) as u64
    }

    /// Operands start one element in, so that vector loops meet an odd address.
    fn fill(&self) -> Checked {
        let size = size(self.dtype);
        let pack = |take: fn(&(u64, u64)) -> u64| -> Vec<u8> {
            let words = self.pairs.iter().map(take);
            words
                .flat_map(|word| word.to_le_bytes().into_iter().take(size))
                .collect()
        };
        self.a.write(size as u64, &pack(|pair| pair.0))?;
        self.b.write(size as u64, &pack(|pair| pair.1))
    }

    fn compare(&self, store: &Store, op: u16, divisor: u32) -> Checked {
        let size = size(self.dtype);
        let bytes = store.read(size as u64, (self.pairs.len() * size) as u64)?;
        for (found, (a, b)) in bytes.chunks_exact(size).zip(&self.pairs) {
            let mut word = [0; 8];
            word[..size].copy_from_slice(found);
            let found = u64::from_le_bytes(word);
            let wanted = reference::reduce(self.dtype, op, *a, *b, divisor);
            ensure!(
                is_right(self.dtype, wanted, found),
                "reduction {op} of type {}: {a:#x} and {b:#x}, divided by {divisor}, give \
                 {found:#x}, not {wanted:x?}",
                self.dtype
            );
        }
        Ok(())
    }

    pub(super) fn command(&self, op: u16) -> Reduce {
        let offset = size(self.dtype) as u64;
        whole(
            self.dst.at() + offset,
            self.a.at() + offset,
            self.b.at() + offset,
            self.pairs.len() as u64,
            self.dtype,
            op,
        )
    }

    /// Clears the result's place, or puts an operand there: the first or the second.
    pub(super) fn prepare(&self, is_there: [bool; 2]) -> Checked {
        let bytes = self.dst.memory().len();
        let contents = match is_there {
            [true, _] => self.a.read(0, bytes)?,
            [_, true] => self.b.read(0, bytes)?,
            _ => vec![0x5a; bytes as usize],
        };
        self.dst.write(0, &contents)
    }

    pub(super) fn run(&mut self, reduce: &Reduce) -> Checked {
        queue::run(&mut self.stream, &mut one(reduce))
    }
}

fn all(case: &Case, dtype: u16) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let mut fixture = Fixture::new(&device, dtype)?;
    let mut claimed = 0;
    for op in OPS {
        let mut reduce = fixture.command(op);
        if !claims(&device, dtype, op) {
            let mut stream = fixture.device.stream(0)?;
            let what = format!("reduction {op} of type {dtype}, to which `supports` says no,");
            let answer = stream.submit(&mut one(&reduce));
            refused(&what, answer, &[Status::Unsupported])?;
            continue;
        }
        claimed += 1;
        for divisor in [0, 1, 3, 8] {
            reduce.divisor = divisor;
            reduce.streaming = divisor == 3;
            fixture.run(&reduce).map_err(|stop| match stop {
                Stop::Unsupported(what) => Stop::failed(format!(
                    "`supports` claims reduction {op} of type {dtype}, and: {what}"
                )),
                failed => failed,
            })?;
            fixture.compare(&fixture.dst, op, divisor)?;
        }
    }
    if claimed == 0 {
        return Err(Stop::unsupported(
            "`supports` says no to every reduction of this type",
        ));
    }
    Ok(())
}

/// Some type and reduction that the device claims: small integers before floats.
fn some(case: &Case) -> Checked<(Device, u16, u16)> {
    let device = case.streams(command_kind::COPY)?;
    for dtype in [
        dtype::I32,
        dtype::F32,
        dtype::I64,
        dtype::F64,
        dtype::F16,
        dtype::BF16,
        dtype::U8,
    ] {
        if claims(&device, dtype, reduction::SUM) {
            return Ok((device, dtype, reduction::SUM));
        }
    }
    Err(Stop::unsupported("`supports` claims no sum"))
}

fn strided(case: &Case) -> Checked {
    let (device, dtype, op) = some(case)?;
    let mut fixture = Fixture::new(&device, dtype)?;
    let size = size(dtype) as u64;
    for (elements, dst_stride, a_stride, b_stride) in
        [(1, 3, 5, 2), (7, 11, 7, 9), (64, 64, 100, 64)]
    {
        let repeat = 10;
        fixture
            .dst
            .write(0, &vec![0; fixture.dst.memory().len() as usize])?;
        let mut reduce = fixture.command(op);
        reduce.elements = elements;
        reduce.repeat = repeat;
        reduce.dst_stride = dst_stride * size;
        reduce.a_stride = a_stride * size;
        reduce.b_stride = b_stride * size;
        fixture.run(&reduce)?;
        let found = fixture.dst.read(size, repeat * dst_stride * size)?;
        for (index, bytes) in (0..).zip(found.chunks_exact(size as usize)) {
            let (piece, at) = (index / dst_stride, index % dst_stride);
            let mut word = [0; 8];
            word[..size as usize].copy_from_slice(bytes);
            let found = u64::from_le_bytes(word);
            if at >= elements {
                ensure!(found == 0, "between the pieces element {index} was written");
                continue;
            }
            let a = fixture.pairs[(piece * a_stride + at) as usize].0;
            let b = fixture.pairs[(piece * b_stride + at) as usize].1;
            let wanted = reference::reduce(dtype, op, a, b, 0);
            ensure!(
                is_right(dtype, wanted, found),
                "element {at} of piece {piece} is wrong"
            );
        }
    }
    Ok(())
}

fn in_place(case: &Case) -> Checked {
    let (device, dtype, op) = some(case)?;
    let mut fixture = Fixture::new(&device, dtype)?;
    for over_a in [true, false] {
        fixture.fill()?;
        let mut reduce = fixture.command(op);
        reduce.dst = if over_a { reduce.a } else { reduce.b };
        fixture.run(&reduce)?;
        let result = if over_a { &fixture.a } else { &fixture.b };
        fixture.compare(result, op, 0)?;
    }
    Ok(())
}

fn order(case: &Case) -> Checked {
    let (device, dtype, op) = some(case)?;
    let mut fixture = Fixture::new(&device, dtype)?;
    let bytes = (fixture.pairs.len() * size(dtype)) as u64;
    let offset = size(dtype) as u64;
    let other = Store::new(&device, bytes + 2 * offset)?;
    let mut batch = queue::batch();
    batch.copy(other.at() + offset, fixture.a.at() + offset, bytes);
    let mut reduce = fixture.command(op);
    reduce.a = other.at() + offset;
    batch.reduce(&reduce);
    batch.copy(other.at() + offset, fixture.dst.at() + offset, bytes);
    queue::run(&mut fixture.stream, &mut batch)?;
    fixture.compare(&other, op, 0)
}
