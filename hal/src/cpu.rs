//! Devices that are the CPU: what the calling thread may do by itself.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use std::ffi::c_void;
use std::mem::offset_of;

use unisono_abi as abi;

use crate::error::call_done;
use crate::{Device, DeviceKind, Instance, Reduce, Result};

type Ring = unsafe extern "C" fn(abi::Instance, *const u64, u32);
type ReduceFn = unsafe extern "C" fn(abi::Instance, *const abi::CommandReduce) -> abi::Status;
type CombinerFn = unsafe extern "C" fn(
    abi::Instance,
    u16,
    u16,
    *mut Option<abi::Combine>,
    *mut *mut c_void,
) -> abi::Status;

/// The functions of a table, if it has those of 1.2; the last came with 1.9.
///
/// # Safety
/// It is as large as it says, and says that in its first field.
unsafe fn functions(table: *const abi::CpuTable) -> Option<(Ring, ReduceFn, Option<CombinerFn>)> {
    let until_1_8 = offset_of!(abi::CpuTable, combiner);
    // SAFETY: the caller's promise; no field is read that ends behind the size that it says.
    unsafe {
        let size = (&raw const (*table).struct_size).read() as usize;
        if size < until_1_8 {
            return None;
        }
        let combiner = match size >= until_1_8 + size_of::<Option<CombinerFn>>() {
            true => (&raw const (*table).combiner).read(),
            false => None,
        };
        let ring = (&raw const (*table).ring).read()?;
        Some((ring, (&raw const (*table).reduce).read()?, combiner))
    }
}

/// What a plugin lets any thread do at once on its CPU devices, beside their streams.
#[derive(Clone)]
pub struct Cpu {
    instance: Instance,
    ring: Ring,
    reduce: ReduceFn,
    /// Of plugins since 1.9.
    combiner: Option<CombinerFn>,
}

impl Cpu {
    /// Of a device that is the CPU, has plain memory, and whose plugin offers it.
    #[must_use]
    pub fn of(device: &Device) -> Option<Self> {
        let info = device.info();
        if info.kind != DeviceKind::Cpu || !info.reaches(abi::reach::HOST) {
            return None;
        }
        let instance = device.instance();
        let table = instance
            .interface(abi::CPU_INTERFACE)?
            .cast::<abi::CpuTable>();
        // SAFETY: the contract says what lies at an interface of this name, and that it lives as long as the process.
        let (ring, reduce, combiner) = unsafe { functions(table.as_ptr()) }?;
        Some(Self {
            instance: instance.clone(),
            ring,
            reduce,
            combiner,
        })
    }

    /// After flags were raised by plain stores: wakes whom SIGNALs with these bells would wake.
    ///
    /// # Safety
    /// Each is the base of bell memory that the device owns or imported, and that is not freed.
    #[inline]
    pub unsafe fn ring(&self, bells: &[u64]) {
        // SAFETY: the instance is live; the caller's promise.
        unsafe { (self.ring)(self.instance.raw(), bells.as_ptr(), bells.len() as u32) }
    }

    /// What a REDUCE does, at once on this thread.
    ///
    /// # Errors
    /// If the plugin cannot; it then did nothing.
    ///
    /// # Safety
    /// As for a REDUCE in a [`Batch`](crate::Batch).
    #[inline]
    pub unsafe fn reduce(&self, r: &Reduce) -> Result<()> {
        let command = abi::CommandReduce {
            head: abi::Command {
                kind: abi::command_kind::REDUCE,
                size: size_of::<abi::CommandReduce>() as u16,
                flags: if r.streaming { abi::CMD_STREAMING } else { 0 },
            },
            dst: r.dst,
            a: r.a,
            b: r.b,
            elements: r.elements,
            repeat: r.repeat,
            dst_stride: r.dst_stride,
            a_stride: r.a_stride,
            b_stride: r.b_stride,
            dtype: r.dtype,
            reduction: r.reduction,
            divisor: r.divisor,
        };
        // SAFETY: the instance is live; the caller's promise.
        let status = unsafe { (self.reduce)(self.instance.raw(), &raw const command) };
        if status == abi::status::OK {
            return Ok(());
        }
        // No record of an error comes with it: only its status is known.
        call_done(self.instance.data().name, "cpu.reduce", |_| status)
    }

    /// What a REDUCE of this type and reduction, by their numbers in the contract, does with one run of elements, to be called
    /// without a command for each. `None` where the plugin has no such function: before 1.9 none has. Any thread.
    #[must_use]
    pub fn combiner(&self, dtype: u16, reduction: u16) -> Option<Combiner> {
        let (mut function, mut context) = (None, std::ptr::null_mut());
        // SAFETY: the instance is live; both places are good.
        let status = unsafe {
            (self.combiner?)(
                self.instance.raw(),
                dtype,
                reduction,
                &raw mut function,
                &raw mut context,
            )
        };
        let function = function.filter(|_| status == abi::status::OK)?;
        Some(Combiner {
            function,
            context,
            _instance: self.instance.clone(),
        })
    }
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cpu").finish_non_exhaustive()
    }
}

/// A reduction of one type, as a function of the plugin's. Any thread may call it.
pub struct Combiner {
    function: abi::Combine,
    context: *mut c_void,
    /// The function is good for as long as this lives.
    _instance: Instance,
}

// SAFETY: the contract lets any thread call the function, with this context, as often as there are calls.
unsafe impl Send for Combiner {}
// SAFETY: as above.
unsafe impl Sync for Combiner {}

impl Combiner {
    /// `dst[i] = a[i] combined with b[i]`, of so many elements, with the bits of a REDUCE.
    ///
    /// # Safety
    /// As for a REDUCE in a [`Batch`](crate::Batch).
    #[inline]
    pub unsafe fn combine(&self, dst: u64, a: u64, b: u64, elements: u64) {
        let place = |address: u64| address as usize as *mut c_void;
        // SAFETY: the instance lives; the caller's promise.
        unsafe {
            (self.function)(
                self.context,
                place(dst),
                place(a).cast_const(),
                place(b).cast_const(),
                elements,
            );
        }
    }
}

impl std::fmt::Debug for Combiner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Combiner").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn ring(_: abi::Instance, _: *const u64, _: u32) {}

    unsafe extern "C" fn reduce(_: abi::Instance, _: *const abi::CommandReduce) -> abi::Status {
        abi::status::UNSUPPORTED
    }

    unsafe extern "C" fn combiner(
        _: abi::Instance,
        _: u16,
        _: u16,
        _: *mut Option<abi::Combine>,
        _: *mut *mut c_void,
    ) -> abi::Status {
        abi::status::UNSUPPORTED
    }

    fn table() -> abi::CpuTable {
        abi::CpuTable {
            struct_size: size_of::<abi::CpuTable>() as u32,
            reserved: 0,
            ring: Some(ring),
            reduce: Some(reduce),
            combiner: Some(combiner),
        }
    }

    /// Whether a table is taken, and with its last function.
    fn has(table: &abi::CpuTable) -> (bool, bool) {
        // SAFETY: it is larger than it says, if anything.
        let functions = unsafe { functions(table) };
        (
            functions.is_some(),
            functions.is_some_and(|(_, _, combiner)| combiner.is_some()),
        )
    }

    #[test]
    fn tables_of_before_have_fewer_functions() {
        assert_eq!(has(&table()), (true, true));
        let of = |size| abi::CpuTable {
            struct_size: size,
            ..table()
        };
        let since_1_2 = offset_of!(abi::CpuTable, combiner) as u32;
        assert_eq!(has(&of(since_1_2)), (true, false));
        assert_eq!(has(&of(since_1_2 + 7)), (true, false), "a part of a field");
        assert_eq!(has(&of(since_1_2 - 8)), (false, false));
        assert_eq!(has(&of(since_1_2 + 64)), (true, true), "and more");
        let holes = abi::CpuTable {
            combiner: None,
            ..table()
        };
        assert_eq!(has(&holes), (true, false));
        let holes = abi::CpuTable {
            reduce: None,
            ..table()
        };
        assert_eq!(has(&holes), (false, false));
    }
}
