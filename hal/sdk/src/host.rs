//! The host's services to an instance: its log.
#![allow(
    unsafe_code,
    reason = "function pointers and a context, all the host's"
)]

use std::fmt;

use unisono_abi::level;

/// How loud a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Something failed.
    Error = level::ERROR,
    /// Something is not as it should be.
    Warn = level::WARN,
    /// A milestone.
    Info = level::INFO,
    /// For whoever looks for a fault.
    Debug = level::DEBUG,
    /// Everything.
    Trace = level::TRACE,
}

/// The host's services. Valid until the instance is dropped; any thread may use it.
///
/// ```
/// # fn with(host: unisono_plugin::Host) {
/// unisono_plugin::log!(host, unisono_plugin::Level::Warn, "no NUMA node for {}", "eth0");
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Host {
    raw: unisono_abi::Host,
}

// SAFETY: the contract lets any thread call the host's services.
unsafe impl Send for Host {}
// SAFETY: as above; calling them does not change the record.
unsafe impl Sync for Host {}

impl Host {
    /// A host without services: for a plugin's own tests. It drops every record.
    #[must_use]
    pub const fn silent() -> Self {
        Self {
            raw: unisono_abi::Host::zeroed(),
        }
    }

    /// Takes the host's record.
    ///
    /// # Safety
    /// Its functions may be called with its context, from any thread, as long as it is kept.
    #[must_use]
    pub const unsafe fn from_raw(raw: unisono_abi::Host) -> Self {
        Self { raw }
    }

    /// Whether a record of this level would be kept: ask before making a dear one.
    #[must_use]
    pub fn enabled(&self, level: Level) -> bool {
        let (Some(_), Some(log_level)) = (self.raw.log, self.raw.log_level) else {
            return false;
        };
        // SAFETY: `from_raw`'s caller promised that the function may be called with the context.
        level as u32 <= unsafe { log_level(self.raw.context) }
    }

    /// Writes a record; see [`log!`](crate::log).
    pub fn log(&self, level: Level, target: &str, at: (&str, u32), message: fmt::Arguments<'_>) {
        if !self.enabled(level) {
            return;
        }
        let Some(log) = self.raw.log else { return };
        let text = message
            .as_str()
            .map_or_else(|| message.to_string().into(), std::borrow::Cow::from);
        let record = unisono_abi::LogRecord {
            struct_size: size_of::<unisono_abi::LogRecord>() as u32,
            level: level as u32,
            target: crate::raw::text(target),
            file: crate::raw::text(at.0),
            line: at.1,
            reserved: 0,
            message: crate::raw::text(&text),
        };
        // SAFETY: as above; the record and its strings live until the call returns.
        unsafe { log(self.raw.context, &raw const record) };
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

/// Writes a record to the host's log: `log!(host, Level::Warn, "format {}", x)`.
#[macro_export]
macro_rules! log {
    ($host:expr, $level:expr, $($message:tt)+) => {
        $host.log($level, module_path!(), (file!(), line!()), format_args!($($message)+))
    };
}
