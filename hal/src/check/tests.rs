//! Records with random bytes in them: each is accepted or refused, and none crashes the host.

use std::ptr;

use unisono_abi::layout::{COUNT, ENTRIES};

use super::*;
use crate::log_sink::LogFacade;

unsafe extern "C" fn create(
    _: *const abi::InstanceInfo,
    out: *mut abi::Instance,
    _: *mut abi::Error,
) -> abi::Status {
    // SAFETY: the host gives room for a handle.
    unsafe { out.write(abi::Instance(ptr::dangling_mut::<u8>().cast())) };
    abi::status::OK
}

unsafe extern "C" fn destroy(_: abi::Instance) {}

unsafe extern "C" fn devices(
    _: abi::Instance,
    _: *mut abi::DeviceInfo,
    _: u32,
    count: *mut u32,
    _: *mut abi::Error,
) -> abi::Status {
    // SAFETY: the host gives room for the number.
    unsafe { count.write(0) };
    abi::status::OK
}

/// A plugin's static data, in memory that lives as long as this.
struct Data {
    record: Box<abi::Plugin>,
    _layout: Box<[abi::LayoutEntry; COUNT]>,
    _instance: Box<abi::InstanceTable>,
}

fn text(text: &'static str) -> abi::Str {
    abi::Str {
        ptr: text.as_ptr().cast(),
        len: text.len() as u64,
    }
}

fn data() -> Data {
    let layout = Box::new(ENTRIES);
    let mut instance = Box::new(abi::InstanceTable::zeroed());
    instance.struct_size = size_of::<abi::InstanceTable>() as u32;
    instance.create = Some(create);
    instance.destroy = Some(destroy);
    instance.devices = Some(devices);
    let mut record = Box::new(abi::Plugin::zeroed());
    record.magic = abi::MAGIC;
    record.abi_major = abi::ABI_MAJOR;
    record.abi_minor = abi::ABI_MINOR;
    record.struct_size = size_of::<abi::Plugin>() as u32;
    record.name = text("linked-in");
    record.version = text("1");
    record.layout = layout.as_ptr();
    record.layout_count = COUNT as u32;
    record.instance = &raw const *instance;
    Data {
        record,
        _layout: layout,
        _instance: instance,
    }
}

fn read_it(record: &abi::Plugin) -> Result<PluginData, Refusal> {
    read(ptr::from_ref(record) as u64, HostVersion::CURRENT)
}

#[test]
fn random_bytes_in_a_record_never_crash() {
    let whole = data();
    assert_eq!(read_it(&whole.record).map(|d| d.name), Ok("linked-in"));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut refused = 0;
    for _ in 0..400 {
        let mut changed = *whole.record;
        let bytes = (&raw mut changed).cast::<u8>();
        for _ in 0..=random() % 3 {
            let at = random() as usize % size_of::<abi::Plugin>();
            // SAFETY: within the record, which is plain data: the host reads it with care.
            unsafe { bytes.add(at).write(random() as u8) };
        }
        refused += u32::from(read_it(&changed).is_err());
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_plugin_that_is_linked_in() {
    static RECORD: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    unsafe extern "C" fn query(_: u32, _: u32) -> *const abi::Plugin {
        let leak = || ptr::from_ref::<Data>(Box::leak(Box::new(data()))) as usize;
        let data = *RECORD.get_or_init(leak) as *const Data;
        // SAFETY: leaked, so it lives for good.
        unsafe { &raw const *(*data).record }
    }
    // SAFETY: the functions above keep the contract.
    let query = unsafe { QueryFn::new(query) };
    let plugin = Plugin::from_static(query).unwrap();
    let again = Plugin::from_static(query).unwrap();
    assert!(
        ptr::eq(plugin.data(), again.data()),
        "asked again, the same"
    );
    assert_eq!((plugin.name(), plugin.path()), ("linked-in", None));
    let instance = plugin.instantiate_with_log(&[], std::sync::Arc::new(LogFacade));
    assert_eq!(instance.unwrap().devices().unwrap(), []);
}

#[test]
fn a_query_that_answers_null() {
    unsafe extern "C" fn query(_: u32, _: u32) -> *const abi::Plugin {
        ptr::null()
    }
    // SAFETY: it answers NULL.
    let error = Plugin::from_static(unsafe { QueryFn::new(query) }).unwrap_err();
    assert!(matches!(
        error.refusal(),
        Some(Refusal::NotForThisHost { .. })
    ));
}
