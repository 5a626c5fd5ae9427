//! The ascend plugin as a shared library: `libunisono_plugin_ascend.so`. All code is in `unisono-plugin-ascend`.
unisono_plugin::export_plugin!(plugin::AscendPlugin);
