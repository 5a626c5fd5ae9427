//! An instance of a plugin, made as a host makes it.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use unisono_plugin::abi::{self, status};
use unisono_plugin::{Plugin, query};

/// The instance, and the table of its plugin.
pub struct Made {
    pub table: &'static abi::InstanceTable,
    pub instance: abi::Instance,
}

impl Made {
    pub fn of<P: Plugin>() -> Self {
        // SAFETY: the query answers static tables.
        let table = unsafe {
            &*query::<P>(1, 0)
                .as_ref()
                .expect("hosts of major 1")
                .instance
        };
        let info = abi::InstanceInfo {
            struct_size: size_of::<abi::InstanceInfo>() as u32,
            param_count: 0,
            params: null(),
            host: null(),
        };
        let mut instance = abi::Instance::NULL;
        let create = table.create.expect("it is mandatory");
        // SAFETY: both pointers are good for the call.
        let made = unsafe { create(&raw const info, &raw mut instance, null_mut()) };
        assert_eq!(made, status::OK);
        Self { table, instance }
    }

    /// The optional table of this name, or NULL.
    pub fn interface(&self, id: &str) -> *const c_void {
        let id = abi::Str {
            ptr: id.as_ptr().cast(),
            len: id.len() as u64,
        };
        let ask = self.table.get_interface.expect("the SDK has it");
        // SAFETY: the instance lives, and the name is good for the call.
        unsafe { ask(self.instance, id) }
    }
}
