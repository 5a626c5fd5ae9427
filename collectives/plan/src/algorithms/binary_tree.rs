//! The binary tree over numbers in which an in-order walk counts them: a formula, no table.
//!
//! With positions counted from 1, the trailing zeros of a number are its level: odd numbers are
//! leaves, even ones are inside, and a number's children lie at half its lowest bit on both sides.
//! Where a child would be beyond the last number, its own left child takes its place.

/// A tree over `count` positions, all shifted by some.
#[derive(Debug, Clone, Copy)]
pub(super) struct BinaryTree {
    count: u32,
    shift: u32,
}

/// A position with its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) depth: u32,
    pub(super) parent: Option<u32>,
    pub(super) left: Option<u32>,
    pub(super) right: Option<u32>,
}

impl Node {
    pub(super) fn children(&self) -> impl Iterator<Item = u32> + use<> {
        self.left.into_iter().chain(self.right)
    }
}

impl BinaryTree {
    /// A tree over positions `0..count`, of which there is one at least.
    pub(super) fn new(count: u32, shift: u32) -> Self {
        Self { count, shift }
    }

    /// The largest depth.
    pub(super) fn height(&self) -> u32 {
        self.count.ilog2()
    }

    /// The position at the top.
    pub(super) fn root(&self) -> u32 {
        self.position(1 << self.height())
    }

    pub(super) fn node(&self, position: u32) -> Node {
        let number = (position + self.shift) % self.count + 1;
        let mut depth = 0;
        let mut above = number;
        while let Some(parent) = self.parent(above) {
            (above, depth) = (parent, depth + 1);
        }
        let half = lowest(number) / 2;
        let right = (0..half.max(1).ilog2() + 1)
            .map(|down| number + (half >> down))
            .find(|&right| right <= self.count)
            .filter(|_| half > 0);
        Node {
            depth,
            parent: self.parent(number).map(|parent| self.position(parent)),
            left: (half > 0).then(|| self.position(number - half)),
            right: right.map(|right| self.position(right)),
        }
    }

    /// The parent of a number: the next one upwards that is there.
    fn parent(&self, number: u32) -> Option<u32> {
        let mut above = number;
        while above != 1 << self.height() {
            let low = lowest(above);
            above = (above ^ low) | (low << 1);
            if above <= self.count {
                return Some(above);
            }
        }
        None
    }

    fn position(&self, number: u32) -> u32 {
        (number - 1 + self.count - self.shift % self.count) % self.count
    }
}

/// The lowest bit of a number that is not 0.
fn lowest(number: u32) -> u32 {
    1 << number.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_agree() {
        for count in 1..=200 {
            for shift in [0, 1] {
                let tree = BinaryTree::new(count, shift);
                let nodes: Vec<Node> = (0..count).map(|at| tree.node(at)).collect();
                let mut children = 0;
                for (at, node) in (0..).zip(&nodes) {
                    assert!(node.depth <= tree.height());
                    assert_eq!(node.parent.is_none(), at == tree.root());
                    for child in node.children() {
                        let below = nodes[child as usize];
                        assert_eq!((below.parent, below.depth), (Some(at), node.depth + 1));
                        children += 1;
                    }
                }
                assert_eq!(children, count - 1);
            }
        }
    }

    #[test]
    fn nobody_is_inside_both_trees() {
        for count in 1..=200 {
            let [one, other] = [0, 1].map(|shift| BinaryTree::new(count, shift));
            let inside = |tree: BinaryTree, at| tree.node(at).left.is_some();
            assert!((0..count).all(|at| !(inside(one, at) && inside(other, at))));
        }
    }
}
