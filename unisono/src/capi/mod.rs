//! The C API, as `include/unisono.h` says it. That file is its documentation.
//!
//! Each function checks its pointers, catches panics, and leaves the whole story of a failure with
//! the calling thread.

mod call;
mod collectives;
mod comm;
mod config;
mod group;
mod init;
mod memory;
mod reduction;
mod result;
mod stream;
mod work;
