//! Symbolic values: each expression exists once, so equality is equality of numbers.

use std::collections::HashMap;
use std::rc::Rc;

/// An expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Expr(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    /// One piece of one block of the input of a rank.
    Input { rank: u32, block: u32, piece: u32 },
    /// `a (+) b`.
    Sum { a: Expr, b: Expr },
}

#[derive(Debug)]
struct Facts {
    node: Node,
    /// The ranks that contribute, one bit each.
    contributors: Rc<[u64]>,
    /// How many contribute.
    count: u32,
    /// `Some(n)` if this is the left fold of the inputs of ranks `0..n`.
    fold: Option<u32>,
}

/// All expressions of a run.
#[derive(Debug)]
pub(super) struct Expressions {
    words: usize,
    facts: Vec<Facts>,
    numbers: HashMap<Node, Expr>,
}

impl Expressions {
    pub(super) fn new(ranks: u32) -> Self {
        Self {
            words: ranks.div_ceil(u64::BITS) as usize,
            facts: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    pub(super) fn input(&mut self, rank: u32, block: u32, piece: u32) -> Expr {
        let words = self.words;
        self.intern(Node::Input { rank, block, piece }, |_| {
            let mut contributors = vec![0u64; words];
            contributors[(rank / u64::BITS) as usize] |= 1 << (rank % u64::BITS);
            let fold = (rank == 0).then_some(1);
            (contributors.into(), fold)
        })
    }

    /// `a (+) b`, or a rank that contributes to both.
    pub(super) fn sum(&mut self, a: Expr, b: Expr) -> Result<Expr, u32> {
        let node = Node::Sum { a, b };
        if let Some(&known) = self.numbers.get(&node) {
            return Ok(known);
        }
        let (x, y) = (&self.facts(a).contributors, &self.facts(b).contributors);
        if let Some(both) = bits(x.iter().zip(y.iter()).map(|(x, y)| x & y)).next() {
            return Err(both);
        }
        Ok(self.intern(node, |all| {
            let (x, y) = (all.facts(a), all.facts(b));
            let pairs = x.contributors.iter().zip(y.contributors.iter());
            let next = match y.node {
                Node::Input { rank, .. } => Some(rank),
                Node::Sum { .. } => None,
            };
            let fold = match x.fold {
                Some(n) if next == Some(n) => Some(n + 1),
                _ => None,
            };
            (pairs.map(|(x, y)| x | y).collect(), fold)
        }))
    }

    /// Whether this is a block of the input of a rank.
    pub(super) fn is_input(&self, expr: Expr, of: u32, block: u32) -> bool {
        matches!(self.facts(expr).node, Node::Input { rank, block: b, .. } if rank == of && b == block)
    }

    /// How many ranks contribute.
    pub(super) fn contributors(&self, expr: Expr) -> u32 {
        self.facts(expr).count
    }

    /// The first ranks below `ranks` that don't contribute.
    pub(super) fn missing(&self, expr: Expr, ranks: u32) -> Vec<u32> {
        bits(self.facts(expr).contributors.iter().map(|word| !word))
            .take_while(|&rank| rank < ranks)
            .take(16)
            .collect()
    }

    /// Whether this is the left fold of the inputs of all `ranks`.
    pub(super) fn is_fold(&self, expr: Expr, ranks: u32) -> bool {
        self.facts(expr).fold == Some(ranks)
    }

    /// The expression as text, cut where it gets long.
    pub(super) fn text(&self, expr: Expr) -> String {
        let mut text = String::new();
        self.write(expr, &mut text);
        text
    }

    fn write(&self, expr: Expr, text: &mut String) {
        const LONG: usize = 160;
        if text.len() > LONG {
            if !text.ends_with("...") {
                text.push_str("...");
            }
            return;
        }
        match self.facts(expr).node {
            Node::Input { rank, block, piece } => {
                text.push_str(&format!("x{rank}[{block}].{piece}"));
            }
            Node::Sum { a, b } => {
                text.push('(');
                self.write(a, text);
                text.push_str(" + ");
                self.write(b, text);
                text.push(')');
            }
        }
    }

    fn facts(&self, expr: Expr) -> &Facts {
        &self.facts[expr.0 as usize]
    }

    fn intern(
        &mut self,
        node: Node,
        facts: impl FnOnce(&Self) -> (Rc<[u64]>, Option<u32>),
    ) -> Expr {
        if let Some(&known) = self.numbers.get(&node) {
            return known;
        }
        let (contributors, fold) = facts(self);
        let expr = Expr(self.facts.len() as u32);
        self.facts.push(Facts {
            node,
            count: contributors.iter().map(|word| word.count_ones()).sum(),
            contributors,
            fold,
        });
        self.numbers.insert(node, expr);
        expr
    }
}

/// The positions of the set bits.
fn bits(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    words.zip(0u32..).flat_map(|(word, index)| {
        (0..u64::BITS)
            .filter(move |bit| word >> bit & 1 == 1)
            .map(move |bit| index * u64::BITS + bit)
    })
}
