//! Times, memory, waiting and logging: plain figures with defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, TimeSpan};

/// How long things may take. Every wait of the library ends by one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Timeouts {
    /// Forming a communicator (default: 60 s).
    pub init: TimeSpan,
    /// One operation, from when its first step starts (default: 30 s).
    pub op: TimeSpan,
    /// A sign of life is sent to other nodes this often when nothing else is (default: 1 s, at least
    /// 10 ms).
    pub heartbeat_interval: TimeSpan,
    /// A rank of another node that was not heard for this long is dead (default: 15 s, at least three
    /// intervals).
    pub heartbeat_timeout: TimeSpan,
    /// How long a call that failed waits until no stream, link or peer can touch its buffers any more
    /// (default: 5 s).
    pub abort_drain: TimeSpan,
    /// Leaving a communicator in good order (default: 10 s).
    pub finalize: TimeSpan,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            init: TimeSpan::secs(60),
            op: TimeSpan::secs(30),
            heartbeat_interval: TimeSpan::secs(1),
            heartbeat_timeout: TimeSpan::secs(15),
            abort_drain: TimeSpan::secs(5),
            finalize: TimeSpan::secs(10),
        }
    }
}

/// What one communicator may hold on one rank. Memory is taken when it is first needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Memory {
    /// The most that slots take in which a rank receives (default: 256 MiB). As much again may be used to send from, where
    /// links do, as much for places of short puts, as much for what an all_to_all in place puts aside, and where slots are no
    /// longer than 1 MiB up to 8 MiB for what takes half a slot or less between CPUs.
    pub budget: Bytes,
    /// The size of one slot of a channel, the largest piece of a message that travels at once: a multiple of 64 bytes
    /// (default: 128 KiB; between CPUs of which no two share memory up to 384 KiB, as long as all slots to receive take no
    /// more than 16 MiB; where a rank's device is an accelerator up to 8 MiB, as long as they take no more than 128 MiB and
    /// 1/512 of the device's memory: a communicator then holds up to 256 MiB of it in slots, and beside them 0.8 MiB for each
    /// rank and 0.3 MiB more).
    pub slot: Option<Bytes>,
    /// Slots of a channel: how far a sender may run ahead (default: 8, 2 to 1024).
    #[schemars(range(min = 2, max = 1024))]
    pub slots: u32,
    /// Whether ranks on CPUs read each other's memory for long messages, where the system lets them, so that bytes are
    /// copied once (default: true). Else they go through slots.
    pub single_copy: bool,
    /// Whether two ranks on CPUs that send each other data fill slots that they have read before (default: where the
    /// processors of all give a line to the core that reads it, as Intel's do). One rank that does not is enough.
    pub swap_slots: Option<bool>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            budget: Bytes::mib(256),
            slot: None,
            slots: 8,
            single_copy: true,
            swap_slots: None,
        }
    }
}

/// Who moves small messages, and how a wait is waited: it spins, then yields the processor, then
/// sleeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Progress {
    /// How long it spins (default: 100 us). Not at all when a machine has more ranks than cores.
    pub spin: TimeSpan,
    /// How long it yields after that, before it sleeps (default: 200 us).
    #[serde(rename = "yield")]
    pub yield_for: TimeSpan,
    /// Whether the calling thread moves a small message between CPUs by itself, in place of the
    /// device's stream (default: true). The same bits either way.
    pub direct: bool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            spin: TimeSpan::micros(100),
            yield_for: TimeSpan::micros(200),
            direct: true,
        }
    }
}

/// What is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Log {
    /// The least severe records that are kept (default: warn).
    pub level: LogLevel,
}

/// How severe a log record is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Nothing is logged.
    Off,
    /// Something failed.
    Error,
    /// Something is not as it should be, but work goes on.
    #[default]
    Warn,
    /// What was found and chosen.
    Info,
    /// Why it was chosen.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// Its name, as in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Off => "off",
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}
