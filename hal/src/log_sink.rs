//! Where a plugin's log records go.

#![allow(
    unsafe_code,
    reason = "hands a Rust object to C as functions and a context"
)]

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use log::{Level, LevelFilter};
use unisono_abi as abi;

/// The longest text that is taken from a record, in bytes.
const TEXT_MAX: u64 = 64 << 10;

/// Takes the log records of an instance. Any thread.
pub trait LogSink: Send + Sync {
    /// The level up to which records are wanted.
    fn level(&self) -> LevelFilter;

    /// Takes a record.
    fn log(&self, record: &PluginRecord<'_>);
}

/// One record of a plugin's log.
#[derive(Clone, Copy, Debug)]
pub struct PluginRecord<'a> {
    /// The plugin.
    pub plugin: &'a str,
    /// Its level.
    pub level: Level,
    /// The part of the plugin that speaks. May be empty.
    pub target: &'a str,
    /// The source file. May be empty.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
    /// What it says.
    pub message: &'a str,
}

/// Gives records to the `log` crate, under the target `unisono::plugin::NAME`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogFacade;

impl LogSink for LogFacade {
    fn level(&self) -> LevelFilter {
        log::max_level()
    }

    fn log(&self, record: &PluginRecord<'_>) {
        let mut target = format!("unisono::plugin::{}", record.plugin);
        if !record.target.is_empty() {
            target.push_str("::");
            target.push_str(record.target);
        }
        log::logger().log(
            &log::Record::builder()
                .level(record.level)
                .target(&target)
                .file(Some(record.file).filter(|f| !f.is_empty()))
                .line(Some(record.line).filter(|&l| l != 0))
                .args(format_args!("{}", record.message))
                .build(),
        );
    }
}

/// `unisono_host` and what it points to. It must outlive the instance.
pub(crate) struct HostServices {
    raw: abi::Host,
    _context: Arc<Context>,
}

struct Context {
    plugin: &'static str,
    sink: Arc<dyn LogSink>,
}

// SAFETY: `raw.context` points to the shared context, which is `Send + Sync`; nothing changes.
unsafe impl Send for HostServices {}
// SAFETY: as above.
unsafe impl Sync for HostServices {}

impl HostServices {
    pub(crate) fn new(plugin: &'static str, sink: Arc<dyn LogSink>) -> Arc<Self> {
        let context = Arc::new(Context { plugin, sink });
        let raw = abi::Host {
            struct_size: size_of::<abi::Host>() as u32,
            reserved: 0,
            context: Arc::as_ptr(&context).cast_mut().cast(),
            log_level: Some(log_level),
            log: Some(take_record),
        };
        Arc::new(Self {
            raw,
            _context: context,
        })
    }

    pub(crate) const fn raw(&self) -> *const abi::Host {
        &raw const self.raw
    }
}

unsafe extern "C" fn log_level(context: *mut c_void) -> u32 {
    // SAFETY: the context is that of a live `HostServices`.
    let context = unsafe { &*context.cast::<Context>() };
    catch_unwind(AssertUnwindSafe(|| context.sink.level() as u32)).unwrap_or(0)
}

unsafe extern "C" fn take_record(context: *mut c_void, record: *const abi::LogRecord) {
    // SAFETY: the context is that of a live `HostServices`; the record and its strings are
    // borrowed for this call.
    let (context, record) = unsafe { (&*context.cast::<Context>(), &*record) };
    let level = match record.level {
        abi::level::ERROR => Level::Error,
        abi::level::WARN => Level::Warn,
        abi::level::INFO => Level::Info,
        abi::level::DEBUG => Level::Debug,
        _ => Level::Trace,
    };
    // SAFETY: as above.
    let [target, file, message] =
        [record.target, record.file, record.message].map(|s| unsafe { lossy(s) });
    // A sink that panics loses its record; there is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if level > context.sink.level() {
            return;
        }
        context.sink.log(&PluginRecord {
            plugin: context.plugin,
            level,
            target: &target,
            file: &file,
            line: record.line,
            message: &message,
        });
    }));
}

/// # Safety
/// `text` is a borrowed string that lives for `'a`.
unsafe fn lossy<'a>(text: abi::Str) -> std::borrow::Cow<'a, str> {
    if text.ptr.is_null() || text.len == 0 {
        return "".into();
    }
    let len = text.len.min(TEXT_MAX) as usize;
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text.ptr.cast(), len) })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Keep(Mutex<Vec<String>>);

    impl LogSink for Keep {
        fn level(&self) -> LevelFilter {
            LevelFilter::Info
        }
        fn log(&self, r: &PluginRecord<'_>) {
            let line = format!("{} {} {} {}", r.plugin, r.level, r.target, r.message);
            self.0.lock().unwrap().push(line);
        }
    }

    fn text(s: &str) -> abi::Str {
        abi::Str {
            ptr: s.as_ptr().cast(),
            len: s.len() as u64,
        }
    }

    #[test]
    fn records_arrive_up_to_the_level() {
        let sink = Arc::new(Keep(Mutex::default()));
        let services = HostServices::new("p", Arc::clone(&sink) as _);
        // SAFETY: `services` and the strings live.
        unsafe {
            let host = &*services.raw();
            assert_eq!(host.log_level.unwrap()(host.context), abi::level::INFO);
            let mut record = abi::LogRecord::zeroed();
            record.target = text("part");
            record.message = text("hello");
            for level in [abi::level::INFO, abi::level::DEBUG, abi::level::ERROR] {
                record.level = level;
                host.log.unwrap()(host.context, &raw const record);
            }
        }
        let lines = sink.0.lock().unwrap();
        assert_eq!(*lines, ["p INFO part hello", "p ERROR part hello"]);
    }
}
