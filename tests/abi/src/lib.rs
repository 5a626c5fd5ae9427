//! Tests of the plugin contract: the header against its Rust mirror.
