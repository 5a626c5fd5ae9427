//! Opaque handles: pointers that only the plugin looks behind.

use core::ffi::c_void;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub *mut c_void);

        impl $name {
            /// No handle.
            pub const NULL: Self = Self(core::ptr::null_mut());
        }
    )+};
}

handles! {
    /// One use of a plugin by one process.
    Instance,
    /// One opened device.
    Device,
    /// Allocated, registered, wrapped or imported memory.
    Memory,
    /// An ordered queue of a device.
    Stream,
    /// An event.
    Event,
    /// A posted link to one peer, for one channel.
    Link,
}
