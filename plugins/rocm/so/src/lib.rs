//! The rocm plugin as a shared library: `libunisono_plugin_rocm.so`. All code is in `unisono-plugin-rocm`.
unisono_plugin::export_plugin!(plugin::RocmPlugin);
