//! Typed plugin parameters.

use crate::{Host, Str};

use crate::layout::abi_struct;

/// Types of parameters.
pub mod param_type {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const BOOL: u32 = 1;
    pub const INT: u32 = 2;
    pub const BYTES: u32 = 3;
    pub const DURATION_NS: u32 = 4;
    pub const STRING: u32 = 5;
}

abi_struct! {
    /// `unisono_param`.
    pub struct Param = "unisono_param" {
        /// In lower_snake_case
        pub name: Str,
        /// One sentence
        pub help: Str,
        /// As it would stand in the cluster file
        pub default_text: Str,
        /// UNISONO_PARAM_*
        pub value_type: u32,
        /// Zero.
        pub reserved: u32,
        /// Bounds for INT, BYTES and DURATION_NS
        pub min: i64,
        /// Bounds for INT, BYTES and DURATION_NS
        pub max: i64,
    }
}

abi_struct! {
    /// `unisono_param_value`.
    pub struct ParamValue = "unisono_param_value" {
        /// As in the plugin's table
        pub name: Str,
        /// STRING
        pub text: Str,
        /// BOOL 0 or 1, INT, BYTES in bytes, DURATION_NS in nanoseconds
        pub number: i64,
        /// See `unisono_plugin.h`.
        pub value_type: u32,
        /// Zero.
        pub reserved: u32,
    }
}

abi_struct! {
    /// `unisono_instance_info`.
    pub struct InstanceInfo = "unisono_instance_info" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// See `unisono_plugin.h`.
        pub param_count: u32,
        /// One for each entry of the plugin's table, in its order
        pub params: *const ParamValue,
        /// See `unisono_plugin.h`.
        pub host: *const Host,
    }
}
