//! What proves a bound, for people to read and for tests to check.

use std::fmt;

use unisono_graph::units;

/// What stands in the way of more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Certificate {
    /// Nothing does: one rank.
    Nothing,
    /// Ranks that all have to do with the others over too little.
    Cut {
        /// The ranks on the one side, in order.
        ranks: Vec<u32>,
        /// What crosses, in bytes a second: from these ranks to all others, or the other way.
        bytes_per_second: u128,
        /// Whether it crosses from these ranks to the others.
        leaving: bool,
    },
    /// Links that are full whatever the paths.
    Links {
        /// How many there are; parallel ones count once.
        links: usize,
        /// What they carry together, in bytes a second.
        bytes_per_second: u128,
    },
    /// Sets of ranks that trees must enter or leave, which together fill links.
    Sets {
        /// The ranks of each set, in order.
        sets: Vec<Vec<u32>>,
        /// How many links they fill; parallel ones count once.
        links: usize,
    },
    /// Parts of the ranks that all have to be joined, by a tree one way and a tree back.
    Partition {
        /// The ranks of each part, in order.
        parts: Vec<Vec<u32>>,
        /// What enters all parts together, in bytes a second.
        bytes_per_second: u128,
    },
}

impl Certificate {
    /// The same where everything is half as wide.
    pub(crate) fn halved(mut self) -> Self {
        match &mut self {
            Self::Cut {
                bytes_per_second, ..
            }
            | Self::Links {
                bytes_per_second, ..
            }
            | Self::Partition {
                bytes_per_second, ..
            } => *bytes_per_second /= 2,
            Self::Nothing | Self::Sets { .. } => {}
        }
        self
    }

    /// The same on the network with every edge turned around.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Cut {
                ranks,
                bytes_per_second,
                leaving,
            } => Self::Cut {
                ranks,
                bytes_per_second,
                leaving: !leaving,
            },
            other => other,
        }
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing needs to move"),
            Self::Cut {
                ranks,
                bytes_per_second,
                leaving,
            } => {
                let wide = units::bandwidth(u64::try_from(*bytes_per_second).unwrap_or(u64::MAX));
                let verb = match (leaving, ranks.len()) {
                    (true, 1) => "sends",
                    (true, _) => "send",
                    (false, 1) => "receives",
                    (false, _) => "receive",
                };
                write!(f, "{} {verb} over {wide}", Named(ranks))
            }
            Self::Links {
                links,
                bytes_per_second,
            } => {
                let wide = units::bandwidth(u64::try_from(*bytes_per_second).unwrap_or(u64::MAX));
                write!(
                    f,
                    "{links} links, together {wide}, are full whatever the paths"
                )
            }
            Self::Sets { sets, links } => {
                write!(
                    f,
                    "trees to and from {} sets of ranks, such as ",
                    sets.len()
                )?;
                let smallest = sets.iter().min_by_key(|set| set.len());
                write!(
                    f,
                    "{}, fill {links} links",
                    Named(smallest.map_or(&[], Vec::as_slice))
                )
            }
            Self::Partition {
                parts,
                bytes_per_second,
            } => {
                let wide = units::bandwidth(u64::try_from(*bytes_per_second).unwrap_or(u64::MAX));
                if parts.iter().all(|part| part.len() == 1) {
                    write!(f, "{} ranks share {wide}, both ways together", parts.len())
                } else {
                    let largest = parts.iter().map(Vec::len).max().unwrap_or(0);
                    let count = parts.len();
                    write!(
                        f,
                        "{count} parts of up to {largest} ranks share {wide}, both ways together"
                    )
                }
            }
        }
    }
}

/// Ranks as people name them: a few by number, many by how many they are.
struct Named<'a>(&'a [u32]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [rank] => write!(f, "rank {rank}"),
            [first, .., last] => {
                write!(f, "{} ranks ", self.0.len())?;
                if (*last - *first) as usize + 1 == self.0.len() {
                    write!(f, "({first} to {last})")
                } else {
                    write!(f, "({first} … {last})")
                }
            }
            [] => f.write_str("no ranks"),
        }
    }
}
