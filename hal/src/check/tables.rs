//! Reads the function tables, and checks that what belongs together is there together.

use unisono_abi as abi;

use super::known_size;
use super::reader::{Plain, Reader};
use super::refusal::Refusal;
use crate::HostVersion;
use crate::tables::FoundTables;

pub(super) fn read(
    reader: &mut Reader,
    record: &abi::Plugin,
    host: HostVersion,
) -> Result<FoundTables, Refusal> {
    let minor = record.abi_minor;
    let mut tables = Tables {
        reader,
        minor,
        host,
    };
    let instance = tables.read(
        record.instance,
        "unisono_instance_table",
        abi::InstanceTable::zeroed(),
    )?;
    let found = FoundTables {
        instance: instance.ok_or(Refusal::MissingTable("unisono_instance_table"))?,
        device: tables.read(
            record.device,
            "unisono_device_table",
            abi::DeviceTable::zeroed(),
        )?,
        memory: tables.read(
            record.memory,
            "unisono_memory_table",
            abi::MemoryTable::zeroed(),
        )?,
        stream: tables.read(
            record.stream,
            "unisono_stream_table",
            abi::StreamTable::zeroed(),
        )?,
        event: tables.read(
            record.event,
            "unisono_event_table",
            abi::EventTable::zeroed(),
        )?,
        link: tables.read(record.link, "unisono_link_table", abi::LinkTable::zeroed())?,
    };
    complete(&found)?;
    Ok(found)
}

struct Tables<'a> {
    reader: &'a mut Reader,
    minor: u16,
    host: HostVersion,
}

impl Tables<'_> {
    /// A table, cut to what the host knows; what the plugin does not know stays empty.
    fn read<T: Plain>(
        &mut self,
        at: *const T,
        name: &'static str,
        mut table: T,
    ) -> Result<Option<T>, Refusal> {
        if at.is_null() {
            return Ok(None);
        }
        let [head]: [u64; 1] = self.reader.words(at as u64, name)?;
        let b = head.to_ne_bytes();
        let struct_size = u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
        let size = known_size(name, struct_size, self.minor, self.host)?;
        self.reader.part(at as u64, size, &mut table, name)?;
        Ok(Some(table))
    }
}

macro_rules! need {
    ($table:expr, $name:literal, $why:literal: $($function:ident),+) => {
        $(if $table.$function.is_none() {
            return Err(Refusal::MissingFunction {
                table: $name,
                function: stringify!($function),
                why: $why,
            });
        })+
    };
}

/// Functions that must be there: always, or because another one is.
fn complete(found: &FoundTables) -> Result<(), Refusal> {
    need!(found.instance, "instance", "every plugin must have": create, destroy, devices);
    if let Some(t) = &found.device {
        need!(t, "device", "every plugin with devices must have": open, close);
    }
    if found.memory.is_some() || found.stream.is_some() || found.event.is_some() {
        found
            .device
            .ok_or(Refusal::MissingTable("unisono_device_table"))?;
    }
    if let Some(t) = &found.memory {
        need!(t, "memory", "every plugin with memory must have": free);
    }
    if let Some(t) = &found.stream {
        need!(t, "stream", "every plugin with streams must have": destroy, submit, poll);
    }
    if let Some(t) = &found.event {
        need!(t, "event", "every plugin with events must have": destroy);
    }
    if let Some(t) = &found.link
        && t.create.is_some()
    {
        need!(t, "link", "every plugin with posted links must have": destroy, submit, poll);
    }
    Ok(())
}
