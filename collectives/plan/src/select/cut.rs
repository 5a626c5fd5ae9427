//! Into how many pieces a message is cut.

use crate::algorithms::{Algorithm, Layout};
use crate::cost::{Cost, Fabric, predict};
use crate::geometry::{Geometry, message_elements};
use crate::ir::Shares;

use super::Request;

/// Puts are not made smaller than this for the sake of a pipeline.
const SMALL_PUT: u64 = 4096;

/// The message of a request as one plan would carry it.
pub(super) struct Message<'a> {
    algorithm: Algorithm,
    windowed: bool,
    request: &'a Request,
    fabric: &'a Fabric,
    layout: Layout,
    element_bytes: u32,
    whole: Geometry,
}

/// A message in pieces.
pub(super) struct Cut {
    pub(super) pieces: u64,
    /// The largest put may hold this many bytes.
    pub(super) put_bytes: u64,
    pub(super) cost: Cost,
}

impl<'a> Message<'a> {
    pub(super) fn new(
        algorithm: Algorithm,
        windowed: bool,
        request: &'a Request,
        fabric: &'a Fabric,
    ) -> Result<Self, String> {
        let layout = Layout::of(algorithm, request.op, fabric.ranks());
        let element_bytes = request.element_bytes.max(1);
        let count = request.bytes.div_ceil(u64::from(element_bytes));
        let count = message_elements(request.op, count);
        let whole = Geometry::new(count, layout.blocks, Shares::Equal, 1);
        Ok(Self {
            algorithm,
            windowed,
            request,
            fabric,
            layout,
            element_bytes,
            whole: whole.map_err(|error| error.to_string())?,
        })
    }

    /// As few pieces as puts of at most `put_bytes` allow.
    pub(super) fn cut(&self, put_bytes: u64) -> Result<Cut, String> {
        let pieces = (self.whole)
            .pieces_for(self.layout.put_blocks, self.element_bytes, put_bytes)
            .map_err(|error| error.to_string())?;
        let (op, bytes) = (self.request.op, self.request.bytes);
        let cost = predict(
            self.algorithm,
            op,
            self.windowed,
            bytes,
            pieces,
            self.fabric,
        );
        Ok(Cut {
            pieces,
            put_bytes,
            cost: cost.map_err(|error| error.to_string())?,
        })
    }

    /// The cheapest cut into puts of at most `slot_bytes`.
    ///
    /// Tries the fewest pieces and then twice as many, as long as puts don't get smaller than a
    /// page.
    pub(super) fn cheapest_cut(&self, slot_bytes: u64) -> Result<Cut, String> {
        let mut best = self.cut(slot_bytes)?;
        let (mut pieces, mut put_bytes) = (best.pieces, slot_bytes);
        loop {
            put_bytes = self.largest_put(pieces).min(put_bytes) / 2;
            if put_bytes < SMALL_PUT {
                return Ok(best);
            }
            let Ok(finer) = self.cut(put_bytes) else {
                return Ok(best);
            };
            pieces = finer.pieces;
            if finer.cost.total() < best.cost.total() {
                best = finer;
            }
        }
    }

    /// Bytes that the widest put really holds.
    fn largest_put(&self, pieces: u64) -> u64 {
        let elements = self.whole.room(self.layout.put_blocks).div_ceil(pieces);
        elements.saturating_mul(u64::from(self.element_bytes))
    }
}
