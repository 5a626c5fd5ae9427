//! The error of a call to a plugin: who was asked for what, and what it said.

use std::ffi::CStr;
use std::fmt;

use unisono_abi as abi;

use crate::Status;

/// The result of a call to a plugin.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A call to a plugin failed, or was refused before it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What kind of failure.
    pub status: Status,
    /// The plugin's name.
    pub plugin: &'static str,
    /// The function of the contract, as `table.function`.
    pub call: &'static str,
    /// The vendor's own code (`errno` for the system), 0 if there is none.
    pub vendor_code: i64,
    /// With [`Status::Mismatch`]: the words that were found.
    pub words: [u64; 3],
    /// What happened, in the plugin's words or the host's. May be empty.
    pub message: String,
}

impl Error {
    /// An error that the host found itself.
    pub(crate) fn host(
        plugin: &'static str,
        call: &'static str,
        status: Status,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            plugin,
            call,
            vendor_code: 0,
            words: [0; 3],
            message: message.into(),
        }
    }

    /// What a plugin wrote to its error record.
    pub(crate) fn from_record(
        plugin: &'static str,
        call: &'static str,
        code: abi::Status,
        record: &abi::Error,
    ) -> Self {
        Self {
            status: Status::from_raw(code),
            plugin,
            call,
            vendor_code: record.vendor_code,
            words: record.words,
            message: text(&record.message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin {}: {}: {}", self.plugin, self.call, self.status)?;
        if self.vendor_code != 0 {
            write!(f, " (vendor code {})", self.vendor_code)?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The text in a fixed array, up to its NUL; what is not UTF-8 is replaced.
pub(crate) fn text(chars: &[std::ffi::c_char]) -> String {
    // A C char is signed on some platforms and unsigned on others; its byte is the same.
    let bytes: Vec<u8> = chars.iter().flat_map(|c| c.to_ne_bytes()).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// An empty record for a plugin to write to.
pub(crate) fn record() -> abi::Error {
    let mut record = abi::Error::zeroed();
    record.struct_size = size_of::<abi::Error>() as u32;
    record
}

/// Whether a call that may have nothing to give had something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Again,
}

/// Makes one call that is not hot, with a fresh error record.
pub(crate) fn call(
    plugin: &'static str,
    name: &'static str,
    function: impl FnOnce(&mut abi::Error) -> abi::Status,
) -> Result<Answer> {
    let mut record = record();
    match function(&mut record) {
        abi::status::OK => Ok(Answer::Done),
        abi::status::AGAIN => Ok(Answer::Again),
        code if code < 0 => Err(Error::from_record(plugin, name, code, &record)),
        code => Err(Error::host(
            plugin,
            name,
            Status::Invalid,
            format!("the plugin answered {code}, which is no status"),
        )),
    }
}

/// As [`call`], for functions that never answer "again".
pub(crate) fn call_done(
    plugin: &'static str,
    name: &'static str,
    function: impl FnOnce(&mut abi::Error) -> abi::Status,
) -> Result<()> {
    match call(plugin, name, function)? {
        Answer::Done => Ok(()),
        Answer::Again => Err(Error::host(
            plugin,
            name,
            Status::Invalid,
            "the plugin answered AGAIN, which this function never does",
        )),
    }
}
