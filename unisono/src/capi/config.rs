//! What a program says about a communicator beyond its environment: `unisono_config`.

#![allow(unsafe_code, reason = "a struct of pointers that C gives")]

use std::ffi::{CStr, c_char};
use std::mem::{offset_of, size_of};

use super::result::{Outcome, invalid};
use crate::Init;

/// `unisono_config`. A member of zero bytes says nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Config {
    /// Bytes of the struct as the caller knows it.
    size: usize,
    name: *const c_char,
    device: *const c_char,
    plugins: *const c_char,
    cluster_file: *const c_char,
    init_timeout_ms: u64,
    op_timeout_ms: u64,
    finalize_timeout_ms: u64,
    deterministic: i32,
    reserved: i32,
}

impl Config {
    /// Everything at its default.
    const NOTHING: Self = Self {
        size: size_of::<Self>(),
        name: std::ptr::null(),
        device: std::ptr::null(),
        plugins: std::ptr::null(),
        cluster_file: std::ptr::null(),
        init_timeout_ms: 0,
        op_timeout_ms: 0,
        finalize_timeout_ms: 0,
        deterministic: 0,
        reserved: 0,
    };

    /// How to join with this configuration.
    ///
    /// # Safety
    /// `config` is NULL or leads to as many bytes as its first member says, whose texts end in NUL.
    pub(super) unsafe fn init(config: *const Self) -> Outcome<Init> {
        // SAFETY: the caller's promise.
        let config = unsafe { Self::read(config) }?;
        // SAFETY: as above.
        unsafe { config.apply(Init::from_env()) }
    }

    /// What this library knows of a configuration that may be older or newer than it.
    ///
    /// # Safety
    /// As [`Config::init`].
    unsafe fn read(config: *const Self) -> Outcome<Self> {
        let mut known = Self::NOTHING;
        if config.is_null() {
            return Ok(known);
        }
        // SAFETY: the first member is always there.
        let given = unsafe { (&raw const (*config).size).read() };
        if given < offset_of!(Self, device) || given > 1 << 16 {
            return Err(invalid(format!(
                "config says that it is {given} bytes long; begin with UNISONO_CONFIG_INIT"
            )));
        }
        // SAFETY: the caller gives that many bytes.
        let bytes = unsafe { std::slice::from_raw_parts(config.cast::<u8>(), given) };
        let shared = given.min(size_of::<Self>());
        if bytes[shared..].iter().any(|byte| *byte != 0) {
            return Err(invalid(
                "config sets members that this version of the library does not know; update it, or \
                 leave them out",
            ));
        }
        // SAFETY: plain data, of which every prefix may be overwritten by that of another.
        unsafe {
            let to = (&raw mut known).cast::<u8>();
            bytes.as_ptr().copy_to_nonoverlapping(to, shared);
        }
        Ok(known)
    }

    /// # Safety
    /// Texts end in NUL.
    unsafe fn apply(self, mut init: Init) -> Outcome<Init> {
        let text = |name: &str, text: *const c_char| -> Outcome<Option<String>> {
            if text.is_null() {
                return Ok(None);
            }
            // SAFETY: the caller's promise.
            let text = unsafe { CStr::from_ptr(text) }.to_str();
            let text = text.map_err(|_| invalid(format!("config.{name} is not UTF-8")))?;
            Ok(Some(text.to_owned()))
        };
        if let Some(name) = text("name", self.name)? {
            init = init.name(name);
        }
        if let Some(device) = text("device", self.device)? {
            init = init.device(device);
        }
        for plugin in text("plugins", self.plugins)?
            .iter()
            .flat_map(|all| all.split(','))
        {
            init = init.plugin(plugin.trim());
        }
        if let Some(path) = text("cluster_file", self.cluster_file)? {
            init = init.cluster_file(path);
        }
        for (key, milliseconds) in [
            ("timeouts.init", self.init_timeout_ms),
            ("timeouts.op", self.op_timeout_ms),
            ("timeouts.finalize", self.finalize_timeout_ms),
        ] {
            if milliseconds > 0 {
                init = init.set(key, format!("{milliseconds}ms"));
            }
        }
        match self.deterministic {
            0 => {}
            1 => init = init.deterministic(true),
            other => {
                return Err(invalid(format!(
                    "config.deterministic is {other}; give 0 or 1"
                )));
            }
        }
        if self.reserved != 0 {
            return Err(invalid("config.reserved is not 0"));
        }
        Ok(init)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `read` makes of the first `bytes` bytes of a configuration, followed by `after`.
    fn read(config: Config, bytes: usize, after: u8) -> Outcome<Config> {
        let mut memory = [[after; 64]; 4];
        let to = (&raw mut memory).cast::<Config>();
        let config = Config {
            size: bytes,
            ..config
        };
        let whole = size_of::<Config>().min(bytes);
        // SAFETY: both are larger than what is copied; a configuration is plain data.
        unsafe {
            let from = (&raw const config).cast::<u8>();
            from.copy_to_nonoverlapping(to.cast(), whole);
            Config::read(to)
        }
    }

    #[test]
    fn older_and_newer_programs_are_understood() {
        let set = Config {
            op_timeout_ms: 7,
            deterministic: 1,
            ..Config::NOTHING
        };
        let same = read(set, size_of::<Config>(), 1).ok();
        assert_eq!(
            same.map(|c| (c.op_timeout_ms, c.deterministic)),
            Some((7, 1))
        );
        let older = read(set, offset_of!(Config, op_timeout_ms), 1).ok();
        assert_eq!(
            older.map(|c| (c.op_timeout_ms, c.deterministic)),
            Some((0, 0))
        );
        let newer = read(set, size_of::<Config>() + 16, 0).ok();
        assert_eq!(newer.map(|c| c.op_timeout_ms), Some(7));
        assert!(read(set, size_of::<Config>() + 16, 1).is_err());
        assert!(read(set, 0, 0).is_err());
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        // SAFETY: it holds no texts.
        let apply = |config: Config| unsafe { config.apply(Init::default()) };
        assert!(apply(Config::NOTHING).is_ok());
        let twice = Config {
            deterministic: 2,
            ..Config::NOTHING
        };
        assert!(apply(twice).is_err());
        let text = Config {
            device: c"\xff".as_ptr(),
            ..Config::NOTHING
        };
        assert!(apply(text).is_err());
    }
}
