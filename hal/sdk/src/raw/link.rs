//! `unisono_link_table`.

use std::ffi::c_void;

use unisono_abi::{self as abi, Status, status};

use super::guard::{OK, guard, guard_release, null};
use super::handle::{InstanceHandle, QueueHandle, borrow, give, take};
use super::stream::{armed, batch, report};
use super::structs::{fill, read, slice, write, write_array, write_bytes};
use crate::{
    Channel, DeviceId, HostRange, Instance, Kinds, Landing, Link, LinkInfo, LinkRequest, NoEvent,
    QueueControl, Result,
};

pub const fn table<I: Instance>() -> abi::LinkTable {
    let mut table = abi::LinkTable::zeroed();
    table.struct_size = size_of::<abi::LinkTable>() as u32;
    table.report = Some(links::<I>);
    if I::Link::PRESENT {
        table.address = Some(address::<I>);
        table.create = Some(create::<I>);
        table.destroy = Some(destroy::<I::Link>);
        table.export_window = Some(export_window::<I::Link>);
        table.import_window = Some(import_window::<I::Link>);
        table.close_window = Some(close_window::<I::Link>);
        table.submit = Some(submit::<I::Link>);
        table.poll = Some(poll::<I::Link>);
        table.arm = Some(arm::<I::Link>);
        table.disarm = Some(disarm::<I::Link>);
        table.query = Some(query::<I::Link>);
        table.abort = Some(abort::<I::Link>);
        table.statistics = Some(statistics::<I::Link>);
        table.land = Some(land::<I::Link>);
    }
    table
}

type Handle<L> = QueueHandle<L, <L as Link>::Control>;

unsafe extern "C" fn links<I: Instance>(
    instance: abi::Instance,
    out: *mut abi::LinkInfo,
    cap: u32,
    count: *mut u32,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`: the host keeps the contract.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "link.report: instance");
        };
        guard(&handle.poison, error, || {
            let links: Vec<_> = handle.instance.links()?.iter().map(raw).collect();
            write_array(out, cap, count, &links)?;
            Ok(OK)
        })
    }
}

unsafe extern "C" fn address<I: Instance>(
    instance: abi::Instance,
    out: *mut c_void,
    cap: u64,
    len: *mut u64,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "link.address: instance");
        };
        guard(&handle.poison, error, || {
            write_bytes(out, cap, len, &handle.instance.address()?)?;
            Ok(OK)
        })
    }
}

unsafe extern "C" fn create<I: Instance>(
    instance: abi::Instance,
    request: *const abi::LinkRequest,
    out: *mut abi::Link,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "link.create: instance");
        };
        if out.is_null() {
            return null(error, "link.create: out");
        }
        out.write(abi::Link::NULL);
        guard(&handle.poison, error, || {
            let raw = read(request, "link.create: request")?;
            let queue = handle.instance.create_link(LinkRequest {
                peer: raw.peer,
                device: DeviceId(raw.device),
                channel: Channel::from_raw(read(raw.channel, "link.create: request.channel")?),
                peer_address: slice(raw.peer_address.cast(), raw.peer_address_len),
            })?;
            out.write(abi::Link(give(Handle::<I::Link> {
                poison: handle.poison.clone(),
                control: queue.control(),
                queue: queue.into(),
            })));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn destroy<L: Link>(link: abi::Link) {
    // SAFETY: as in `instance`; the host gives the handle back.
    if let Some(handle) = unsafe { take::<Handle<L>>(link.0) } {
        let poison = handle.poison.clone();
        guard_release(&poison, || drop(handle));
    }
}

/// Runs a call on a link that one thread at a time may make.
///
/// # Safety
/// The host keeps the contract, as in `instance`.
#[inline]
unsafe fn on<L: Link>(
    link: abi::Link,
    error: *mut abi::Error,
    what: &'static str,
    call: impl FnOnce(&mut L, &L::Control) -> Result<Status>,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<Handle<L>>(link.0) else {
            return null(error, what);
        };
        guard(&handle.poison, error, || {
            call(handle.queue(), &handle.control)
        })
    }
}

unsafe extern "C" fn export_window<L: Link>(
    link: abi::Link,
    id: u32,
    ptr: u64,
    bytes: u64,
    token: *mut c_void,
    cap: u64,
    len: *mut u64,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        on::<L>(link, error, "link.export_window: link", |link, _| {
            let made = link.export_window(id, HostRange::parse(ptr, bytes)?)?;
            write_bytes(token, cap, len, &made)?;
            Ok(OK)
        })
    }
}

unsafe extern "C" fn import_window<L: Link>(
    link: abi::Link,
    id: u32,
    token: *const c_void,
    len: u64,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        on::<L>(link, error, "link.import_window: link", |link, _| {
            link.import_window(id, slice(token.cast(), len))
                .map(|()| OK)
        })
    }
}

unsafe extern "C" fn close_window<L: Link>(
    link: abi::Link,
    id: u32,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        on::<L>(link, error, "link.close_window: link", |link, _| {
            link.close_window(id).map(|()| OK)
        })
    }
}

unsafe extern "C" fn submit<L: Link>(
    link: abi::Link,
    commands: *const c_void,
    bytes: u64,
    count: u32,
    accepted: *mut u32,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        if accepted.is_null() {
            return null(error, "link.submit: accepted");
        }
        accepted.write(0);
        on::<L>(link, error, "link.submit: link", |link, _| {
            let batch = batch::<NoEvent>(commands, bytes, count, Kinds::LINK)?;
            accepted.write(link.submit(&batch)?.min(count));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn poll<L: Link>(
    link: abi::Link,
    budget: u64,
    state: *mut abi::QueueState,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        on::<L>(link, error, "link.poll: link", |link, control| {
            report(state, link.poll(budget), control)
        })
    }
}

unsafe extern "C" fn arm<L: Link>(
    link: abi::Link,
    allowed: u32,
    waker: *const abi::Waker,
    sleep: *mut abi::Sleep,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        on::<L>(link, error, "link.arm: link", |link, _| {
            armed(allowed, waker, sleep, |ways, waker| link.arm(ways, waker))
        })
    }
}

unsafe extern "C" fn disarm<L: Link>(link: abi::Link) {
    // SAFETY: as in `instance`.
    unsafe {
        if let Some(handle) = borrow::<Handle<L>>(link.0) {
            guard_release(&handle.poison, || handle.queue().disarm());
        }
    }
}

unsafe extern "C" fn query<L: Link>(link: abi::Link, state: *mut abi::QueueState) -> Status {
    // SAFETY: as in `instance`; only the control is used, as this comes from any thread.
    unsafe {
        let Some(handle) = borrow::<Handle<L>>(link.0) else {
            return status::INVALID;
        };
        guard(&handle.poison, std::ptr::null_mut(), || {
            report(state, Ok(handle.control.query()), &handle.control)
        })
    }
}

unsafe extern "C" fn abort<L: Link>(link: abi::Link) {
    // SAFETY: as in `instance`.
    unsafe {
        if let Some(handle) = borrow::<Handle<L>>(link.0) {
            guard_release(&handle.poison, || handle.control.abort());
        }
    }
}

unsafe extern "C" fn statistics<L: Link>(link: abi::Link, out: *mut abi::LinkStatistics) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        if out.is_null() {
            return status::INVALID;
        }
        on::<L>(
            link,
            std::ptr::null_mut(),
            "link.statistics: link",
            |link, _| {
                let found = link.statistics()?;
                let mut raw = abi::LinkStatistics::zeroed();
                raw.connections = found.connections;
                raw.bytes_sent = found.bytes_sent;
                raw.bytes_received = found.bytes_received;
                raw.puts_sent = found.puts_sent;
                raw.puts_received = found.puts_received;
                raw.refused = found.refused;
                raw.recovered = found.recovered;
                write(out, &raw);
                Ok(OK)
            },
        )
    }
}

unsafe extern "C" fn land<L: Link>(
    link: abi::Link,
    window: u32,
    offset: u64,
    bytes: u64,
    to: u64,
    flag: u64,
    value: u64,
    after_flag: u64,
    after_value: u64,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        on::<L>(link, error, "link.land: link", |link, _| {
            let landing = Landing {
                window,
                offset,
                to: HostRange::parse(to, bytes)?,
                until: (flag, value),
                after: (after_flag != 0).then_some((after_flag, after_value)),
            };
            Ok(match link.land(&landing)? {
                true => OK,
                false => status::AGAIN,
            })
        })
    }
}

fn raw(info: &LinkInfo) -> abi::LinkInfo {
    let mut raw = abi::LinkInfo::zeroed();
    raw.link_type = info.link_type as u32;
    raw.scope = info.scope as u32;
    raw.shared = info.shared;
    raw.from = info.from.0;
    raw.to = info.to.0;
    fill(&mut raw.kind, &info.kind);
    raw.bytes_per_second = info.bytes_per_second;
    raw.latency_ns = info.latency_ns;
    raw.rail = info.rail;
    raw.read_bytes_per_second = info.read_bytes_per_second;
    raw
}
