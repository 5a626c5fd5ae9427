//! The static record.

use std::marker::PhantomData;

use unisono_abi::{self as abi, layout, sanitizer};

use super::{device, event, instance, link, memory, stream, structs::text};
use crate::{Device, Event, Instance, Memory, Plugin, Stream};

/// Answers the query for `P`: its static record, NULL for a host of another major version.
///
/// Starts nothing; may be called at any time from any thread.
pub extern "C" fn query<P: Plugin>(host_major: u32, host_minor: u32) -> *const abi::Plugin {
    let _ = host_minor; // minors only add: every 1.x host is served
    if host_major != u32::from(abi::ABI_MAJOR) {
        return std::ptr::null();
    }
    Record::<P>::RECORD
}

struct Record<P>(PhantomData<P>);

type DeviceOf<P> = <<P as Plugin>::Instance as Instance>::Device;

impl<P: Plugin> Record<P> {
    const LAYOUT: &'static [abi::LayoutEntry] = &layout::ENTRIES;
    const INSTANCE: &'static abi::InstanceTable = &instance::table::<P>();
    const DEVICE: &'static abi::DeviceTable = &device::table::<P::Instance>();
    const MEMORY: &'static abi::MemoryTable = &memory::table::<DeviceOf<P>>();
    const STREAM: &'static abi::StreamTable = &stream::table::<DeviceOf<P>>();
    const EVENT: &'static abi::EventTable = &event::table::<DeviceOf<P>>();
    const LINK: &'static abi::LinkTable = &link::table::<P::Instance>();

    const RECORD: &'static abi::Plugin = &{
        assert!(
            good_name(P::NAME),
            "a plugin's name is [a-z0-9_-], 1 to 32 of them"
        );
        let mut record = abi::Plugin::zeroed();
        record.magic = abi::MAGIC;
        record.abi_major = abi::ABI_MAJOR;
        record.abi_minor = abi::ABI_MINOR;
        record.struct_size = size_of::<abi::Plugin>() as u32;
        record.name = text(P::NAME);
        record.version = text(P::VERSION);
        record.vendor = text(P::VENDOR);
        record.build_id = text(P::BUILD_ID);
        record.sanitizer = if cfg!(tsan) {
            sanitizer::THREAD
        } else {
            sanitizer::NONE
        };
        record.param_count = P::PARAMS.len() as u32;
        record.params = P::PARAMS.as_ptr().cast();
        record.layout = Self::LAYOUT.as_ptr();
        record.layout_count = Self::LAYOUT.len() as u32;
        record.instance = Self::INSTANCE;
        if DeviceOf::<P>::PRESENT {
            record.device = Self::DEVICE;
        }
        if <DeviceOf<P> as Device>::Memory::PRESENT {
            record.memory = Self::MEMORY;
        }
        if <DeviceOf<P> as Device>::Stream::PRESENT {
            record.stream = Self::STREAM;
        }
        if <DeviceOf<P> as Device>::Event::PRESENT {
            record.event = Self::EVENT;
        }
        // Mapped links need no functions but the report of them.
        record.link = Self::LINK;
        record
    };
}

const fn good_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        if !matches!(bytes[i], b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') {
            return false;
        }
        i += 1;
    }
    !bytes.is_empty() && bytes.len() <= 32
}
