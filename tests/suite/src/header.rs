//! What the header of the C API declares.

use std::collections::BTreeSet;

/// The names of the functions that `unisono.h` declares.
#[must_use]
pub fn header_functions() -> BTreeSet<String> {
    let header = include_str!("../../../include/unisono.h");
    let mut code = String::new();
    for part in header.split("/*") {
        code.push_str(part.split_once("*/").map_or(part, |(_, code)| code));
    }
    let of_line = |line: &str| {
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        (name.starts_with("unisono_") && !line.starts_with("typedef")).then(|| name.to_owned())
    };
    code.lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_types_are_not() {
        let functions = header_functions();
        for name in [
            "unisono_version",
            "unisono_all_reduce",
            "unisono_all_gather_v_on",
        ] {
            assert!(functions.contains(name), "{name}");
        }
        assert!(!functions.contains("unisono_reduce_function"));
        assert!(!functions.contains("unisono_config"));
    }
}
