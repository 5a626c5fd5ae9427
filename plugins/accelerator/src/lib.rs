//! What plugins of accelerators have in common.
