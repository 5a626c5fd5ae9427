//! The kernels that plugins of accelerators load: one source, compiled ahead.
