//! A forked child has no device: drivers do not survive a fork. It is found out at its first call.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::OnceLock;

use unisono_plugin::{Error, Result};

static OWNER: OnceLock<u32> = OnceLock::new();

/// Whether this process is a forked child of the one that used the plugin.
pub(crate) fn is_child() -> bool {
    OWNER
        .get()
        .is_some_and(|owner| *owner != std::process::id())
}

/// Makes the first process that asks the owner; an error in its children.
///
/// # Errors
/// In a forked child.
pub fn check() -> Result<()> {
    if *OWNER.get_or_init(std::process::id) == std::process::id() {
        return Ok(());
    }
    Err(Error::invalid(
        "this process was forked from one that had used a device, and cannot use it: fork before \
         the first instance is created, or exec a program",
    ))
}

/// What calls the driver when it is dropped, or waits for a thread: a forked child, which has neither,
/// leaves it as it is.
#[derive(Debug)]
pub(crate) struct Unforked<T>(ManuallyDrop<T>);

impl<T> Unforked<T> {
    pub(crate) const fn new(of: T) -> Self {
        Self(ManuallyDrop::new(of))
    }
}

impl<T> Deref for Unforked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for Unforked<T> {
    #[allow(unsafe_code, reason = "drops what is not dropped by itself")]
    fn drop(&mut self) {
        if !is_child() {
            // SAFETY: once, as this is dropped once, and used by nobody any more.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
