//! Why a plugin is refused: one reason each, with what was found and what would be right.

use std::path::PathBuf;

use crate::HostVersion;

/// Why a plugin's library is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// Anybody may write to the file or to its folder.
    #[error(
        "{} can be written by everyone (mode {mode:o}), so anybody could have put code there; \
         take that right away (chmod o-w), or allow it explicitly", .path.display()
    )]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is no ELF file.
    #[error("is not an ELF file")]
    NotElf,
    /// The file ends before what its headers promise.
    #[error("is truncated: {0}")]
    Truncated(String),
    /// The library is for another kind of machine.
    #[error("is for {found}, this machine is {wanted}")]
    Machine {
        /// What it is for.
        found: String,
        /// What this is.
        wanted: &'static str,
    },
    /// The file is ELF, but no shared library.
    #[error("is an ELF {0}, not a shared library")]
    NotShared(String),
    /// The library does not export the query.
    #[error("does not export {}", unisono_abi::QUERY_SYMBOL)]
    NoSymbol,
    /// A library that it needs is not on this machine.
    #[error(
        "needs {}, which {} not found; install {} or add {} folder to LD_LIBRARY_PATH",
        .names.join(", "), was(.names), it(.names), its(.names)
    )]
    NeedsLibrary {
        /// The names that are missing.
        names: Vec<String>,
    },
    /// The system's loader refused it.
    #[error("the system's loader refused it: {0}")]
    Dlopen(String),
    /// The bytes of the file are not those that its manifest names.
    #[error("has the SHA-256 {found}, its manifest names {wanted}")]
    Digest {
        /// Of the file.
        found: String,
        /// In the manifest.
        wanted: String,
    },
    /// The manifest is wrong.
    #[error("its manifest is wrong: {0}")]
    Manifest(String),
    /// The query answered NULL.
    #[error("does not serve a host of version {host}")]
    NotForThisHost {
        /// The host's version.
        host: HostVersion,
    },
    /// An address that the plugin gave cannot be read.
    #[error("{what} lies at {address:#x}, which cannot be read")]
    Address {
        /// What should be there.
        what: String,
        /// The address.
        address: u64,
    },
    /// The record does not start with the magic number.
    #[error("its record starts with {found:#x}, not with the magic number")]
    Magic {
        /// What was found.
        found: u64,
    },
    /// Another major version of the contract.
    #[error(
        "speaks version {}.{} of the contract, this host speaks {host}: the majors must match, so \
         build the plugin against this version's unisono_plugin.h", .found.0, .found.1
    )]
    Major {
        /// The plugin's (major, minor).
        found: (u16, u16),
        /// The host's.
        host: HostVersion,
    },
    /// A struct is smaller than in the version that the plugin declares.
    #[error("{name} has {found} bytes, at least {least} in version 1.{minor} of the contract")]
    Short {
        /// The struct.
        name: &'static str,
        /// Its `struct_size`.
        found: u32,
        /// What it has in that version.
        least: usize,
        /// The older of the two sides' minors.
        minor: u16,
    },
    /// A struct is too large to be true.
    #[error("{name} says that it has {found} bytes, more than {most} are not believed")]
    Size {
        /// The struct.
        name: &'static str,
        /// Its `struct_size`.
        found: u32,
        /// The most that is believed.
        most: u32,
    },
    /// A count or a length is too large to be true.
    #[error("{what} is {found}, more than {most} is not believed")]
    Count {
        /// What is counted.
        what: String,
        /// The count.
        found: u64,
        /// The most that is believed.
        most: u64,
    },
    /// A text is not UTF-8.
    #[error("{what} is not UTF-8")]
    Text {
        /// The text.
        what: String,
    },
    /// The name breaks the rule for names.
    #[error("its name {found:?} is not {}", crate::name::RULE)]
    Name {
        /// The name.
        found: String,
    },
    /// It was found under another name than its own.
    #[error("calls itself {found:?}, {wanted:?} was looked for")]
    OtherName {
        /// Its name.
        found: String,
        /// The name in the file's name or the manifest.
        wanted: String,
    },
    /// It requires behaviour that this host does not have.
    #[error("requires features {bits:#x}, which this host does not know; use a newer host")]
    Features {
        /// The unknown bits.
        bits: u64,
    },
    /// It was built with a sanitizer that this process does not run.
    #[error("was built with the {plugin} sanitizer, this process runs with {host}")]
    Sanitizer {
        /// The plugin's.
        plugin: String,
        /// The host's.
        host: &'static str,
    },
    /// A field lies elsewhere than the contract says.
    #[error(
        "{name}.{field} is at offset {} with {} bytes in the plugin, at offset {} with {} bytes \
         in the host: compile the plugin against include/unisono_plugin.h, without packing",
        .plugin.0, .plugin.1, .host.0, .host.1
    )]
    Layout {
        /// The struct.
        name: String,
        /// The first field that differs.
        field: String,
        /// Its (offset, size) in the plugin.
        plugin: (u32, u32),
        /// Its (offset, size) in the host.
        host: (u32, u32),
    },
    /// The layout table leaves out a field.
    #[error("its layout table has no entry for {name}.{field}")]
    LayoutMissing {
        /// The struct.
        name: String,
        /// The first field that is left out.
        field: String,
    },
    /// A table that every plugin has is missing.
    #[error("has no {0}")]
    MissingTable(&'static str),
    /// A function that it must have is missing.
    #[error("has no {table}.{function}, which {why}")]
    MissingFunction {
        /// The table.
        table: &'static str,
        /// The function.
        function: &'static str,
        /// Why it must be there.
        why: &'static str,
    },
    /// An entry of its parameter table is wrong.
    #[error("its parameter {name} is wrong: {what}")]
    Param {
        /// The parameter's name, or its number.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// The host itself could not make the checks.
    #[error("could not be checked: {0}")]
    Host(String),
}

fn was(names: &[String]) -> &'static str {
    if names.len() == 1 { "was" } else { "were" }
}

fn it(names: &[String]) -> &'static str {
    if names.len() == 1 { "it" } else { "them" }
}

fn its(names: &[String]) -> &'static str {
    if names.len() == 1 { "its" } else { "their" }
}
