//! The roce plugin as a shared library: `libunisono_plugin_roce.so`. All code is in `unisono-plugin-roce`.
unisono_plugin::export_plugin!(plugin::RocePlugin);
