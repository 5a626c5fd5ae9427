//! Compares where the two compilers put each field.

use std::collections::HashMap;

use unisono_abi as abi;

use super::reader::Reader;
use super::refusal::Refusal;
use crate::plugin::Strides;
use crate::version::fields;

/// The most entries that are believed.
const ENTRIES_MAX: u32 = 4096;
/// The longest name of a struct or a field, in bytes.
const NAME_MAX: usize = 128;
/// The farthest a field is believed to lie, in bytes.
const OFFSET_MAX: u32 = 64 << 10;

/// Compares the fields that both sides know, and gives the sizes of the structs that the plugin
/// writes as arrays.
pub(super) fn check(
    reader: &mut Reader,
    record: &abi::Plugin,
    minor: u16,
) -> Result<Strides, Refusal> {
    let found = read(reader, record)?;
    for field in fields(minor) {
        let key = (field.struct_name.to_owned(), field.field.to_owned());
        match found.get(&key) {
            Some(&plugin) if plugin == (field.offset, field.size) => {}
            Some(&plugin) => {
                return Err(Refusal::Layout {
                    name: key.0,
                    field: key.1,
                    plugin,
                    host: (field.offset, field.size),
                });
            }
            // What is reserved carries nothing, so nothing is lost if it is not named.
            None if field.field.starts_with("reserved") => {}
            None => {
                return Err(Refusal::LayoutMissing {
                    name: key.0,
                    field: key.1,
                });
            }
        }
    }
    Ok(Strides {
        device_info: stride(&found, "unisono_device_info", size_of::<abi::DeviceInfo>()),
        link_info: stride(&found, "unisono_link_info", size_of::<abi::LinkInfo>()),
        link_statistics: stride(
            &found,
            "unisono_link_statistics",
            size_of::<abi::LinkStatistics>(),
        ),
    })
}

type Found = HashMap<(String, String), (u32, u32)>;

fn read(reader: &mut Reader, record: &abi::Plugin) -> Result<Found, Refusal> {
    let count = record.layout_count;
    if count == 0 {
        return Err(Refusal::MissingTable("layout table"));
    }
    if count > ENTRIES_MAX {
        return Err(Refusal::Count {
            what: "layout_count".into(),
            found: count.into(),
            most: ENTRIES_MAX.into(),
        });
    }
    let mut found = Found::new();
    for i in 0..u64::from(count) {
        let at = (record.layout as u64).wrapping_add(i * size_of::<abi::LayoutEntry>() as u64);
        let mut entry = abi::LayoutEntry::zeroed();
        let what = format!("entry {i} of the layout table");
        reader.part(at, usize::MAX, &mut entry, &what)?;
        let name = reader.c_text(entry.struct_name as u64, &what, NAME_MAX)?;
        let field = reader.c_text(entry.field as u64, &what, NAME_MAX)?;
        for number in [entry.offset, entry.size] {
            if number > OFFSET_MAX {
                return Err(Refusal::Count {
                    what: format!("the offset or size of {name}.{field}"),
                    found: number.into(),
                    most: OFFSET_MAX.into(),
                });
            }
        }
        found.insert((name, field), (entry.offset, entry.size));
    }
    Ok(found)
}

/// The size of a struct in the plugin: the end of its last field, as all of these are aligned to
/// 8 bytes.
fn stride(found: &Found, name: &str, host: usize) -> usize {
    let ends = found
        .iter()
        .filter(|((n, _), _)| n == name)
        .map(|(_, (offset, size))| (offset + size) as usize);
    ends.max().unwrap_or(host).next_multiple_of(8)
}
