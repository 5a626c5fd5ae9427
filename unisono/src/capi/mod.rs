//! The C API, as `include/unisono.h` says it. That file is its documentation.
//!
//! Each function checks its pointers, catches panics, and leaves the whole story of a failure with
//! the calling thread.

mod call;
mod comm;
mod memory;
mod result;
mod work;
