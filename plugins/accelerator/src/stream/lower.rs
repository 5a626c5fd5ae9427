//! What a command needs to be handed over, checked before any command of its batch is taken.

use unisono_plugin::abi::{
    CommandCopy, CommandReduce, CommandScale, CommandSignal, CommandWait, FlagLine, dtype,
};
use unisono_plugin::{Error, MemoryView, Result};

use super::AcceleratorStream;
use crate::Runtime;

/// Bytes of an element, 0 if the type is unknown.
pub(super) const fn size(of: u16) -> u64 {
    match of {
        dtype::I8 | dtype::U8 | dtype::F8E4M3FN | dtype::F8E5M2 => 1,
        dtype::I16 | dtype::U16 | dtype::F16 | dtype::BF16 => 2,
        dtype::I32 | dtype::U32 | dtype::F32 => 4,
        dtype::I64 | dtype::U64 | dtype::F64 => 8,
        _ => 0,
    }
}

/// Whether two ranges of the same length overlap without being the same.
const fn partly_overlap(a: u64, b: u64, bytes: u64) -> bool {
    a != b && a.abs_diff(b) < bytes
}

fn overlap(what: &str, a: u64, b: u64, bytes: u64) -> Error {
    Error::invalid(format!(
        "{what}: {bytes} bytes at {a:#x} and {b:#x} overlap in part"
    ))
}

impl<R: Runtime> AcceleratorStream<R> {
    /// Memory around a range that the device reaches.
    fn reachable(&mut self, what: &str, address: u64, bytes: u64) -> Result<MemoryView> {
        let process = self.device.process();
        if let Some(view) = self.recent.find(&process.regions, address, bytes) {
            self.named.push((view.base, view.generation));
            return Ok(view);
        }
        let foreign = self.device.runtime.foreign(address)?;
        let found = foreign.map(|foreign| foreign.view).filter(|view| {
            let offset = address.wrapping_sub(view.base);
            offset < view.bytes && bytes <= view.bytes - offset
        });
        self.named
            .extend(found.map(|view| (view.base, view.generation)));
        found.ok_or_else(|| {
            Error::invalid(format!(
                "{what}: {bytes} bytes at {address:#x} are neither memory of a device nor pinned: \
                 allocate or register them, or copy through staging memory"
            ))
        })
    }

    /// Where the CPU sees a range.
    fn host(&mut self, what: &str, address: u64, bytes: u64) -> Result<u64> {
        let view = self.reachable(what, address, bytes)?;
        if view.host == 0 {
            return Err(Error::invalid(format!(
                "{what} at {address:#x} lies where the processor cannot see it: flags that are \
                 waited for and counters belong to signal memory"
            )));
        }
        Ok(view.host + (address - view.base))
    }

    fn pieces(
        &mut self,
        what: &str,
        address: u64,
        bytes: u64,
        repeat: u64,
        stride: u64,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // The batch was checked: this does not wrap.
        let length = (repeat - 1) * stride + bytes;
        self.reachable(what, address, length).map(|_| ())
    }

    pub(super) fn check_copy(&mut self, command: &CommandCopy) -> Result<()> {
        let &CommandCopy {
            dst,
            src,
            bytes,
            repeat,
            dst_stride,
            src_stride,
            ..
        } = command;
        if partly_overlap(dst, src, bytes) {
            return Err(overlap("COPY", dst, src, bytes));
        }
        self.pieces("COPY to", dst, bytes, repeat, dst_stride)?;
        self.pieces("COPY from", src, bytes, repeat, src_stride)
    }

    pub(super) fn check_reduce(&mut self, command: &CommandReduce) -> Result<()> {
        let &CommandReduce {
            dst,
            a,
            b,
            elements,
            repeat,
            dst_stride,
            a_stride,
            b_stride,
            dtype,
            reduction,
            ..
        } = command;
        if !self.device.runtime.reduces(dtype, reduction) {
            return Err(Error::unsupported(format!(
                "this device has no reduction {reduction} of type {dtype}"
            )));
        }
        let bytes = elements * size(dtype);
        for operand in [a, b] {
            if partly_overlap(dst, operand, bytes) {
                return Err(overlap("REDUCE", dst, operand, bytes));
            }
        }
        self.pieces("REDUCE to", dst, bytes, repeat, dst_stride)?;
        self.pieces("REDUCE from", a, bytes, repeat, a_stride)?;
        self.pieces("REDUCE from", b, bytes, repeat, b_stride)
    }

    pub(super) fn check_scale(&mut self, command: &CommandScale) -> Result<()> {
        let &CommandScale {
            dst,
            src,
            elements,
            repeat,
            dst_stride,
            src_stride,
            dtype,
            ..
        } = command;
        if !self.device.runtime.scales(dtype) {
            return Err(Error::unsupported(format!(
                "this device does not scale type {dtype}"
            )));
        }
        let bytes = elements * size(dtype);
        if partly_overlap(dst, src, bytes) {
            return Err(overlap("SCALE", dst, src, bytes));
        }
        self.pieces("SCALE to", dst, bytes, repeat, dst_stride)?;
        self.pieces("SCALE from", src, bytes, repeat, src_stride)
    }

    pub(super) fn check_signal(&mut self, command: &CommandSignal) -> Result<()> {
        let line = size_of::<FlagLine>() as u64;
        self.reachable("SIGNAL of a flag", command.flag, line)?;
        self.host("SIGNAL's counter", command.counter, 16)?;
        if command.bell != 0 {
            return Err(Error::unsupported("this device rings no bells"));
        }
        Ok(())
    }

    pub(super) fn check_wait(&mut self, command: &CommandWait) -> Result<()> {
        let line = size_of::<FlagLine>() as u64;
        self.host("WAIT's flag", command.flag, line)?;
        self.host("WAIT's counter", command.counter, 16)?;
        Ok(())
    }

    /// Where the CPU sees a word that was checked.
    pub(super) fn host_of(&mut self, address: u64) -> Result<u64> {
        self.host("a flag or counter", address, 16)
    }
}
