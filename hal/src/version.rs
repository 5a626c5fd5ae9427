//! The versions of the contract: what each minor added.

use std::fmt;

use unisono_abi as abi;
use unisono_abi::layout::{ALL, Field};

/// What came after 1.0, as (minor, struct, field); `*` is the whole struct.
const ADDED: &[(u16, &str, &str)] = &[
    (1, "unisono_link_info", "rail"),
    (1, "unisono_link_info", "reserved"),
    (1, "unisono_link_statistics", "*"),
    (1, "unisono_link_table", "statistics"),
    (2, "unisono_command_scale", "*"),
    (2, "unisono_command_call", "*"),
    (2, "unisono_cpu_table", "*"),
    (3, "unisono_link_statistics", "recovered"),
    (4, "unisono_dmabuf", "*"),
    (4, "unisono_dmabuf_table", "*"),
    (6, "unisono_link_info", "read_bytes_per_second"),
    (7, "unisono_command_read", "*"),
    (8, "unisono_link_table", "land"),
    (9, "unisono_cpu_table", "combiner"),
];

/// The version of the contract that a host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostVersion {
    minor: u16,
}

impl HostVersion {
    /// The version that this crate was built with.
    pub const CURRENT: Self = Self {
        minor: abi::ABI_MINOR,
    };

    /// An older host of the same major: it knows nothing that came later. For tests of
    /// compatibility. Minors above the current one give the current one.
    #[must_use]
    pub const fn with_minor(minor: u16) -> Self {
        if minor < abi::ABI_MINOR {
            Self { minor }
        } else {
            Self::CURRENT
        }
    }

    /// The major version.
    #[must_use]
    pub const fn major(self) -> u16 {
        abi::ABI_MAJOR
    }

    /// The minor version.
    #[must_use]
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// The older of this minor and a plugin's: what both sides know.
    pub(crate) const fn common(self, plugin_minor: u16) -> u16 {
        if plugin_minor < self.minor {
            plugin_minor
        } else {
            self.minor
        }
    }
}

impl Default for HostVersion {
    fn default() -> Self {
        Self::CURRENT
    }
}

impl fmt::Display for HostVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor)
    }
}

/// The minor in which a field appeared: the later of its own and its struct's.
pub(crate) fn since(field: &Field) -> u16 {
    let added = ADDED
        .iter()
        .filter(|(_, s, f)| *s == field.struct_name && (*f == "*" || *f == field.field));
    added.map(|(minor, ..)| *minor).max().unwrap_or(0)
}

/// Every field that a minor knows.
pub(crate) fn fields(minor: u16) -> impl Iterator<Item = &'static Field> {
    let all = ALL.iter().copied().flatten();
    all.filter(move |field| since(field) <= minor)
}

/// Bytes of a struct in a minor.
pub(crate) fn size_in(struct_name: &str, minor: u16) -> usize {
    let ends = fields(minor)
        .filter(|field| field.struct_name == struct_name)
        .map(|field| (field.offset + field.size) as usize);
    // Every struct of the contract is aligned to 8 bytes or has no 8-byte field at all.
    ends.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_addition_names_a_field_that_exists() {
        for (minor, struct_name, field) in ADDED {
            assert!((1..=abi::ABI_MINOR).contains(minor));
            let mut all = ALL.iter().copied().flatten();
            assert!(
                all.any(|f| f.struct_name == *struct_name && (*field == "*" || f.field == *field)),
                "{struct_name}.{field}"
            );
        }
    }

    #[test]
    fn the_current_minor_knows_the_whole_structs() {
        assert_eq!(size_in("unisono_plugin", 1), size_of::<abi::Plugin>());
        let of_table = [8, 7, 1, 0].map(|minor| size_in("unisono_link_table", minor));
        let now = size_of::<abi::LinkTable>();
        assert_eq!(of_table, [now, now - 8, now - 8, now - 16]);
        let of_link = [6, 5, 1, 0].map(|minor| size_in("unisono_link_info", minor));
        let now = size_of::<abi::LinkInfo>();
        assert_eq!(of_link, [now, now - 8, now - 8, now - 16]);
        assert_eq!(size_in("unisono_link_statistics", 0), 0);
        assert_eq!(
            size_in("unisono_link_statistics", 2),
            size_of::<abi::LinkStatistics>() - 8
        );
        assert_eq!(size_in("unisono_command_scale", 1), 0);
        assert_eq!(
            size_in("unisono_command_call", 2),
            size_of::<abi::CommandCall>()
        );
    }

    #[test]
    fn a_host_is_never_newer_than_it_is() {
        assert_eq!(HostVersion::with_minor(10), HostVersion::CURRENT);
        assert_eq!(HostVersion::with_minor(0).minor(), 0);
        assert_eq!(HostVersion::CURRENT.to_string(), "1.9");
    }
}
