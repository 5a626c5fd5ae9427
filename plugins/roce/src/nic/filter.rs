//! Which devices may be used: names with `*`, `!` before one leaves it out.

use std::fmt;
use std::str::FromStr;

/// A list of devices to use and to leave out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    /// With `*` for any run of characters.
    name: String,
    port: Option<u8>,
}

/// A list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is no device: write a name such as mlx5_0, mlx5_* or mlx5_0:2, and ! before one to \
             leave it out",
            self.0
        )
    }
}

impl Filter {
    /// Where a device stands in the order of the list, `None` if it is not to be used. With an empty
    /// list all are to be used, and all stand alike.
    pub(crate) fn place(&self, device: &str, port: u8) -> Option<usize> {
        if self.unwanted.iter().any(|p| p.matches(device, port)) {
            return None;
        }
        if self.wanted.is_empty() {
            return Some(0);
        }
        self.wanted.iter().position(|p| p.matches(device, port))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        for item in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (list, name) = match item.strip_prefix('!') {
                Some(name) => (&mut filter.unwanted, name),
                None => (&mut filter.wanted, item),
            };
            let bad = || FilterError(item.to_owned());
            let (name, port) = match name.split_once(':') {
                None => (name, None),
                Some((name, port)) => {
                    let port = port.parse().map_err(|_| bad())?;
                    (name, (port > 0).then_some(Some(port)).ok_or_else(bad)?)
                }
            };
            let usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*');
            if name.is_empty() || name.len() > 64 || !name.chars().all(usual) {
                return Err(bad());
            }
            list.push(Pattern {
                name: name.to_owned(),
                port,
            });
        }
        Ok(filter)
    }
}

impl Pattern {
    fn matches(&self, device: &str, port: u8) -> bool {
        self.port.is_none_or(|p| p == port) && glob(&self.name, device)
    }
}

/// Whether a name fits a pattern with `*`.
fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ports_and_exclusions() {
        let filter: Filter = "mlx5_1, rxe*, !rxe3, mlx5_2:2".parse().unwrap();
        assert_eq!(filter.place("mlx5_1", 1), Some(0));
        assert_eq!(filter.place("rxe0", 1), Some(1));
        assert_eq!(filter.place("rxe3", 1), None);
        assert_eq!(filter.place("mlx5_2", 2), Some(2));
        assert_eq!(filter.place("mlx5_2", 1), None);
        assert_eq!(filter.place("mlx5_10", 1), None);
        let all: Filter = " ".parse().unwrap();
        assert_eq!(all.place("anything", 9), Some(0));
        let but: Filter = "!mlx5_0".parse().unwrap();
        assert_eq!(but.place("mlx5_0", 1), None);
        assert_eq!(but.place("mlx5_1", 1), Some(0));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in [
            "a b",
            "mlx5_0:0",
            "mlx5_0:x",
            "!",
            ":1",
            "mlx5_0:300",
            "a/b",
        ] {
            assert!(bad.parse::<Filter>().is_err(), "{bad}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("*", "x", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "abd", false),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axc", false),
            ("ab*ba", "aba", false),
            ("ab", "abc", false),
        ] {
            assert_eq!(glob(pattern, name), fits, "{pattern} {name}");
        }
    }
}
