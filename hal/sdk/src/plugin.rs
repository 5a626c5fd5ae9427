//! The static facts of a plugin.

use crate::{Context, Instance, Param, Result};

/// A plugin: what it is, and how one use of it begins.
///
/// The facts are constants, so that asking for them starts nothing.
pub trait Plugin: 'static {
    /// One use of the plugin by one process.
    type Instance: Instance;

    /// Its name, as in the cluster file: `[a-z0-9_-]{1,32}`. Another name does not compile.
    const NAME: &'static str;
    /// Its own version.
    const VERSION: &'static str;
    /// Who made it.
    const VENDOR: &'static str;
    /// Which build of the binary this is, for reports.
    const BUILD_ID: &'static str = "";
    /// The parameters that the cluster file may set.
    const PARAMS: &'static [Param] = &[];

    /// Begins one use. May block: it may open drivers.
    ///
    /// # Errors
    /// [`Status::NoDriver`](crate::Status::NoDriver) where the vendor's library is missing.
    fn create(context: Context<'_>) -> Result<Self::Instance>;
}
