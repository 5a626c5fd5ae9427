//! What is left of a stream that was dropped, until the device is done with it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Branch, Shared};
use crate::event::AcceleratorEvent;
use crate::state::{State, Tenure};
use crate::{Runtime, fork};

pub(crate) struct Grave<R: Runtime> {
    pub(super) native: R::Stream,
    pub(super) tenure: Tenure,
    pub(super) shared: Arc<Shared>,
    pub(super) branches: Vec<Branch<R>>,
    /// Kept until nothing waits for them.
    pub(super) _events: VecDeque<(u64, AcceleratorEvent<R>)>,
}

impl<R: Runtime> Grave<R> {
    /// Whether the device is done with it.
    pub(crate) fn is_quiet(&self) -> bool {
        self.shared.is_quiet()
    }

    /// Its native stream can be used again, or is its owner's alone.
    pub(crate) fn give_back(self, device: &State<R>) {
        if !fork::is_child() {
            device.give_stream(self.tenure, self.native);
            device.give_branches(self.branches);
        }
    }
}
