//! Typed parameters: the plugin's table, and the values of one instance.
#![allow(unsafe_code, reason = "strings of the host's, borrowed for the call")]

use std::fmt;
use std::time::Duration;

use unisono_abi::{ParamValue, param_type};

use crate::{Error, Result};

/// One entry of a plugin's parameter table.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Param(unisono_abi::Param);

impl Param {
    /// A switch.
    #[must_use]
    pub const fn bool(name: &'static str, help: &'static str, default: bool) -> Self {
        let text = if default { "true" } else { "false" };
        Self::new(name, help, text, param_type::BOOL, 0, 1)
    }

    /// A whole number within bounds, both included.
    #[must_use]
    pub const fn int(
        name: &'static str,
        help: &'static str,
        default: &'static str,
        min: i64,
        max: i64,
    ) -> Self {
        Self::new(name, help, default, param_type::INT, min, max)
    }

    /// A size; the default as it would stand in the cluster file ("4MiB"), the bounds in bytes.
    #[must_use]
    pub const fn bytes(
        name: &'static str,
        help: &'static str,
        default: &'static str,
        min: i64,
        max: i64,
    ) -> Self {
        Self::new(name, help, default, param_type::BYTES, min, max)
    }

    /// A time; the default as in the cluster file ("10s"), the bounds in nanoseconds.
    #[must_use]
    pub const fn duration(
        name: &'static str,
        help: &'static str,
        default: &'static str,
        min: i64,
        max: i64,
    ) -> Self {
        Self::new(name, help, default, param_type::DURATION_NS, min, max)
    }

    /// A text.
    #[must_use]
    pub const fn text(name: &'static str, help: &'static str, default: &'static str) -> Self {
        Self::new(name, help, default, param_type::STRING, 0, 0)
    }

    const fn new(
        name: &'static str,
        help: &'static str,
        default: &'static str,
        value_type: u32,
        min: i64,
        max: i64,
    ) -> Self {
        assert!(
            min <= max,
            "a parameter's lower bound is above its upper bound"
        );
        Self(unisono_abi::Param {
            name: crate::raw::text(name),
            help: crate::raw::text(help),
            default_text: crate::raw::text(default),
            value_type,
            reserved: 0,
            min,
            max,
        })
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Param")
            .field("type", &self.0.value_type)
            .field("min", &self.0.min)
            .field("max", &self.0.max)
            .finish_non_exhaustive()
    }
}

/// The values of one instance, one for each entry of the plugin's table.
#[derive(Clone, Copy)]
pub struct Params<'a>(&'a [ParamValue]);

impl<'a> Params<'a> {
    /// Takes the host's values.
    ///
    /// # Safety
    /// Their strings point to `len` readable bytes that live and do not change as long as `'a`.
    #[must_use]
    pub const unsafe fn from_raw(values: &'a [ParamValue]) -> Self {
        Self(values)
    }

    /// A switch.
    ///
    /// # Errors
    /// Invalid if the host did not pass it, or as another type; so for all of these.
    pub fn bool(&self, name: &str) -> Result<bool> {
        Ok(self.find(name, param_type::BOOL)?.number != 0)
    }

    /// A whole number.
    ///
    /// # Errors
    /// As for [`bool`](Self::bool).
    pub fn int(&self, name: &str) -> Result<i64> {
        Ok(self.find(name, param_type::INT)?.number)
    }

    /// A size in bytes.
    ///
    /// # Errors
    /// As for [`bool`](Self::bool); and if it is negative.
    pub fn bytes(&self, name: &str) -> Result<u64> {
        let number = self.find(name, param_type::BYTES)?.number;
        u64::try_from(number)
            .map_err(|_| Error::invalid(format!("parameter {name} is negative: {number}")))
    }

    /// A time.
    ///
    /// # Errors
    /// As for [`bytes`](Self::bytes).
    pub fn duration(&self, name: &str) -> Result<Duration> {
        let number = self.find(name, param_type::DURATION_NS)?.number;
        u64::try_from(number)
            .map(Duration::from_nanos)
            .map_err(|_| Error::invalid(format!("parameter {name} is negative: {number}")))
    }

    /// A text.
    ///
    /// # Errors
    /// As for [`bool`](Self::bool); and if it is not UTF-8.
    pub fn text(&self, name: &str) -> Result<&'a str> {
        let value = self.find(name, param_type::STRING)?;
        // SAFETY: `from_raw`'s caller promised it of every string.
        std::str::from_utf8(unsafe { crate::raw::bytes(value.text) })
            .map_err(|_| Error::invalid(format!("parameter {name} is not UTF-8")))
    }

    fn find(&self, name: &str, value_type: u32) -> Result<&'a ParamValue> {
        let value = self
            .0
            .iter()
            // SAFETY: `from_raw`'s caller promised it of every string.
            .find(|value| unsafe { crate::raw::bytes(value.name) } == name.as_bytes())
            .ok_or_else(|| Error::invalid(format!("the host passed no parameter {name}")))?;
        if value.value_type != value_type {
            return Err(Error::invalid(format!(
                "parameter {name} came as type {}, not {value_type}",
                value.value_type
            )));
        }
        Ok(value)
    }
}

impl fmt::Debug for Params<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Params")
            .field("count", &self.0.len())
            .finish()
    }
}
