//! The cuda plugin as a shared library: `libunisono_plugin_cuda.so`. All code is in `unisono-plugin-cuda`.
unisono_plugin::export_plugin!(plugin::CudaPlugin);
