//! Ways from each rank to each other, through ranks between.

use std::sync::Arc;

use super::TemplateError;

/// A way for a share of what one rank has for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    /// The route's share, relative to the other routes of the same two ranks. Not zero.
    pub weight: u64,
    /// The ranks that the data passes: the sender, those that hand it on, the receiver. None
    /// twice.
    pub path: Arc<[u32]>,
}

/// Routes for all_to_all, gather and scatter: between any two ranks as many as one likes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Routes {
    ranks: u32,
    routes: Arc<[Route]>,
}

impl Routes {
    /// Routes over `ranks` ranks.
    ///
    /// Between two ranks with several, the shares are what matters: the least common denominator
    /// of all shares becomes the number of parts into which blocks are cut.
    pub fn new(ranks: u32, routes: impl Into<Arc<[Route]>>) -> Result<Self, TemplateError> {
        let routes = routes.into();
        let what = "route";
        if ranks == 0 {
            return Err(TemplateError::Empty { what: "rank" });
        }
        check_paths(ranks, &routes)?;
        super::trees::check_weights(what, routes.iter().map(|route| route.weight))?;
        Ok(Self { ranks, routes })
    }

    /// Ranks of the communicator.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The routes.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }
}

/// Each path goes through different ranks, at least two.
fn check_paths(ranks: u32, routes: &[Route]) -> Result<(), TemplateError> {
    let what = "route";
    let mut last_seen = vec![usize::MAX; ranks as usize];
    for (index, route) in routes.iter().enumerate() {
        if route.path.len() < 2 {
            return Err(TemplateError::Empty {
                what: "hop on each route",
            });
        }
        for &rank in route.path.iter() {
            match last_seen.get_mut(rank as usize) {
                None => {
                    return Err(TemplateError::NoSuchRank {
                        what,
                        index,
                        rank,
                        ranks,
                    });
                }
                Some(seen) if *seen == index => {
                    return Err(TemplateError::NotOnce { what, index, rank });
                }
                Some(seen) => *seen = index,
            }
        }
    }
    Ok(())
}
