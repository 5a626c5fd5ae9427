//! The host's own copies of a plugin's tables, with every hole filled.
//!
//! A function that a plugin leaves out is replaced once, at load, by a stub that answers
//! "unsupported": calls need no checks. The copies are never freed, as plugins are never unloaded.

#![allow(
    unsafe_code,
    reason = "declares C functions; none is called or dereferenced here"
)]

use std::ffi::c_void;

use unisono_abi as abi;
use unisono_abi::{Error, QueueState, Sleep, Status, Waker, status};

use crate::raw_queue::QueueFns;

macro_rules! host_table {
    ($name:ident from $table:ident {
        $($function:ident($($argument:ty),*) $(-> $answer:ty = $missing:expr)?;)+
    }) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name {
            $(pub(crate) $function: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)+
        }

        impl $name {
            pub(crate) fn new(table: &abi::$table) -> Self {
                $(unsafe extern "C" fn $function($(_: $argument),*) $(-> $answer)? {
                    $($missing)?
                })+
                Self { $($function: table.$function.unwrap_or($function),)+ }
            }

            /// Every function's name, and whether the plugin has it.
            pub(crate) fn present(table: &abi::$table) -> Vec<(&'static str, bool)> {
                vec![$((stringify!($function), table.$function.is_some()),)+]
            }
        }
    };
}

host_table!(InstanceFns from InstanceTable {
    create(*const abi::InstanceInfo, *mut abi::Instance, *mut Error) -> Status = status::UNSUPPORTED;
    destroy(abi::Instance);
    devices(abi::Instance, *mut abi::DeviceInfo, u32, *mut u32, *mut Error) -> Status
        = status::UNSUPPORTED;
    get_interface(abi::Instance, abi::Str) -> *const c_void = std::ptr::null();
});

host_table!(DeviceFns from DeviceTable {
    open(abi::Instance, u32, *mut abi::Device, *mut Error) -> Status = status::UNSUPPORTED;
    close(abi::Device);
    supports(abi::Device, *const abi::SupportQuery) -> Status = status::UNSUPPORTED;
});

host_table!(MemoryFns from MemoryTable {
    alloc(abi::Device, *const abi::MemoryRequest, *mut abi::Memory, *mut abi::MemoryView,
        *mut Error) -> Status = status::UNSUPPORTED;
    free(abi::Memory);
    register_host(abi::Device, *mut c_void, u64, *mut abi::Memory, *mut abi::MemoryView,
        *mut Error) -> Status = status::UNSUPPORTED;
    wrap(abi::Device, u64, u64, *mut abi::Memory, *mut abi::MemoryView, *mut Error) -> Status
        = status::UNSUPPORTED;
    query(abi::Device, u64, *mut abi::MemoryView, *mut Error) -> Status = status::UNSUPPORTED;
    export_memory(abi::Memory, u32, *mut c_void, u64, *mut u64, *mut Error) -> Status
        = status::UNSUPPORTED;
    import_memory(abi::Device, *const c_void, u64, *mut abi::Memory, *mut abi::MemoryView,
        *mut Error) -> Status = status::UNSUPPORTED;
    flush_remote_writes(abi::Device, *mut Error) -> Status = status::UNSUPPORTED;
});

host_table!(StreamFns from StreamTable {
    create(abi::Device, *const abi::StreamRequest, *mut abi::Stream, *mut Error) -> Status
        = status::UNSUPPORTED;
    wrap(abi::Device, u64, *mut abi::Stream, *mut Error) -> Status = status::UNSUPPORTED;
    destroy(abi::Stream);
    native(abi::Stream) -> u64 = 0;
    submit(abi::Stream, *const c_void, u64, u32, *mut u32, *mut Error) -> Status
        = status::UNSUPPORTED;
    poll(abi::Stream, u64, *mut QueueState, *mut Error) -> Status = status::UNSUPPORTED;
    arm(abi::Stream, u32, *const Waker, *mut Sleep, *mut Error) -> Status = status::UNSUPPORTED;
    disarm(abi::Stream);
    query(abi::Stream, *mut QueueState) -> Status = status::UNSUPPORTED;
    abort(abi::Stream);
    capturing(abi::Stream) -> u32 = 0;
});

host_table!(EventFns from EventTable {
    create(abi::Device, *mut abi::Event, *mut Error) -> Status = status::UNSUPPORTED;
    wrap(abi::Device, u64, *mut abi::Event, *mut Error) -> Status = status::UNSUPPORTED;
    destroy(abi::Event);
    native(abi::Event) -> u64 = 0;
    host_signal(abi::Event, *mut Error) -> Status = status::UNSUPPORTED;
    host_query(abi::Event, *mut Error) -> Status = status::UNSUPPORTED;
});

host_table!(LinkFns from LinkTable {
    report(abi::Instance, *mut abi::LinkInfo, u32, *mut u32, *mut Error) -> Status
        = status::UNSUPPORTED;
    address(abi::Instance, *mut c_void, u64, *mut u64, *mut Error) -> Status = status::UNSUPPORTED;
    create(abi::Instance, *const abi::LinkRequest, *mut abi::Link, *mut Error) -> Status
        = status::UNSUPPORTED;
    destroy(abi::Link);
    export_window(abi::Link, u32, u64, u64, *mut c_void, u64, *mut u64, *mut Error) -> Status
        = status::UNSUPPORTED;
    import_window(abi::Link, u32, *const c_void, u64, *mut Error) -> Status = status::UNSUPPORTED;
    close_window(abi::Link, u32, *mut Error) -> Status = status::UNSUPPORTED;
    submit(abi::Link, *const c_void, u64, u32, *mut u32, *mut Error) -> Status
        = status::UNSUPPORTED;
    poll(abi::Link, u64, *mut QueueState, *mut Error) -> Status = status::UNSUPPORTED;
    arm(abi::Link, u32, *const Waker, *mut Sleep, *mut Error) -> Status = status::UNSUPPORTED;
    disarm(abi::Link);
    query(abi::Link, *mut QueueState) -> Status = status::UNSUPPORTED;
    abort(abi::Link);
    statistics(abi::Link, *mut abi::LinkStatistics) -> Status = status::UNSUPPORTED;
    land(abi::Link, u32, u64, u64, u64, u64, u64, u64, u64, *mut Error) -> Status
        = status::AGAIN;
});

impl StreamFns {
    pub(crate) const fn queue(&self) -> QueueFns<abi::Stream> {
        QueueFns {
            destroy: self.destroy,
            submit: self.submit,
            poll: self.poll,
            arm: self.arm,
            disarm: self.disarm,
            query: self.query,
            abort: self.abort,
        }
    }
}

impl LinkFns {
    pub(crate) const fn queue(&self) -> QueueFns<abi::Link> {
        QueueFns {
            destroy: self.destroy,
            submit: self.submit,
            poll: self.poll,
            arm: self.arm,
            disarm: self.disarm,
            query: self.query,
            abort: self.abort,
        }
    }
}

/// A plugin's tables as they were found, cut to what both sides know.
#[derive(Clone, Copy)]
pub(crate) struct FoundTables {
    pub(crate) instance: abi::InstanceTable,
    pub(crate) device: Option<abi::DeviceTable>,
    pub(crate) memory: Option<abi::MemoryTable>,
    pub(crate) stream: Option<abi::StreamTable>,
    pub(crate) event: Option<abi::EventTable>,
    pub(crate) link: Option<abi::LinkTable>,
}

/// A plugin's functions.
pub(crate) struct Tables {
    pub(crate) instance: InstanceFns,
    pub(crate) device: DeviceFns,
    pub(crate) memory: MemoryFns,
    pub(crate) stream: StreamFns,
    pub(crate) event: EventFns,
    pub(crate) link: LinkFns,
}

impl Tables {
    pub(crate) fn new(found: &FoundTables) -> Self {
        Self {
            instance: InstanceFns::new(&found.instance),
            device: DeviceFns::new(&found.device.unwrap_or(abi::DeviceTable::zeroed())),
            memory: MemoryFns::new(&found.memory.unwrap_or(abi::MemoryTable::zeroed())),
            stream: StreamFns::new(&found.stream.unwrap_or(abi::StreamTable::zeroed())),
            event: EventFns::new(&found.event.unwrap_or(abi::EventTable::zeroed())),
            link: LinkFns::new(&found.link.unwrap_or(abi::LinkTable::zeroed())),
        }
    }
}

impl FoundTables {
    /// Every function of the contract as (table, function, whether the plugin has it).
    pub(crate) fn functions(&self) -> Vec<(&'static str, &'static str, bool)> {
        let device = self.device.unwrap_or(abi::DeviceTable::zeroed());
        let memory = self.memory.unwrap_or(abi::MemoryTable::zeroed());
        let stream = self.stream.unwrap_or(abi::StreamTable::zeroed());
        let event = self.event.unwrap_or(abi::EventTable::zeroed());
        let link = self.link.unwrap_or(abi::LinkTable::zeroed());
        let tables = [
            ("instance", InstanceFns::present(&self.instance)),
            ("device", DeviceFns::present(&device)),
            ("memory", MemoryFns::present(&memory)),
            ("stream", StreamFns::present(&stream)),
            ("event", EventFns::present(&event)),
            ("link", LinkFns::present(&link)),
        ];
        let rows = tables
            .into_iter()
            .flat_map(|(table, rows)| rows.into_iter().map(move |(f, has)| (table, f, has)));
        rows.collect()
    }
}
