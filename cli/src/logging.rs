//! The `log` backend of this program: standard error, with the rank in front.

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::output;

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error => "error",
            Level::Warn => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
            Level::Trace => "trace",
        };
        output::line(&format!("{level}: {}", record.args()));
    }

    fn flush(&self) {}
}

/// Installs it. Until a cluster file says otherwise, warnings are shown, and more with each `-v`.
pub fn install(verbose: u8) {
    let level = from_verbose(verbose).unwrap_or(LevelFilter::Warn);
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(level);
    }
}

/// Takes the level of the cluster in effect, unless more was asked for with `-v`.
pub fn take_level(cluster: &unisono::cluster::Cluster) {
    use unisono::cluster::LogLevel;
    let level = match cluster.log.level {
        LogLevel::Off => LevelFilter::Off,
        LogLevel::Error => LevelFilter::Error,
        LogLevel::Warn => LevelFilter::Warn,
        LogLevel::Info => LevelFilter::Info,
        LogLevel::Debug => LevelFilter::Debug,
        LogLevel::Trace => LevelFilter::Trace,
    };
    if log::max_level() <= LevelFilter::Warn {
        log::set_max_level(level);
    }
}

fn from_verbose(verbose: u8) -> Option<LevelFilter> {
    match verbose {
        0 => None,
        1 => Some(LevelFilter::Info),
        2 => Some(LevelFilter::Debug),
        _ => Some(LevelFilter::Trace),
    }
}
