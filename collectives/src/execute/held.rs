//! What this thread has held back on other lanes.
//!
//! A lane sends what it holds back before one of its calls waits. But the thread may wait in a call of another communicator,
//! perhaps for a rank that waits for just that. So each thread keeps in mind the lanes on which it has held puts back, and
//! lets them go before it waits anywhere.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use super::Lane;
use crate::progress::progress;

thread_local! {
    static ANY: Cell<bool> = const { Cell::new(false) };
    static LANES: RefCell<Vec<Weak<Lane>>> = const { RefCell::new(Vec::new()) };
}

/// This thread has held puts back on a lane.
pub(crate) fn note(lane: &Arc<Lane>) {
    // Where a thread ends the progress thread sends what is left.
    let noted = LANES.try_with(|lanes| {
        let mut lanes = lanes.borrow_mut();
        if !lanes.iter().any(|held| held.as_ptr() == Arc::as_ptr(lane)) {
            lanes.retain(|held| held.strong_count() > 0);
            lanes.push(Arc::downgrade(lane));
        }
    });
    ANY.set(noted.is_ok());
}

/// Before this thread waits. A lane of which somebody else has the lock is left to the progress thread, which looks soon;
/// the one on which this thread waits has sent already.
#[inline]
pub(crate) fn let_go() {
    if ANY.take() {
        send();
    }
}

#[cold]
fn send() {
    let lanes = LANES.try_with(RefCell::take).unwrap_or_default();
    for lane in lanes.iter().filter_map(Weak::upgrade) {
        let Some(mut state) = lane.try_lock() else {
            continue;
        };
        if state.send_held_puts() {
            // A link has not taken all: it is to be driven on.
            drop(state);
            progress().activate(&lane);
        }
    }
}
