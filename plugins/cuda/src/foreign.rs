//! Memory of the program's own, as the driver knows it.
#![allow(unsafe_code, reason = "calls the driver")]

use cudarc::driver::sys::CUpointer_attribute_enum as P;
use unisono_plugin::{DeviceId, MemoryView, Place};
use unisono_plugin_accelerator::Foreign;

use crate::api::Api;

fn attribute<T: Default>(api: &Api, which: P, address: u64) -> Option<T> {
    let mut value = T::default();
    let to = (&raw mut value).cast();
    // SAFETY: each attribute is asked for with its own type.
    let code = unsafe { (api.pointer)(to, which as u32, address) };
    (code == 0).then_some(value)
}

/// What lies at an address; the context is current, and devices have these identities, by the driver's
/// number.
pub(crate) fn at(api: &Api, ids: &[DeviceId], address: u64) -> Option<Foreign> {
    let kind = attribute::<u32>(api, P::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    // 1 is the host's, 2 a device's.
    let kind = kind.filter(|kind| matches!(kind, 1 | 2))?;
    let base = attribute(api, P::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address)?;
    let bytes = attribute(api, P::CU_POINTER_ATTRIBUTE_RANGE_SIZE, address)?;
    let ordinal = attribute::<i32>(api, P::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    let host = attribute(api, P::CU_POINTER_ATTRIBUTE_HOST_POINTER, base);
    let id = ordinal.and_then(|ordinal| ids.get(usize::try_from(ordinal).ok()?).copied());
    Some(Foreign {
        view: MemoryView {
            place: if kind == 1 {
                Place::Host
            } else {
                Place::Device
            },
            base,
            host: if kind == 1 { host.unwrap_or(0) } else { 0 },
            bytes,
            generation: attribute(api, P::CU_POINTER_ATTRIBUTE_BUFFER_ID, address).unwrap_or(0),
            device: id.unwrap_or_default(),
        },
    })
}
