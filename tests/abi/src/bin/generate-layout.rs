//! Writes `include/unisono_plugin_layout.h` anew.

fn main() -> std::io::Result<()> {
    let path = unisono_abi_tests::repository("include/unisono_plugin_layout.h");
    std::fs::write(path, unisono_abi_tests::layout_header())
}
