//! Whether two processes share a network stack, and so a loopback.

use std::os::unix::fs::MetadataExt;

/// The running kernel and the network namespace, folded into 16 bytes. Two processes with the same
/// one reach each other over loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node([u8; 16]);

impl Node {
    /// What stands for "not known"; it equals no known node.
    pub const UNKNOWN: Self = Self([0; 16]);

    /// From an address.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For an address.
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// Whether both are known and the same.
    pub fn is_same(self, other: Self) -> bool {
        self == other && self != Self::UNKNOWN
    }
}

/// This process's node: the kernel's boot id, mixed with the identity of the network namespace.
pub fn this_node() -> Node {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let space = std::fs::metadata("/proc/self/ns/net").ok();
    let (Some(boot), Some(space)) = (boot, space) else {
        return Node::UNKNOWN;
    };
    let digits: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
    let Ok(boot) = u128::from_str_radix(&digits, 16) else {
        return Node::UNKNOWN;
    };
    let space = u128::from(space.dev()) << 64 | u128::from(space.ino());
    Node((boot ^ space).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_itself_and_the_unknown_is_nobody() {
        let here = this_node();
        assert_ne!(here, Node::UNKNOWN, "/proc is there in the tests");
        assert!(here.is_same(this_node()));
        assert!(!Node::UNKNOWN.is_same(Node::UNKNOWN));
    }
}
