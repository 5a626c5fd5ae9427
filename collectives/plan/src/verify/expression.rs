//! Symbolic values: each expression exists once, so equality is equality of numbers.
//!
//! A value is never of a piece of its own: steps work on one piece, and slots say whose piece they
//! hold. So all pieces share expressions.

use super::hash::Map;
use super::sets::{Set, Sets};

/// An expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Expr(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    /// One block of the input of a rank, by its number.
    Input { rank: u32, block: u32 },
    /// `a (+) b`.
    Sum { a: Expr, b: Expr },
}

#[derive(Debug)]
struct Facts {
    node: Node,
    /// The ranks that contribute.
    contributors: Set,
    /// `n` if this is the left fold of the inputs of ranks `0..n`, else 0.
    fold: u32,
}

/// All expressions of a run.
#[derive(Debug)]
pub(super) struct Expressions {
    facts: Vec<Facts>,
    numbers: Map<Node, Expr>,
    sets: Sets,
}

impl Expr {
    /// The number in a cell; never 0.
    pub(super) fn code(self) -> u32 {
        self.0 + 1
    }

    pub(super) fn from_code(code: u32) -> Option<Self> {
        code.checked_sub(1).map(Expr)
    }
}

impl Expressions {
    pub(super) fn new() -> Self {
        Self {
            facts: Vec::new(),
            numbers: Map::default(),
            sets: Sets::new(),
        }
    }

    pub(super) fn input(&mut self, rank: u32, block: u32) -> Expr {
        let node = Node::Input { rank, block };
        if let Some(&known) = self.numbers.get(&node) {
            return known;
        }
        let contributors = self.sets.one(rank);
        self.add(node, contributors, u32::from(rank == 0))
    }

    /// `a (+) b`, or a rank that contributes to both.
    pub(super) fn sum(&mut self, a: Expr, b: Expr) -> Result<Expr, u32> {
        let node = Node::Sum { a, b };
        if let Some(&known) = self.numbers.get(&node) {
            return Ok(known);
        }
        let (x, y) = (self.facts(a), self.facts(b));
        let fold = match y.node {
            Node::Input { rank, .. } if x.fold > 0 && rank == x.fold => x.fold + 1,
            _ => 0,
        };
        let contributors = self.sets.union(x.contributors, y.contributors)?;
        Ok(self.add(node, contributors, fold))
    }

    /// Whether this is a block of the input of a rank.
    pub(super) fn is_input(&self, expr: Expr, rank: u32, block: u32) -> bool {
        self.facts(expr).node == Node::Input { rank, block }
    }

    /// The rank and the block of an input.
    pub(super) fn origin(&self, expr: Expr) -> Option<(u32, u32)> {
        match self.facts(expr).node {
            Node::Input { rank, block } => Some((rank, block)),
            Node::Sum { .. } => None,
        }
    }

    /// Whether all of `ranks` ranks contribute.
    pub(super) fn is_complete(&self, expr: Expr, ranks: u32) -> bool {
        self.sets.len(self.facts(expr).contributors) == ranks
    }

    /// The first ranks below `ranks` that don't contribute.
    pub(super) fn missing(&self, expr: Expr, ranks: u32) -> Vec<u32> {
        let contributors = self.facts(expr).contributors;
        self.sets.missing(contributors, ranks).take(16).collect()
    }

    /// Whether this is the left fold of the inputs of all `ranks`.
    pub(super) fn is_fold(&self, expr: Expr, ranks: u32) -> bool {
        self.facts(expr).fold == ranks
    }

    /// The expression as text, for one piece, cut where it gets long.
    pub(super) fn text(&self, expr: Expr, piece: u32) -> String {
        let mut text = String::new();
        self.write(expr, piece, &mut text);
        text
    }

    fn write(&self, expr: Expr, piece: u32, text: &mut String) {
        const LONG: usize = 160;
        if text.len() > LONG {
            if !text.ends_with("...") {
                text.push_str("...");
            }
            return;
        }
        match self.facts(expr).node {
            Node::Input { rank, block } => {
                text.push_str(&format!("x{rank}[{block}].{piece}"));
            }
            Node::Sum { a, b } => {
                text.push('(');
                self.write(a, piece, text);
                text.push_str(" + ");
                self.write(b, piece, text);
                text.push(')');
            }
        }
    }

    fn facts(&self, expr: Expr) -> &Facts {
        &self.facts[expr.0 as usize]
    }

    fn add(&mut self, node: Node, contributors: Set, fold: u32) -> Expr {
        let expr = Expr(self.facts.len() as u32);
        self.facts.push(Facts {
            node,
            contributors,
            fold,
        });
        self.numbers.insert(node, expr);
        expr
    }
}
