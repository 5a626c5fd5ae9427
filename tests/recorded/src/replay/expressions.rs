//! Symbolic values: an element of an input, or the sum of two.

use std::collections::HashMap;

/// A value. Equal numbers are equal expressions, so equal bits.
pub(super) type Value = u32;

/// All expressions of one replay.
#[derive(Default)]
pub(super) struct Expressions {
    list: Vec<Expression>,
    known: HashMap<Node, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Input { call: u32, rank: u32, element: u32 },
    Sum(Value, Value),
}

struct Expression {
    node: Node,
    /// The call and the element of it that this is a sum of, and whose contributions are in it.
    of: (u32, u32),
    ranks: u64,
}

impl Expressions {
    /// An element of a rank's input.
    pub(super) fn input(&mut self, call: u32, rank: u32, element: u32) -> Value {
        let node = Node::Input {
            call,
            rank,
            element,
        };
        self.intern(node, (call, element), 1 << rank)
    }

    /// `a + b`; none if they are of different elements, or have a contribution in common.
    pub(super) fn sum(&mut self, a: Value, b: Value) -> Option<Value> {
        let [x, y] = [a, b].map(|value| &self.list[value as usize]);
        let (of, ranks) = (x.of, x.ranks | y.ranks);
        let fits = x.of == y.of && x.ranks & y.ranks == 0;
        fits.then(|| self.intern(Node::Sum(a, b), of, ranks))
    }

    /// Whether a value is this element of that rank's input to a call.
    pub(super) fn is_input(&self, value: Value, call: u32, rank: u32, element: u32) -> bool {
        let node = Node::Input {
            call,
            rank,
            element,
        };
        self.list[value as usize].node == node
    }

    /// Whether a value is the sum of this element of a call's inputs, each once.
    pub(super) fn is_all(&self, value: Value, of: (u32, u32), ranks: u32) -> bool {
        let expression = &self.list[value as usize];
        expression.of == of && expression.ranks == (1 << ranks) - 1
    }

    /// A value in words.
    pub(super) fn text(&self, value: Value) -> String {
        let expression = &self.list[value as usize];
        let (call, element) = expression.of;
        match expression.node {
            Node::Input { rank, .. } => format!("rank {rank}'s element {element} of call {call}"),
            Node::Sum(..) => {
                let ranks: Vec<_> = (0..64).filter(|r| expression.ranks >> r & 1 == 1).collect();
                format!("the sum of ranks {ranks:?} of element {element} of call {call}")
            }
        }
    }

    fn intern(&mut self, node: Node, of: (u32, u32), ranks: u64) -> Value {
        let list = &mut self.list;
        *self.known.entry(node).or_insert_with(|| {
            list.push(Expression { node, of, ranks });
            list.len() as Value - 1
        })
    }
}
