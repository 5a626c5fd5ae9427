//! `include/unisono_plugin_layout.h`, from the layout table of the Rust mirror.

use std::fmt::Write as _;

use unisono_abi::layout::ALL;

const TOP: &str = "\
/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * unisono_plugin_layout.h - the layout table of a plugin in C or C++, by its own compiler.
 *
 *   static const unisono_layout_entry layout[] = {UNISONO_LAYOUT_TABLE};
 *   ... .layout = layout, .layout_count = sizeof(layout) / sizeof(layout[0]) ...
 *
 * The host compares it with its own at load and names the first field that differs. A field that a
 * later minor adds is compared only where both sides know it.
 *
 * Made by `cargo xtask abi`; a test compares. Do not edit.
 */
#ifndef UNISONO_PLUGIN_LAYOUT_H
#define UNISONO_PLUGIN_LAYOUT_H

#include \"unisono_plugin.h\"

#define UNISONO_LAYOUT_FIELD(type, field) \\
  {#type, #field, (uint32_t)offsetof(type, field), (uint32_t)sizeof(((type *)0)->field)},
";

/// The header's text.
#[must_use]
pub fn layout_header() -> String {
    let mut text = TOP.to_owned();
    for fields in ALL {
        let _ = write!(text, "\n#define UNISONO_LAYOUT_{}", fields[0].struct_name);
        for field in *fields {
            let _ = write!(
                text,
                " \\\n  UNISONO_LAYOUT_FIELD({}, {})",
                field.struct_name, field.field
            );
        }
        text.push('\n');
    }
    text.push_str(
        "\n/* All of them, in the order of unisono_plugin.h. */\n#define UNISONO_LAYOUT_TABLE",
    );
    for fields in ALL {
        let _ = write!(text, " \\\n  UNISONO_LAYOUT_{}", fields[0].struct_name);
    }
    text.push_str("\n\n#endif /* UNISONO_PLUGIN_LAYOUT_H */\n");
    text
}
