//! Plugins of accelerators, run end to end on emulated machines.
//!
//! [`Emulated`] makes a folder with the vendor's libraries as links to the emulators, and the
//! environment under which a process finds them; [`Values`] is a buffer of device memory that a test
//! can fill and read, and [`Driver`] the vendor's interface as a program has it.

mod attempts;
mod calls;
mod collectives;
mod conformance;
mod driver;
mod emulated;
mod flags;
mod share;
mod values;

pub use attempts::{all_of_all_types, attempt, attempts};
pub use calls::Calls;
pub use collectives::{
    a_few, all_done, all_reduce, call, every_collective, every_type, fp8_and_scaled, others,
    own_device,
};
pub use conformance::{answer, conforms};
pub use driver::{Driver, Handle};
pub use emulated::{Emulated, built};
pub use flags::Flags;
pub use share::Share;
pub use values::Values;
