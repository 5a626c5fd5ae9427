//! The fixtures of other minors are what they say: hosts' tests load them.
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

mod loaded;

use std::collections::BTreeMap;
use std::ffi::CStr;

use loaded::{instance, load};
use unisono_abi::{self as abi, layout, status};
use unisono_abi_tests::fixture;

/// (struct, field) -> (offset, size), as the plugin says.
fn table(plugin: &abi::Plugin) -> BTreeMap<(String, String), (u32, u32)> {
    (0..plugin.layout_count as usize)
        .map(|i| {
            // SAFETY: the table has as many entries as it says, names end with NUL.
            let entry = unsafe { &*plugin.layout.add(i) };
            let text = |p| {
                // SAFETY: as above.
                let name = unsafe { CStr::from_ptr(p) };
                name.to_str().expect("ASCII").to_owned()
            };
            (
                (text(entry.struct_name), text(entry.field)),
                (entry.offset, entry.size),
            )
        })
        .collect()
}

/// The fields that only one side knows, if all others agree: (only ours, only theirs).
fn differences(plugin: &abi::Plugin) -> (Vec<String>, Vec<String>) {
    let theirs = table(plugin);
    let ours: BTreeMap<_, _> = layout::ALL
        .iter()
        .copied()
        .flatten()
        .map(|f| {
            (
                (f.struct_name.to_owned(), f.field.to_owned()),
                (f.offset, f.size),
            )
        })
        .collect();
    for (field, place) in &ours {
        if let Some(found) = theirs.get(field) {
            assert_eq!(found, place, "{field:?}");
        }
    }
    let only = |a: &BTreeMap<(String, String), _>, b: &BTreeMap<(String, String), _>| {
        a.keys()
            .filter(|k| !b.contains_key(k))
            .map(|(s, f)| format!("{s}.{f}"))
            .collect()
    };
    (only(&ours, &theirs), only(&theirs, &ours))
}

/// The links that it reports, read with a stride of the plugin's own.
fn latencies(plugin: &abi::Plugin, stride: usize) -> Vec<u64> {
    let instance = instance(plugin, &[]);
    let mut bytes = vec![0u64; stride / 8 * 2];
    let mut count = 0;
    // SAFETY: room for two entries as large as the plugin makes them.
    unsafe {
        let out = bytes.as_mut_ptr().cast::<abi::LinkInfo>();
        let report = (*plugin.link).report.expect("it reports");
        let status = report(instance, out, 2, &raw mut count, loaded::no_error());
        assert_eq!((status, count), (status::OK, 2));
        (0..2)
            .map(|i| (&raw const (*out.byte_add(i * stride)).latency_ns).read())
            .collect()
    }
}

fn since_1_2(field: &str) -> bool {
    ["unisono_command_scale.", "unisono_command_call."]
        .iter()
        .any(|s| field.starts_with(s))
}

fn since_1_3(field: &str) -> bool {
    field == "unisono_link_statistics.recovered"
}

fn since_1_4(field: &str) -> bool {
    field.starts_with("unisono_dmabuf")
}

/// What is left of some fields without that which came with 1.9.
fn until_1_8(mut fields: Vec<String>) -> Vec<String> {
    let before = fields.len();
    fields.retain(|field| field != "unisono_cpu_table.combiner");
    assert_eq!(fields.len(), before - 1, "no older minor has it");
    fields
}

/// What is left of some fields without that which came with 1.8 and later.
fn until_1_7(fields: Vec<String>) -> Vec<String> {
    let mut fields = until_1_8(fields);
    let before = fields.len();
    fields.retain(|field| field != "unisono_link_table.land");
    assert_eq!(fields.len(), before - 1, "no older minor has it");
    fields
}

/// What is left of some fields without that which came with 1.7 and later.
fn until_1_6(fields: Vec<String>) -> Vec<String> {
    let mut fields = until_1_7(fields);
    let before = fields.len();
    fields.retain(|field| !field.starts_with("unisono_command_read."));
    assert_eq!(fields.len(), before - 6, "no older minor has it");
    fields
}

/// What is left of some fields without that which came with 1.6 and later.
fn until_1_5(fields: Vec<String>) -> Vec<String> {
    let mut fields = until_1_6(fields);
    let before = fields.len();
    fields.retain(|field| field != "unisono_link_info.read_bytes_per_second");
    assert_eq!(fields.len(), before - 1, "no older minor has it");
    fields
}

#[test]
fn the_first_minor_knows_less() {
    let plugin = load(&fixture("minor_1_0"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 0));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_5(ours);
    let later = |f: &String| {
        f.starts_with("unisono_link_statistics.")
            || since_1_2(f)
            || since_1_4(f)
            || [
                "unisono_link_table.statistics",
                "unisono_link_info.rail",
                "unisono_link_info.reserved",
            ]
            .contains(&f.as_str())
    };
    let until_1_1 = ours
        .iter()
        .filter(|f| !since_1_2(f) && !since_1_3(f) && !since_1_4(f))
        .count();
    assert!(ours.iter().all(later) && until_1_1 == 10, "{ours:?}");
    assert!(theirs.is_empty(), "{theirs:?}");
    // SAFETY: static data, at least a struct_size.
    let size = unsafe { (*plugin.link).struct_size } as usize;
    assert_eq!(size + 16, size_of::<abi::LinkTable>());
    assert_eq!(latencies(plugin, 80), [100, 200]);
}

#[test]
fn the_second_minor_knows_less() {
    let plugin = load(&fixture("minor_1_1"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 1));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_5(ours);
    assert!(
        ours.iter()
            .all(|f| since_1_2(f) || since_1_3(f) || since_1_4(f))
            && ours.iter().filter(|f| !since_1_4(f)).count() == 19,
        "{ours:?}"
    );
    assert!(theirs.is_empty(), "{theirs:?}");
    assert_eq!(latencies(plugin, 88), [100, 200]);
}

#[test]
fn the_third_minor_knows_less() {
    let plugin = load(&fixture("minor_1_2"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 2));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_5(ours);
    let until_1_3: Vec<_> = ours.iter().filter(|f| !since_1_4(f)).collect();
    assert_eq!(until_1_3, ["unisono_link_statistics.recovered"]);
    assert!(theirs.is_empty(), "{theirs:?}");
    assert_eq!(latencies(plugin, 88), [100, 200]);
}

#[test]
fn the_fourth_minor_knows_less() {
    let plugin = load(&fixture("minor_1_3"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 3));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_5(ours);
    assert!(ours.iter().all(|f| since_1_4(f)), "{ours:?}");
    assert_eq!(ours.len(), 11, "{ours:?}");
    assert!(theirs.is_empty(), "{theirs:?}");
    assert_eq!(latencies(plugin, 88), [100, 200]);
}

/// 1.5 says more by a function that was there, and has no more fields.
#[test]
fn the_fifth_and_the_sixth_minor_know_less() {
    for (minor, source) in [(4, "minor_1_4"), (5, "minor_1_5")] {
        let plugin = load(&fixture(source));
        assert_eq!((plugin.abi_major, plugin.abi_minor), (1, minor));
        let (ours, theirs) = differences(plugin);
        let ours = until_1_5(ours);
        assert!(ours.is_empty() && theirs.is_empty(), "{ours:?} {theirs:?}");
        assert_eq!(latencies(plugin, 88), [100, 200]);
    }
}

#[test]
fn the_seventh_minor_knows_less() {
    let plugin = load(&fixture("minor_1_6"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 6));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_6(ours);
    assert!(ours.is_empty() && theirs.is_empty(), "{ours:?} {theirs:?}");
    assert_eq!(latencies(plugin, 96), [100, 200]);
}

#[test]
fn the_eighth_minor_knows_less() {
    let plugin = load(&fixture("minor_1_7"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 7));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_7(ours);
    assert!(ours.is_empty() && theirs.is_empty(), "{ours:?} {theirs:?}");
    assert_eq!(latencies(plugin, 96), [100, 200]);
}

#[test]
fn the_ninth_minor_knows_less() {
    let plugin = load(&fixture("minor_1_8"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 8));
    let (ours, theirs) = differences(plugin);
    let ours = until_1_8(ours);
    assert!(ours.is_empty() && theirs.is_empty(), "{ours:?} {theirs:?}");
    assert_eq!(latencies(plugin, 96), [100, 200]);
}

#[test]
fn a_newer_minor_knows_more() {
    let plugin = load(&fixture("minor_1_10"));
    assert_eq!((plugin.abi_major, plugin.abi_minor), (1, 10));
    let (ours, theirs) = differences(plugin);
    assert!(ours.is_empty(), "{ours:?}");
    assert_eq!(theirs.len(), 5, "{theirs:?}");
    // SAFETY: static data, at least a struct_size.
    let size = unsafe { (*plugin.link).struct_size } as usize;
    assert_eq!(size, size_of::<abi::LinkTable>() + 8);
    assert_eq!(latencies(plugin, 112), [100, 200]);
}
