//! Into how many pieces a message is cut.

use crate::algorithms::{Algorithm, Layout, Shape};
use crate::cost::{Cost, Fabric, predict};
use crate::geometry::{Geometry, Sizes, message_elements};
use crate::ir::Shares;
use crate::template::Template;

use super::{Plan, Request};

/// Puts are not made smaller than this for the sake of a pipeline.
const SMALL_PUT: u64 = 4096;
/// A message from core to core has puts of no less, for the sake of a pipeline, than the first; nor, up to the second, than an
/// eighth of it: so many find room at once. On a Xeon with AMX-FP16 those of 64 KiB took 0.7 of what they take in puts of
/// 8 KiB, those of 256 KiB of what they take in puts of 16 KiB (`cargo xtask peers -- --dirty --ranks 2 --ops send_recv --sizes
/// 64K,256K`, in turns with the build before it).
const MESSAGE_PUTS: [u64; 2] = [16 << 10, 32 << 10];
/// What a rank reads of each peer at once to add it up: this much, as much of the next peer's, and the sum stay in a core's
/// second-level cache.
const READ_TO_ADD: u64 = 128 << 10;

/// The message of a request as one plan would carry it.
pub(super) struct Message<'a> {
    plan: Plan,
    windowed: bool,
    request: &'a Request,
    fabric: &'a Fabric,
    layout: Layout,
    /// Whether sums go by a ring and are shown to all, in whatever order.
    is_shown_ring: bool,
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
        plan: Plan,
        windowed: bool,
        request: &'a Request,
        fabric: &'a Fabric,
    ) -> Result<Self, String> {
        let element_bytes = request.element_bytes.max(1);
        let count = request.bytes.div_ceil(u64::from(element_bytes));
        let template = plan.template(fabric).ok_or("there is no such template")?;
        let is_shown_ring = match template {
            Template::Flat(algorithm) | Template::Ordered { algorithm, .. } => {
                algorithm == Algorithm::RingShared
            }
            _ => false,
        };
        let layout = template.layout(request.op, fabric.ranks());
        let layout = layout.map_err(|error| error.to_string())?;
        let whole = match template {
            Template::Flat(_) | Template::Ordered { .. } => {
                let count = message_elements(request.op, count);
                Geometry::new(count, layout.blocks, Shares::Equal, 1)
            }
            // The shares of blocks are the same in every rank's program.
            _ => {
                let program = template.generate(&Shape {
                    op: request.op,
                    ranks: fabric.ranks(),
                    rank: 0,
                    windowed,
                    turns: false,
                });
                let program = program.map_err(|error| error.to_string())?;
                Geometry::of(&program, Sizes::Equal(count))
            }
        };
        Ok(Self {
            plan,
            windowed,
            request,
            fabric,
            layout,
            is_shown_ring,
            element_bytes,
            whole: whole.map_err(|error| error.to_string())?,
        })
    }

    /// As few pieces as puts of at most `put_bytes` allow.
    pub(super) fn cut(&self, put_bytes: u64) -> Result<Cut, String> {
        let put_bytes = if self.is_whole() { u64::MAX } else { put_bytes };
        let pieces = (self.whole)
            .pieces_for(self.layout.put_blocks, self.element_bytes, put_bytes)
            .map_err(|error| error.to_string())?;
        let (op, bytes) = (self.request.op, self.request.bytes);
        let cost = match self.plan {
            Plan::Flat(algorithm) => {
                predict(algorithm, op, self.windowed, bytes, pieces, self.fabric)
            }
            Plan::Shaped(number) => match self.fabric.templates().get(number as usize) {
                Some(shaped) => shaped.predict(op, bytes, pieces, self.fabric),
                None => Ok(Cost::default()),
            },
        };
        Ok(Cut {
            pieces,
            put_bytes,
            cost: cost.map_err(|error| error.to_string())?,
        })
    }

    /// The cheapest cut into puts of at most `slot_bytes`.
    ///
    /// Tries the fewest pieces and then twice as many, as long as puts don't get smaller than a
    /// page. Puts to everybody at once are no larger than what the caches of cores hold of them.
    pub(super) fn cheapest_cut(&self, slot_bytes: u64) -> Result<Cut, String> {
        let cached = self
            .fabric
            .cached_put()
            .filter(|_| self.is_to_all_at_once());
        let added = self.is_read().then_some(READ_TO_ADD);
        let shown = self.fabric.shown_ring_put().filter(|_| self.is_shown_ring);
        let most = [cached, added, shown].into_iter().flatten().min();
        let slot_bytes = most.map_or(slot_bytes, |bytes| bytes.min(slot_bytes));
        let mut best = self.cut(slot_bytes)?;
        if self.is_whole() {
            return Ok(best);
        }
        let (mut pieces, mut put_bytes) = (best.pieces, slot_bytes);
        loop {
            put_bytes = self.largest_put(pieces).min(put_bytes) / 2;
            if put_bytes < self.least_put() {
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

    /// Puts of less are not worth a pipeline.
    fn least_put(&self) -> u64 {
        let [least, most] = MESSAGE_PUTS;
        match self.plan == Plan::Flat(Algorithm::Direct) && self.fabric.is_by_core() {
            true => (self.request.bytes / 8).clamp(least, most),
            false => SMALL_PUT,
        }
    }

    /// Whether ranks copy the message straight from their peers' memory.
    fn is_read(&self) -> bool {
        self.plan == Plan::Flat(Algorithm::MeshRead)
    }

    /// Whether the message is one piece. What is read, or written into windows, passes no slot; a core writes, or adds up,
    /// what its cache holds at a time, while accelerators only spend more commands on pieces, and of a message in a window one
    /// signal says where it lies.
    fn is_whole(&self) -> bool {
        let op = self.request.op;
        self.is_read() && !op.reduces()
            || self.windowed && !(self.fabric.is_by_core() && op.is_collective())
    }

    /// Whether every rank sends to every other before it reads what came.
    fn is_to_all_at_once(&self) -> bool {
        let all = match self.plan {
            Plan::Flat(Algorithm::MeshOneShot) => self.request.op.root().is_none(),
            // Rooted ops too have a phase in which they do.
            Plan::Flat(Algorithm::MeshTwoShot) => true,
            _ => false,
        };
        all && !self.windowed
    }

    /// Bytes that the widest put really holds.
    fn largest_put(&self, pieces: u64) -> u64 {
        let elements = self.whole.room(self.layout.put_blocks).div_ceil(pieces);
        elements.saturating_mul(u64::from(self.element_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Link, Rate, Speeds};
    use crate::ir::Op;

    fn pieces_over_windows(by_core: bool) -> u64 {
        let link = Link {
            alpha_ps: 150_000,
            rate: Rate::bytes_per_second(8_000_000_000),
            by_core,
            message_ps: 0,
            port: None,
        };
        let fabric = Fabric::uniform(4, Speeds::default(), link).unwrap();
        let request = Request {
            op: Op::AllGather,
            bytes: 64 << 20,
            element_bytes: 4,
            slot_bytes: 128 << 10,
            windows: true,
            readable: false,
            deterministic: false,
        };
        let plan = Plan::Flat(Algorithm::MeshOneShot);
        let message = Message::new(plan, true, &request, &fabric).unwrap();
        message.cheapest_cut(request.slot_bytes).unwrap().pieces
    }

    #[test]
    fn cores_write_windows_by_pieces_and_devices_at_once() {
        assert_eq!(pieces_over_windows(false), 1);
        assert!(pieces_over_windows(true) > 1);
    }
}
