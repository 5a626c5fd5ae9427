//! Fronts that this process has made, for all of its communicators.
//!
//! Communicators that split or copy each other, and ranks that are threads of one process, mostly see
//! the same fabric. What is chosen depends on nothing but the request, the fabric (its links as they
//! were reported or measured, its templates, what was measured of plans) and the rules; those are
//! compared, and not a hash of them, so that a front is never one of another fabric.

use std::sync::{Arc, Mutex, PoisonError};

use unisono_plan::cost::Fabric;
use unisono_plan::select::{Front, Overrides, Request};

/// Fronts kept at most; then the oldest goes.
const KEPT: usize = 64;

struct Made {
    request: Request,
    overrides: Overrides,
    fabric: Fabric,
    front: Arc<Front>,
}

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());

/// The front up to `largest` bytes, made now or before. The bytes of the request don't matter.
pub(super) fn front(
    request: Request,
    fabric: &Fabric,
    overrides: &Overrides,
    largest: u64,
) -> Arc<Front> {
    let known = |made: &Made| {
        made.request == request && made.overrides == *overrides && made.fabric == *fabric
    };
    let lock = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = lock().iter().find(|made| known(made)) {
        return made.front.clone();
    }
    let front = Arc::new(Front::new(&request, fabric, overrides, largest));
    let mut all = lock();
    // Another thread may have made it meanwhile; all get the same one.
    if let Some(made) = all.iter().find(|made| known(made)) {
        return made.front.clone();
    }
    if all.len() >= KEPT {
        all.remove(0);
    }
    all.push(Made {
        request,
        overrides: overrides.clone(),
        fabric: fabric.clone(),
        front: front.clone(),
    });
    front
}
