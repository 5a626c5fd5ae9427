//! The two entries of a plugin: linked in, and exported from a shared library.

/// Makes `pub extern "C" fn query` for a plugin: the entry by which it is linked statically.
///
/// Put it in the crate that holds the plugin's code. It exports no symbol, so that any number of
/// plugins can be in one binary.
#[macro_export]
macro_rules! plugin {
    ($plugin:ty) => {
        /// Answers who this plugin is and what it can do: the entry for linking it statically.
        ///
        /// NULL if it cannot serve a host of that version.
        pub extern "C" fn query(host_major: u32, host_minor: u32) -> *const $crate::abi::Plugin {
            $crate::query::<$plugin>(host_major, host_minor)
        }
    };
}

/// Exports `unisono_plugin_query` for a plugin: the whole content of its `cdylib` crate.
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        #[doc(hidden)]
        #[unsafe(no_mangle)]
        #[allow(unsafe_code, reason = "the one symbol that the contract asks for")]
        pub extern "C" fn unisono_plugin_query(
            host_major: u32,
            host_minor: u32,
        ) -> *const $crate::abi::Plugin {
            $crate::query::<$plugin>(host_major, host_minor)
        }
    };
}
