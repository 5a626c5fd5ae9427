//! What makes a command sane: everything that can be said of it without its device.

use unisono_abi::{
    CMD_STREAMING, CMD_WORDS, Command as Head, CommandCall, CommandCopy, CommandEvent, CommandPut,
    CommandRead, CommandReduce, CommandScale, CommandSignal, CommandWait, command_kind as kind,
    dtype, reduction,
};

use super::Kinds;
use crate::{Error, Result};

/// The head of a command from its first word.
pub const fn head(first: u64) -> Head {
    let b = first.to_ne_bytes();
    Head {
        kind: u16::from_ne_bytes([b[0], b[1]]),
        size: u16::from_ne_bytes([b[2], b[3]]),
        flags: u32::from_ne_bytes([b[4], b[5], b[6], b[7]]),
    }
}

/// Why a command is refused; made into words only when it is.
pub enum Problem {
    Unsupported(&'static str, u64),
    Invalid(&'static str, u64),
}

impl Problem {
    #[cold]
    pub fn at(&self, index: u32, count: u32) -> Error {
        match self {
            Self::Unsupported(what, value) => Error::unsupported(format!(
                "command {index} of {count}: this queue knows no {what} {value:#x}"
            )),
            Self::Invalid(what, value) => {
                Error::invalid(format!("command {index} of {count}: {what} ({value:#x})"))
            }
        }
    }
}

/// Checks the first command of `rest`; its length in words.
#[inline]
pub fn check(rest: &[u64], kinds: Kinds) -> Result<usize, Problem> {
    let Some(&first) = rest.first() else {
        return Err(Problem::Invalid("the batch ends before it", 0));
    };
    let head = head(first);
    if !kinds.has(head.kind) {
        return Err(Problem::Unsupported("command kind", head.kind.into()));
    }
    let (least, flags) = match head.kind {
        kind::COPY => (size_of::<CommandCopy>(), CMD_STREAMING),
        kind::REDUCE => (size_of::<CommandReduce>(), CMD_STREAMING),
        kind::SIGNAL => (size_of::<CommandSignal>(), CMD_WORDS),
        kind::WAIT => (size_of::<CommandWait>(), CMD_WORDS),
        kind::PUT => (size_of::<CommandPut>(), CMD_WORDS),
        kind::SCALE => (size_of::<CommandScale>(), CMD_STREAMING),
        kind::CALL => (size_of::<CommandCall>(), 0),
        kind::READ => (size_of::<CommandRead>(), 0),
        _ => (size_of::<CommandEvent>(), 0),
    };
    let size = usize::from(head.size);
    if size < least || !size.is_multiple_of(8) || size / 8 > rest.len() {
        return Err(Problem::Invalid("its size is wrong", size as u64));
    }
    if head.flags & !flags != 0 {
        return Err(Problem::Unsupported("command flags", head.flags.into()));
    }
    let at = rest.as_ptr();
    // SAFETY: `rest` holds `size` bytes, at least the struct of this kind, aligned as u64; the
    // structs are plain integers (and a pointer that is not followed), valid for any bits.
    unsafe {
        match head.kind {
            kind::COPY => check_copy(&*at.cast()),
            kind::REDUCE => check_reduce(&*at.cast()),
            kind::SIGNAL => {
                let c: &CommandSignal = &*at.cast();
                check_flag(c.flag).and_then(|()| check_counter(c.counter))
            }
            kind::WAIT => {
                let c: &CommandWait = &*at.cast();
                check_flag(c.flag).and_then(|()| check_counter(c.counter))
            }
            kind::PUT => check_put(&*at.cast()),
            kind::SCALE => check_scale(&*at.cast()),
            kind::CALL => check_call(&*at.cast()),
            kind::READ => check_read(&*at.cast()),
            _ if (*at.cast::<CommandEvent>()).event.0.is_null() => {
                Err(Problem::Invalid("its event is NULL", 0))
            }
            _ => Ok(()),
        }?;
    }
    Ok(size / 8)
}

fn check_copy(c: &CommandCopy) -> Result<(), Problem> {
    check_extent(c.dst, c.bytes, c.repeat, c.dst_stride)?;
    check_extent(c.src, c.bytes, c.repeat, c.src_stride)
}

fn check_reduce(c: &CommandReduce) -> Result<(), Problem> {
    let float = c.dtype >= dtype::F16;
    match c.reduction {
        reduction::SUM | reduction::PROD | reduction::MIN | reduction::MAX => {}
        reduction::AND | reduction::OR | reduction::XOR if !float => {}
        other => return Err(Problem::Unsupported("reduction of this type", other.into())),
    }
    let bytes = bytes_of(c.elements, width(c.dtype)?)?;
    check_extent(c.dst, bytes, c.repeat, c.dst_stride)?;
    check_extent(c.a, bytes, c.repeat, c.a_stride)?;
    check_extent(c.b, bytes, c.repeat, c.b_stride)
}

fn check_scale(c: &CommandScale) -> Result<(), Problem> {
    let bytes = bytes_of(c.elements, width(c.dtype)?)?;
    check_extent(c.dst, bytes, c.repeat, c.dst_stride)?;
    check_extent(c.src, bytes, c.repeat, c.src_stride)
}

fn check_call(c: &CommandCall) -> Result<(), Problem> {
    if c.function == 0 {
        return Err(Problem::Invalid("its function is NULL", 0));
    }
    if c.element_bytes == 0 {
        return Err(Problem::Invalid("its elements have no bytes", 0));
    }
    let bytes = bytes_of(c.elements, c.element_bytes)?;
    [c.dst, c.a, c.b]
        .into_iter()
        .try_for_each(|base| check_extent(base, bytes, 1, 0))
}

fn check_read(c: &CommandRead) -> Result<(), Problem> {
    if c.process == 0 {
        return Err(Problem::Invalid("it names no process", 0));
    }
    if c.base == 0 || !c.base.is_multiple_of(8) {
        return Err(Problem::Invalid(
            "its base is NULL or not aligned to 8",
            c.base,
        ));
    }
    check_extent(c.dst, c.bytes, 1, 0)
}

/// Bytes of an element.
fn width(dtype: u16) -> Result<u64, Problem> {
    Ok(match dtype {
        dtype::I8 | dtype::U8 | dtype::F8E4M3FN | dtype::F8E5M2 => 1,
        dtype::I16 | dtype::U16 | dtype::F16 | dtype::BF16 => 2,
        dtype::I32 | dtype::U32 | dtype::F32 => 4,
        dtype::I64 | dtype::U64 | dtype::F64 => 8,
        other => return Err(Problem::Unsupported("data type", other.into())),
    })
}

fn bytes_of(elements: u64, width: u64) -> Result<u64, Problem> {
    elements
        .checked_mul(width)
        .ok_or(Problem::Invalid("its extent wraps", elements))
}

fn check_put(c: &CommandPut) -> Result<(), Problem> {
    check_extent(c.src, c.bytes, c.repeat, c.src_stride)?;
    if c.bytes
        .checked_mul(c.repeat)
        .and_then(|all| c.dst_offset.checked_add(all))
        .is_none()
    {
        return Err(Problem::Invalid(
            "its extent at the peer wraps",
            c.dst_offset,
        ));
    }
    if (c.done_flag == 0) != (c.done_counter == 0) {
        return Err(Problem::Invalid(
            "it has one of done_flag and done_counter",
            c.done_flag,
        ));
    }
    if c.done_flag != 0 {
        check_flag(c.done_flag)?;
        check_counter(c.done_counter)?;
    }
    Ok(())
}

fn check_extent(base: u64, bytes: u64, repeat: u64, stride: u64) -> Result<(), Problem> {
    if repeat == 0 {
        return Err(Problem::Invalid("repeat is 0", 0));
    }
    (repeat - 1)
        .checked_mul(stride)
        .and_then(|last| last.checked_add(bytes))
        .and_then(|len| base.checked_add(len))
        .map(|_| ())
        .ok_or(Problem::Invalid("its extent wraps", base))
}

fn check_flag(flag: u64) -> Result<(), Problem> {
    if flag == 0 || !flag.is_multiple_of(64) {
        return Err(Problem::Invalid(
            "its flag line is NULL or not aligned to 64",
            flag,
        ));
    }
    Ok(())
}

fn check_counter(counter: u64) -> Result<(), Problem> {
    if counter == 0 || !counter.is_multiple_of(8) {
        return Err(Problem::Invalid(
            "its counter is NULL or not aligned to 8",
            counter,
        ));
    }
    Ok(())
}
