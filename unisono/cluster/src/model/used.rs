//! The device that a rank uses, as `PLUGIN:NUMBER`.

use std::fmt;
use std::str::FromStr;

use super::interfaces::text_form;

/// A device by its plugin and its number there: `cuda:3`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UsedDevice {
    /// The plugin.
    pub plugin: String,
    /// The device's number in it, from 0.
    pub number: u32,
}

/// A text that is no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no device; write PLUGIN:NUMBER, such as host:0")]
pub struct UsedDeviceError(String);

impl FromStr for UsedDevice {
    type Err = UsedDeviceError;

    fn from_str(text: &str) -> Result<UsedDevice, UsedDeviceError> {
        let parsed = text.split_once(':').and_then(|(plugin, number)| {
            let (plugin, number) = (plugin.trim(), number.trim().parse().ok()?);
            (!plugin.is_empty()).then(|| UsedDevice {
                plugin: plugin.to_owned(),
                number,
            })
        });
        parsed.ok_or_else(|| UsedDeviceError(text.escape_debug().to_string()))
    }
}

impl fmt::Display for UsedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.plugin, self.number)
    }
}

text_form!(
    UsedDevice,
    "unisono-device",
    "a device of a plugin, by its number",
    r"^.*\S.*:\s*[0-9]+\s*$",
    ["cuda:0", "host:0"]
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let device: UsedDevice = "cuda:3".parse().unwrap();
        assert_eq!((device.plugin.as_str(), device.number), ("cuda", 3));
        assert_eq!(device.to_string(), "cuda:3");
        assert_eq!(" cuda : 3 ".parse(), Ok(device));
        for bad in ["", "cuda", ":1", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2"] {
            let error = bad.parse::<UsedDevice>().unwrap_err().to_string();
            assert!(error.contains("PLUGIN:NUMBER"), "{bad}: {error}");
        }
    }
}
