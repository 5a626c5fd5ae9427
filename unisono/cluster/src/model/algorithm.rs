//! Which algorithm to use for which calls.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// A rule: calls that meet all of its conditions use this algorithm. What is left out matches
/// everything. The first rule that matches decides; one that can never decide is an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AlgorithmRule {
    /// The operation (default: every one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Collective>,
    /// The smallest message, in bytes as nccl-tests count them, included (default: 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<Bytes>,
    /// The largest message, included (default: no limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<Bytes>,
    /// The communicator's name, in which `*` stands for any text (default: every one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub communicator: Option<String>,
    /// How many ranks the communicator has: `8`, or `4..16` with both ends included (default: any).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RankRange>,
    /// The algorithm. `auto` is the cost model's choice: it exempts calls from the rules below it.
    #[serde(rename = "use")]
    pub use_: AlgorithmUse,
    /// Whether these calls are deterministic: the same bits whatever the algorithm and the links
    /// (default: as the communicator says).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deterministic: Option<bool>,
}

impl AlgorithmRule {
    /// Whether this rule decides for a call: `bytes` as nccl-tests count them, on the communicator
    /// of this name with so many ranks.
    pub fn matches(&self, op: Collective, bytes: u64, communicator: &str, ranks: u32) -> bool {
        self.op.is_none_or(|wanted| wanted == op)
            && self.min_bytes.is_none_or(|least| least.get() <= bytes)
            && self.max_bytes.is_none_or(|most| bytes <= most.get())
            && self.ranks.is_none_or(|range| range.contains(ranks))
            && self
                .communicator
                .as_deref()
                .is_none_or(|pattern| glob(pattern.as_bytes(), communicator.as_bytes()))
    }
}

/// Whether `text` is `pattern`, in which `*` stands for any text. Takes at most their product in
/// steps.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to take the search up again: after the last star, with one byte more swallowed by it.
    let mut retry = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p + 1, t + 1));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((after_star, next)) = retry {
            retry = Some((after_star, next + 1));
            (p, t) = (after_star, next);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

macro_rules! names {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Its name, as in the file.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

names! {
    /// The collective operations, as MPI and NCCL name them.
    Collective {
        /// Every rank gets the reduction of all.
        AllReduce = "all_reduce",
        /// Every rank gets its share of the reduction of all.
        ReduceScatter = "reduce_scatter",
        /// Every rank gets the pieces of all.
        AllGather = "all_gather",
        /// Every rank gets what the root has.
        Broadcast = "broadcast",
        /// The root gets the reduction of all.
        Reduce = "reduce",
        /// Every rank gets a piece of every other.
        AllToAll = "all_to_all",
        /// The root gets the pieces of all.
        Gather = "gather",
        /// Every rank gets its piece from the root.
        Scatter = "scatter",
        /// Nobody goes on before all have come.
        Barrier = "barrier",
    }
}

impl Collective {
    /// Whether it computes, so that the order of its additions shows in the result.
    pub fn reduces(self) -> bool {
        matches!(
            self,
            Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce
        )
    }
}

names! {
    /// The algorithms that a rule can ask for.
    AlgorithmUse {
        /// The cost model's choice.
        Auto = "auto",
        /// Every rank sends all it has to every other.
        MeshOneShot = "mesh_one_shot",
        /// Every rank reduces its share, then all exchange the shares.
        MeshTwoShot = "mesh_two_shot",
        /// Every rank talks to its two neighbours.
        Ring = "ring",
        /// Partners at doubling distance exchange halving parts.
        HalvingDoubling = "halving_doubling",
        /// Signals at doubling distances.
        Dissemination = "dissemination",
        /// Every rank talks to its two neighbours, both ways round.
        BidirectionalRing = "bidirectional_ring",
        /// Partners at doubling distance exchange whole messages.
        RecursiveDoubling = "recursive_doubling",
        /// Blocks of many ranks at halving distances, for any number of ranks.
        Nhr = "nhr",
        /// Blocks of many ranks at doubling distances, for any number of ranks.
        Bruck = "bruck",
        /// One partner after the other.
        Pairwise = "pairwise",
        /// Twice as many ranks with each round.
        Binomial = "binomial",
        /// Shares to everybody first, then everybody gathers them.
        ScatterAllGather = "scatter_all_gather",
        /// Two binary trees, each for half of the message.
        DoubleBinaryTree = "double_binary_tree",
        /// A pipeline from rank to rank.
        Chain = "chain",
        /// Every rank reads what it needs from the memory of its peers.
        MeshRead = "mesh_read",
        /// Every rank leaves what others need in memory of its own, once, where all read it.
        MeshShared = "mesh_shared",
        /// The same, for an all_reduce in one exchange.
        MeshSharedOneShot = "mesh_shared_one_shot",
        /// Sums go from rank to rank, and every rank leaves its own where all read it.
        RingShared = "ring_shared",
        /// Within islands first, then between them, and back; for communicators that have islands.
        Hierarchical = "hierarchical",
    }
}

/// A number of ranks, or from how many to how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RankRange {
    /// The fewest, at least 1.
    pub min: u32,
    /// The most, at least `min`.
    pub max: u32,
}

impl RankRange {
    /// Whether a communicator with so many ranks is meant.
    pub fn contains(self, ranks: u32) -> bool {
        (self.min..=self.max).contains(&ranks)
    }
}

impl FromStr for RankRange {
    type Err = String;

    /// `8` or `4..16`, both ends included.
    fn from_str(text: &str) -> Result<RankRange, String> {
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let number = |part: &str| part.parse::<u32>().ok().filter(|count| *count > 0);
        match (number(min), number(max)) {
            (Some(min), Some(max)) if min <= max => Ok(RankRange { min, max }),
            (Some(min), Some(max)) => Err(format!("`{text}` is empty; write {max}..{min}")),
            _ => Err(format!(
                "`{}` is no number of ranks; write a number such as 8 or a range such as 4..16",
                text.escape_debug()
            )),
        }
    }
}

impl fmt::Display for RankRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankRange { min, max } if min == max => min.fmt(f),
            RankRange { min, max } => write!(f, "{min}..{max}"),
        }
    }
}

impl Serialize for RankRange {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RankRange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<RankRange, D::Error> {
        let scalar = super::Scalar::deserialize(deserializer)?;
        scalar.to_string().parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for RankRange {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RankRange".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": ["integer", "string"],
            "format": "unisono-ranks",
            "description": "a number of ranks such as 8, or a range such as 4..16 with both ends included",
            "minimum": 1,
            "pattern": r"^[0-9]+(\.\.[0-9]+)?$",
            "examples": [8, "4..16"],
        })
    }
}
