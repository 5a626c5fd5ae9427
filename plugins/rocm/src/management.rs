//! The management libraries, for what the runtime does not tell: the rates of links.
//!
//! `rocm-smi` is asked first, whose numbers have stayed; where it is not, as newer releases leave it out,
//! `amd-smi`, in releases whose numbers are known.

mod amd_smi;
mod rocm_smi;

use unisono_plugin::{Error, Result, Status};

use amd_smi::AmdSmi;
use rocm_smi::RocmSmi;

/// Weights of a way of one hop; the libraries give their rates only for those.
const ONE_HOP: [u64; 3] = [13, 15, 41];

/// A library, in use.
#[derive(Debug)]
pub(crate) enum Management {
    RocmSmi(RocmSmi),
    AmdSmi(AmdSmi),
}

/// The way between two devices over the vendor's own links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Xgmi {
    /// Links one after another.
    pub(crate) hops: u32,
    /// What it carries each way, 0 if unknown.
    pub(crate) bytes_per_second: u64,
}

/// What a library says of the way between two devices, if that is over the vendor's own links.
#[derive(Clone, Copy, Debug)]
struct Told {
    weight: u64,
    /// If it says that.
    megabytes_per_second: Option<u64>,
}

impl Management {
    /// Opens one.
    ///
    /// # Errors
    /// Neither is there, or starts: why of both.
    pub(crate) fn open() -> Result<Self> {
        let first = match RocmSmi::open() {
            Ok(library) => return Ok(Self::RocmSmi(library)),
            Err(error) => error,
        };
        match AmdSmi::open() {
            Ok(library) => Ok(Self::AmdSmi(library)),
            Err(second) => Err(Error::new(
                first.status(),
                format!("{first}; nor amd-smi: {second}"),
            )),
        }
    }

    /// The way between the devices in two slots; none if it is not over the vendor's own links.
    ///
    /// # Errors
    /// The library does not know the devices, or does not say how they are joined.
    pub(crate) fn between(&self, from: &str, to: &str) -> Result<Option<Xgmi>> {
        let told = match self {
            Self::RocmSmi(library) => library.between(from, to),
            Self::AmdSmi(library) => library.between(from, to),
        };
        Ok(told?.map(Xgmi::of))
    }
}

impl Xgmi {
    /// Both libraries say one hop of every way over these links: only the weight tells.
    fn of(told: Told) -> Self {
        let one = ONE_HOP.contains(&told.weight);
        let known = told.megabytes_per_second.filter(|_| one).unwrap_or(0);
        Self {
            hops: if one { 1 } else { 2 },
            bytes_per_second: known.saturating_mul(1_000_000),
        }
    }
}

/// What a library answers, as an error.
fn check(call: &str, code: u32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => {
            let error = Error::new(Status::Device, format!("{call} answers {code}"));
            Err(error.with_vendor_code(code.into()))
        }
    }
}

fn missing(symbol: &str) -> Error {
    let what = format!("the management library has no {symbol}");
    Error::new(Status::NoDriver, what)
}

fn unknown(pci: &str) -> Error {
    let what = format!("the management library has no device {pci}");
    Error::new(Status::Device, what)
}

/// Domain, bus, device and function of "0000:1b:00.0".
fn slot(pci: &str) -> Option<[u64; 4]> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (domain, rest) = pci.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    Some([hex(domain)?, hex(bus)?, hex(device)?, hex(function)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_tells_the_hops() {
        let told = |weight, megabytes_per_second| {
            Xgmi::of(Told {
                weight,
                megabytes_per_second,
            })
        };
        let [near, far] = [told(15, Some(50_000)), told(30, Some(50_000))];
        assert_eq!((near.hops, near.bytes_per_second), (1, 50_000_000_000));
        assert_eq!((far.hops, far.bytes_per_second), (2, 0));
        assert_eq!(told(13, None).bytes_per_second, 0);
    }

    #[test]
    fn slots_are_read() {
        assert_eq!(slot("0001:c1:02.3"), Some([1, 0xc1, 2, 3]));
        assert_eq!(slot("c1:00.0"), None);
    }
}
