//! The checks of what a plugin answers to its query, before any other function of it is called.
//!
//! Everything is read through [`reader::Reader`], which survives addresses that point nowhere, and
//! every length is bounded before it is believed.

#![allow(unsafe_code, reason = "calls the plugin's query")]

mod layout;
mod params;
mod reader;
mod refusal;
mod sanitizer;
mod tables;

use std::path::PathBuf;
use std::sync::Mutex;

use unisono_abi as abi;

pub use refusal::Refusal;

use crate::HostVersion;
use crate::name::is_name;
use crate::plugin::{Facts, Function, Plugin, PluginData, QueryFn};
use crate::tables::Tables;
use crate::version::size_in;
use reader::Reader;

/// The longest text of a plugin that is read, in bytes.
const TEXT_MAX: u64 = 4096;
/// The largest struct that is believed, in bytes.
const STRUCT_MAX: u32 = 64 << 10;
/// Bits of `unisono_plugin.features` that this host knows.
const FEATURES: u64 = 0;

/// Plugins that were found sound, by the address of their record and the version they were asked
/// in. A record is static, so asking again gives the same plugin.
static KNOWN: Mutex<Vec<(usize, HostVersion, &'static PluginData)>> = Mutex::new(Vec::new());

/// Calls a plugin's query and checks what it answers.
pub(crate) fn ask(
    query: QueryFn,
    host: HostVersion,
    path: Option<PathBuf>,
) -> Result<Plugin, Refusal> {
    // SAFETY: the promise of `QueryFn::new`.
    let record = unsafe { (query.get())(host.major().into(), host.minor().into()) };
    if record.is_null() {
        return Err(Refusal::NotForThisHost { host });
    }
    let address = record as usize;
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((.., data)) = known.iter().find(|(a, v, _)| (*a, *v) == (address, host)) {
        return Ok(Plugin::new(data));
    }
    let mut data = read(address as u64, host)?;
    data.facts.path = path;
    let data: &'static PluginData = Box::leak(Box::new(data));
    known.push((address, host, data));
    Ok(Plugin::new(data))
}

/// Reads and checks a record.
fn read(address: u64, host: HostVersion) -> Result<PluginData, Refusal> {
    let mut reader = Reader::new()?;
    let record = record(&mut reader, address, host)?;
    let minor = host.common(record.abi_minor);
    let name = reader.text(record.name, "name", TEXT_MAX)?;
    if !is_name(&name) {
        return Err(Refusal::Name { found: name });
    }
    if record.features & !FEATURES != 0 {
        return Err(Refusal::Features {
            bits: record.features & !FEATURES,
        });
    }
    sanitizer::check(record.sanitizer)?;
    let strides = layout::check(&mut reader, &record, minor)?;
    let found = tables::read(&mut reader, &record, host)?;
    let params = params::read(&mut reader, &record)?;
    let functions = found.functions().into_iter();
    Ok(PluginData {
        name: Box::leak(name.into_boxed_str()),
        facts: Facts {
            version: reader.text(record.version, "version", TEXT_MAX)?,
            vendor: reader.text(record.vendor, "vendor", TEXT_MAX)?,
            build_id: reader.text(record.build_id, "build_id", TEXT_MAX)?,
            abi_major: record.abi_major,
            abi_minor: record.abi_minor,
            sanitizer: record.sanitizer,
            path: None,
            functions: functions
                .map(|(table, name, present)| Function {
                    table,
                    name,
                    present,
                })
                .collect(),
        },
        params,
        tables: Tables::new(&found),
        strides,
    })
}

/// The record, cut to what the host knows.
fn record(reader: &mut Reader, address: u64, host: HostVersion) -> Result<abi::Plugin, Refusal> {
    const WHAT: &str = "unisono_plugin";
    // Magic, versions and size stand first in every version, so they are read first.
    let head: [u64; 2] = reader.words(address, "the start of unisono_plugin")?;
    if head[0] != abi::MAGIC {
        return Err(Refusal::Magic { found: head[0] });
    }
    let mut start = abi::Plugin::zeroed();
    reader.part(address, 16, &mut start, WHAT)?;
    if start.abi_major != host.major() {
        return Err(Refusal::Major {
            found: (start.abi_major, start.abi_minor),
            host,
        });
    }
    let mut record = abi::Plugin::zeroed();
    let size = known_size(WHAT, start.struct_size, start.abi_minor, host)?;
    reader.part(address, size, &mut record, WHAT)?;
    Ok(record)
}

/// The bytes of a struct that both sides know.
///
/// A struct is short only if it is smaller than in the minor that the plugin declares.
fn known_size(
    name: &'static str,
    struct_size: u32,
    plugin_minor: u16,
    host: HostVersion,
) -> Result<usize, Refusal> {
    let least = size_in(name, host.common(plugin_minor));
    if struct_size > STRUCT_MAX {
        return Err(Refusal::Size {
            name,
            found: struct_size,
            most: STRUCT_MAX,
        });
    }
    if (struct_size as usize) < least {
        return Err(Refusal::Short {
            name,
            found: struct_size,
            least,
            minor: host.common(plugin_minor),
        });
    }
    Ok((struct_size as usize).min(size_in(name, host.minor())))
}

#[cfg(test)]
mod tests;
