//! Devices that are the CPU: what the calling thread may do by itself.

#![allow(unsafe_code, reason = "calls the plugin's function pointers")]

use unisono_abi as abi;

use crate::error::call_done;
use crate::{Device, DeviceKind, Instance, Reduce, Result};

type Ring = unsafe extern "C" fn(abi::Instance, *const u64, u32);
type ReduceFn = unsafe extern "C" fn(abi::Instance, *const abi::CommandReduce) -> abi::Status;

/// What a plugin lets any thread do at once on its CPU devices, beside their streams.
#[derive(Clone)]
pub struct Cpu {
    instance: Instance,
    ring: Ring,
    reduce: ReduceFn,
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
        // SAFETY: the contract says what lies at an interface of this name, and that it lives as
        // long as the process; its size comes first.
        unsafe {
            if ((&raw const (*table.as_ptr()).struct_size).read() as usize)
                < size_of::<abi::CpuTable>()
            {
                return None;
            }
            let table = table.as_ref();
            Some(Self {
                instance: instance.clone(),
                ring: table.ring?,
                reduce: table.reduce?,
            })
        }
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
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cpu").finish_non_exhaustive()
    }
}
