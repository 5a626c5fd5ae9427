//! The tcp plugin as a shared library: `libunisono_plugin_tcp.so`. All code is in `unisono-plugin-tcp`.
unisono_plugin::export_plugin!(plugin::TcpPlugin);
