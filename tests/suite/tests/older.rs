//! Plugins of before: what they lack is done without.
#![allow(
    unsafe_code,
    reason = "this stands at the contract's door, in C's clothes"
)]

use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use unisono::hal::{Plugin, QueryFn};
use unisono::{PluginRequest, ReduceOp};
use unisono_abi as abi;
use unisono_tests::threads;

/// A record that lives for ever.
struct Static(*const abi::Plugin);
// SAFETY: it points to what is never written again.
unsafe impl Send for Static {}
// SAFETY: as above.
unsafe impl Sync for Static {}

static INSTANCE: OnceLock<abi::InstanceTable> = OnceLock::new();
static CPU: OnceLock<abi::CpuTable> = OnceLock::new();
/// Reductions that came as commands though nothing is divided: those for which there could be a function.
static UNDIVIDED: AtomicU32 = AtomicU32::new(0);

/// The host plugin, but that its table `unisono.cpu` is as long as before 1.9, and counts.
extern "C" fn before_1_9(major: u32, minor: u32) -> *const abi::Plugin {
    static RECORD: OnceLock<Static> = OnceLock::new();
    let make = || {
        // SAFETY: a query gives a static record or NULL, and this one serves its own workspace.
        let mut plugin = unsafe { *unisono_plugin_host::query(major, minor) };
        // SAFETY: every plugin has instances, whose table is static.
        let mut instance = unsafe { *plugin.instance };
        _ = INSTANCE.set(instance);
        instance.get_interface = Some(get_interface);
        plugin.instance = Box::leak(Box::new(instance));
        Static(Box::leak(Box::new(plugin)))
    };
    RECORD.get_or_init(make).0
}

unsafe extern "C" fn get_interface(instance: abi::Instance, id: abi::Str) -> *const c_void {
    let ask = INSTANCE.get().and_then(|table| table.get_interface);
    // SAFETY: the arguments are the caller's.
    let table = unsafe { ask.expect("it has tables")(instance, id) };
    // SAFETY: an identifier is as long as it says.
    let id = unsafe { std::slice::from_raw_parts(id.ptr.cast::<u8>(), id.len as usize) };
    if table.is_null() || id != abi::CPU_INTERFACE.as_bytes() {
        return table;
    }
    // SAFETY: that is what lies at a table of this name.
    let now = CPU.get_or_init(|| unsafe { *table.cast::<abi::CpuTable>() });
    static THEN: OnceLock<abi::CpuTable> = OnceLock::new();
    let then = THEN.get_or_init(|| abi::CpuTable {
        struct_size: offset_of!(abi::CpuTable, combiner) as u32,
        reduce: Some(reduce),
        ..*now
    });
    (&raw const *then).cast()
}

unsafe extern "C" fn reduce(
    instance: abi::Instance,
    command: *const abi::CommandReduce,
) -> abi::Status {
    // SAFETY: the caller's command.
    if unsafe { (*command).divisor } == 0 {
        UNDIVIDED.fetch_add(1, Ordering::Relaxed);
    }
    let reduce = CPU.get().and_then(|table| table.reduce);
    // SAFETY: the arguments are the caller's.
    unsafe { reduce.expect("it reduces")(instance, command) }
}

#[test]
fn a_plugin_of_before_1_9_gets_a_command_for_each_reduction() {
    threads(
        3,
        |options| {
            // SAFETY: the tables are those of the host plugin, with functions that forward to it.
            let query = unsafe { QueryFn::new(before_1_9) };
            options.plugins = vec![PluginRequest {
                linked: Some(Plugin::from_static(query).expect("the plugin is sound")),
                ..PluginRequest::named("host")
            }];
        },
        |world| {
            let rank = world.rank() as f32;
            for count in [1, 5, 300, 5000] {
                let own: Vec<f32> = (0..count).map(|at| rank + at as f32).collect();
                let mut sums = own.clone();
                world
                    .all_reduce_in_place(&mut sums, ReduceOp::Sum)
                    .expect("all_reduce");
                let mut means = vec![0.0; count];
                world
                    .all_reduce(&own, &mut means, ReduceOp::Avg)
                    .expect("all_reduce");
                for at in 0..count {
                    let mean = 1.0 + at as f32;
                    assert_eq!((sums[at], means[at]), (3.0 * mean, mean));
                }
            }
            world.finalize().expect("finalize");
        },
    );
    // Three ranks make two of each sum, and one of each mean, of one element and of five at least.
    assert!(UNDIVIDED.load(Ordering::Relaxed) >= 2 * 3 * (2 + 1));
}
