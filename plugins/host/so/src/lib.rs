//! The host plugin as a shared library: `libunisono_plugin_host.so`. All code is in `unisono-plugin-host`.
unisono_plugin::export_plugin!(plugin::HostPlugin);
