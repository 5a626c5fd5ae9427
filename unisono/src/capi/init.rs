//! Ways into a job.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use unisono_bootstrap::{InterfaceFilter, UniqueId};
use unisono_collectives::Communicator;

use super::comm::{ALONE, Comm, answer, wanted};
use super::config::Config;
use super::group;
use super::result::{Outcome, guard, invalid};
use crate::{Init, InitError};

/// The bytes of `unisono_unique_id`.
type Id = [u8; UniqueId::LENGTH];

/// What to do instead of joining as one rank while a group is open.
const TOGETHER: &str = "ranks that are threads of one process join by unisono_comm_init_all";

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_get_unique_id(id: *mut Id) -> i32 {
    guard(|| {
        wanted("id", id)?;
        let options = Init::from_env().rank(0).size(1).options()?;
        let filter: InterfaceFilter = options.interfaces;
        let made = UniqueId::create(&filter, 0).map_err(InitError::Bootstrap)?;
        // SAFETY: the caller gives a place for an id.
        unsafe { answer("id", id, *made.as_bytes()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_init_rank(
    comm: *mut *mut Comm,
    size: u32,
    id: *const Id,
    rank: u32,
) -> i32 {
    // SAFETY: the caller gives what `unisono.h` says.
    unsafe { unisono_comm_init_rank_config(comm, size, id, rank, std::ptr::null()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_init_rank_config(
    comm: *mut *mut Comm,
    size: u32,
    id: *const Id,
    rank: u32,
    config: *const Config,
) -> i32 {
    guard(|| {
        wanted("comm", comm)?;
        group::refuse("comm_init_rank", TOGETHER)?;
        // SAFETY: the caller gives an id or NULL.
        let id = unsafe { id.as_ref() }.ok_or_else(|| invalid("id is NULL"))?;
        let id = UniqueId::from_bytes(id).map_err(|e| invalid(e.to_string()))?;
        // SAFETY: the caller gives a configuration of the size that it says, or NULL.
        let init = unsafe { Config::init(config) }?;
        let init = init.rank(rank).size(size).unique_id(id);
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("comm", comm, Comm::boxed(init.join()?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_init_from_env(comm: *mut *mut Comm) -> i32 {
    // SAFETY: the caller gives what `unisono.h` says.
    unsafe { unisono_comm_init_from_env_config(comm, std::ptr::null()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_init_from_env_config(
    comm: *mut *mut Comm,
    config: *const Config,
) -> i32 {
    guard(|| {
        wanted("comm", comm)?;
        group::refuse("comm_init_from_env", TOGETHER)?;
        // SAFETY: the caller gives a configuration of the size that it says, or NULL.
        let init = unsafe { Config::init(config) }?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("comm", comm, Comm::boxed(init.join()?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_init_all(
    comms: *mut *mut Comm,
    size: u32,
    configs: *const *const Config,
) -> i32 {
    guard(|| {
        wanted("comms", comms)?;
        group::refuse("comm_init_all", ALONE)?;
        if size == 0 {
            return Err(invalid("comm_init_all: size is 0"));
        }
        let options = (0..size).map(|rank| {
            let config = match configs.is_null() {
                true => std::ptr::null(),
                // SAFETY: the caller gives one pointer for each rank.
                false => unsafe { configs.add(rank as usize).read() },
            };
            // SAFETY: the caller gives a configuration of the size that it says, or NULL.
            let init = unsafe { Config::init(config) }?;
            Ok(init.rank(rank).size(size).options()?)
        });
        let options = options.collect::<Outcome<Vec<_>>>()?;
        let all = Communicator::init_all(size, |rank| options[rank as usize].clone())?;
        for (rank, communicator) in all.into_iter().enumerate() {
            // SAFETY: the caller gives a place for as many handles.
            unsafe { comms.add(rank).write(Comm::boxed(communicator)) };
        }
        Ok(())
    })
}
