//! The plan of a call: chosen once for each shape of call, and kept.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_plan::cost::Picoseconds;
use unisono_plan::geometry::Sizes;
use unisono_plan::select::{self, Front, Override, Overrides, SelectError, Selection};
use unisono_plan::{
    Action, Geometry, GeometryError, Op, Program, Shape, Template, generate_reduce_alone,
};

use super::Communicator;
use super::asked::Asked;
use super::force::Forced;
use super::fronts::front;
use super::shared::{Shared, mix};
use super::start::Request;
use super::support;
use crate::error::{Error, Result};
use crate::execute::{Answered, Direct, LONG_MESSAGE, Load, Past, Planned, exchanges};
use crate::reduction::{How, Order};
use crate::signature::CallKind;
use crate::{Algorithm, DataType, ReduceOp, Reduction, ReductionKind};

/// Plans kept at most; a job that uses more shapes plans some of them again.
const KEPT: usize = 1024;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    kind: CallKind,
    /// Elements of the larger buffer, where all blocks are equal.
    count: u64,
    /// Elements of each part, where they are not. Not an empty slice for "none": to compare that costs
    /// 130 ns with AVX-512, as its masked load of an address that is not mapped takes an assist.
    parts: Option<Box<[u64]>>,
    dtype: DataType,
    reduction: Option<ReductionKind>,
    windows: bool,
    /// Of the root of a reduce over windows: no peer reaches its output.
    alone: bool,
    forced: Option<Forced>,
}

impl Key {
    fn new(request: &Request<'_>, windows: bool, alone: bool) -> Self {
        let Asked {
            op, kind, sizes, ..
        } = request.asked;
        let (count, parts) = match sizes {
            Sizes::Equal(count) => (count, None),
            Sizes::Parts(parts) => (0, Some(parts.into())),
        };
        Self {
            op,
            kind,
            count,
            parts,
            dtype: request.dtype,
            reduction: request.kind(),
            windows,
            alone,
            forced: request.forced,
        }
    }

    /// The same of a message of which nothing lies in a window.
    fn staged(&self) -> Self {
        Self {
            windows: false,
            ..self.clone()
        }
    }

    fn sizes(&self) -> Sizes<'_> {
        match &self.parts {
            None => Sizes::Equal(self.count),
            Some(parts) => Sizes::Parts(parts),
        }
    }

    /// Elements of the larger buffer; `None` if they are too many to count.
    fn elements(&self, ranks: u32) -> Option<u64> {
        let sum = |parts: &[u64]| parts.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
        match (self.kind, &self.parts) {
            (_, None) => Some(self.count),
            (CallKind::AllToAllV, Some(parts)) => {
                let (sent, received) = parts.split_at((ranks as usize).min(parts.len()));
                Some(sum(sent)?.max(sum(received)?))
            }
            (_, Some(parts)) => sum(parts),
        }
    }

    /// Whether peers may read the buffers, on every rank alike: each knows where in them its part is, no window is there
    /// to be used, and they want the input as it is.
    fn readable(&self) -> bool {
        let is_scaled = self.reduction == Some(ReductionKind::ScaledSum);
        !self.windows && self.parts.is_none() && !is_scaled
    }

    fn op(&self) -> Option<ReduceOp> {
        match self.reduction {
            Some(ReductionKind::Op(op)) => Some(op),
            Some(ReductionKind::ScaledSum) => Some(ReduceOp::Sum),
            Some(ReductionKind::User(_)) | None => None,
        }
    }
}

/// The plans of one communicator.
#[derive(Default)]
pub(crate) struct Plans(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    last: Option<(Key, Arc<Planned>)>,
    all: HashMap<Key, Arc<Planned>>,
}

/// Bytes of a message at most that may go unanswered: beyond, to move them takes far longer than a signal.
const UNANSWERED: u64 = 16 << 10;

/// Bytes at least of puts of which the first says where its message lies. Shorter ones are put in one go, and lie where
/// that is said.
const POINTING_PUT: u64 = 4096;

/// What was chosen for a call.
#[derive(Clone)]
struct Choice {
    template: Template,
    windowed: bool,
    pieces: u64,
    /// Bytes that a put holds at most.
    put_bytes: u64,
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The plan of a request, which is checked on the way. `alone` if it is the root of a reduce over windows and no peer
    /// reaches its output.
    pub(super) fn plan(
        &self,
        request: &Request<'_>,
        windows: bool,
        alone: bool,
    ) -> Result<Arc<Planned>> {
        check_type(request)?;
        let key = Key::new(request, windows, alone);
        let mut kept = self.plans.lock();
        if let Some((last, planned)) = &kept.last
            && *last == key
        {
            return Ok(planned.clone());
        }
        let planned = match kept.all.get(&key) {
            Some(planned) => planned.clone(),
            None => {
                let planned = Arc::new(self.make(&key)?);
                if kept.all.len() >= KEPT {
                    kept.all.clear();
                }
                kept.all.insert(key.clone(), planned.clone());
                planned
            }
        };
        kept.last = Some((key, planned.clone()));
        Ok(planned)
    }

    fn make(&self, key: &Key) -> Result<Planned> {
        let call = key.kind.name();
        self.check_ranks(key.op)?;
        self.check_devices(key)?;
        let element = key.dtype.size() as u64;
        let bytes = key
            .elements(self.size())
            .and_then(|elements| elements.checked_mul(element))
            .filter(|bytes| *bytes < 1 << 62);
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(
                call,
                format!("so many elements of {} are too many", key.dtype),
            )
        })?;
        let unsupported = |why: String| Error::Unsupported { call, why };
        let (choice, agreed, points) = self.agree(key, bytes)?;
        let shape = Shape {
            op: key.op,
            ranks: self.size(),
            rank: self.rank,
            windowed: choice.windowed,
            turns: self.fabric.shares_cores(),
        };
        let tells = choice.windowed && matches!(key.op, Op::Reduce { .. }) && self.size() > 1;
        let program = match tells && key.alone {
            true => generate_reduce_alone(&shape),
            false => choice.template.generate(&shape),
        };
        let program = program
            .map(one_way)
            .map_err(|e| unsupported(e.to_string()))?;
        let geometry = self
            .cut(key, &program, &choice)
            .map_err(|e| unsupported(e.to_string()))?;
        let mut hash = mix(agreed.pieces
            ^ agreed.template.digest()
            ^ u64::from(agreed.windowed) << 55
            ^ u64::from(self.fabric.shares_cores()) << 54
            ^ self.slot_bytes.rotate_left(17));
        if key.kind != CallKind::AllToAllV {
            // Every rank knows the sizes of all parts.
            hash = key
                .parts
                .iter()
                .flatten()
                .fold(hash, |hash, part| mix(hash ^ part));
        }
        let in_slots = !choice.windowed && !choice.template.reads_peers();
        let shown = choice.template.shows_puts() && self.size() > 1;
        let of_user = matches!(key.reduction, Some(ReductionKind::User(_)));
        let runs_directly = self.policy.direct && !of_user && key.kind != CallKind::AllToAllV;
        let planned = |program| Planned {
            geometry: geometry.clone(),
            element,
            dtype: if key.op == Op::Barrier {
                0
            } else {
                key.dtype.code()
            },
            reduction: key.op().map_or(0, ReduceOp::code),
            combiner: None,
            divisor: match key.op() {
                Some(ReduceOp::Avg) if self.size() > 1 => self.size(),
                _ => 0,
            },
            scaled: key.reduction == Some(ReductionKind::ScaledSum),
            windowed: choice.windowed,
            reads: choice.template.reads_peers() && self.size() > 1,
            shown,
            exchanges: match in_slots {
                true => exchanges::of(&program, &geometry, element, shown),
                false => Box::default(),
            },
            tells,
            points,
            load: match key.op {
                Op::Send { to: other } | Op::Recv { from: other }
                    if in_slots && self.is_mapped(other) =>
                {
                    Load::of(&program, &geometry, element, self.lane.shuttle_bytes)
                }
                _ => None,
            },
            hash: hash as u32,
            past: Past::of(
                &program,
                geometry.section(),
                geometry.count() * element,
                || self.neighbours(),
            ),
            program,
            direct: None,
            unanswered: None,
        };
        let direct = |program, answered| {
            let planned = planned(program);
            let direct = runs_directly.then(|| Direct::of(&planned, self.lane.posted, answered));
            let crowded = self.policy.is_crowded();
            let direct = direct.flatten().map(|all| all.that_gives_way(crowded));
            let cpu = self.lane.cpu.as_ref().filter(|_| direct.is_some());
            let combiner = cpu
                .zip(key.op())
                .and_then(|(cpu, op)| cpu.combiner(key.dtype.code(), op.code()));
            Planned {
                combiner,
                direct,
                ..planned
            }
        };
        let may_be = self.all_cpus && bytes <= UNANSWERED && in_slots;
        let unanswered = may_be.then(|| program.unanswered()).flatten();
        let answered = match unanswered {
            Some(_) => Answered::Here,
            None => Answered::Always,
        };
        let mut own = direct(program, answered);
        own.unanswered = unanswered.map(|program| Arc::new(direct(program, Answered::Elsewhere)));
        if self.lane.posted
            && let Some(moves) = &mut own.direct
        {
            moves.mark_answers(self.rank, |rank| {
                let program = choice.template.generate(&Shape { rank, ..shape });
                direct(one_way(program.ok()?), answered).direct
            });
        }
        Ok(own)
    }

    /// What is chosen, what all ranks must have chosen, and whether the first put of a message says where it lies: then its
    /// receiver has the plan that passes slots, whatever the sender has. Not where all of a put lies in its flag's line.
    fn agree(&self, key: &Key, bytes: u64) -> Result<(Choice, Choice, bool)> {
        let choice = self.choose(key, bytes)?;
        if key.op.is_collective() {
            return Ok((choice.clone(), choice, false));
        }
        let agreed = match choice.windowed {
            true => self.choose(&key.staged(), bytes)?,
            false => choice.clone(),
        };
        let points = bytes >= LONG_MESSAGE && bytes / agreed.pieces.max(1) >= POINTING_PUT;
        match points {
            true => Ok((choice, agreed, true)),
            false => Ok((agreed.clone(), agreed, false)),
        }
    }

    /// The algorithm, and how the message is cut.
    fn choose(&self, key: &Key, bytes: u64) -> Result<Choice> {
        if key.kind == CallKind::AllToAllV {
            // A rank knows its own sizes alone, so nothing can be chosen by them, and each block
            // has pieces of its own.
            return Ok(Choice {
                template: Algorithm::MeshOneShot.into(),
                windowed: false,
                pieces: 0,
                put_bytes: self.slot_bytes,
            });
        }
        let in_order = key.reduction == Some(ReductionKind::User(Order::Ranks));
        let request = select::Request {
            op: key.op,
            bytes,
            element_bytes: key.dtype.size() as u32,
            slot_bytes: self.slot_bytes,
            windows: key.windows,
            readable: key.readable(),
            deterministic: in_order || self.world.options.deterministic,
        };
        let chosen = match key.forced {
            None => {
                let selection = self.select(&request, &self.forced_for(key.op, key.windows))?;
                selection.winner().clone()
            }
            Some(Forced {
                plan,
                windowed,
                put_bytes,
            }) => select::exactly(&request, &self.fabric, plan, windowed, put_bytes)
                .map_err(|error| unsupported(&request, &error))?,
        };
        Ok(Choice {
            template: chosen.template,
            windowed: chosen.windowed,
            pieces: chosen.pieces,
            put_bytes: chosen.put_bytes.min(self.slot_bytes),
        })
    }

    /// Cuts the message into blocks and pieces.
    fn cut(
        &self,
        key: &Key,
        program: &Program,
        choice: &Choice,
    ) -> std::result::Result<Geometry, GeometryError> {
        let element = key.dtype.size() as u32;
        let whole = Geometry::of(program, key.sizes())?;
        match key.kind {
            CallKind::AllToAllV => whole.in_own_pieces(element, choice.put_bytes),
            CallKind::AllGatherV | CallKind::ReduceScatterV => {
                let blocks = program.max_put_blocks;
                let pieces = whole.pieces_for(blocks, element, choice.put_bytes)?;
                whole.in_pieces(pieces)
            }
            _ => whole.in_pieces(choice.pieces),
        }
    }

    /// What is forced. Of a message that lies in windows or not its sender alone knows, so that who receives it obeys what
    /// is forced of windows by waiting for what the sender says.
    fn forced_for(&self, op: Op, windows: bool) -> Cow<'_, Overrides> {
        if op.is_collective() || windows {
            return Cow::Borrowed(&self.overrides);
        }
        let rules = self.overrides.rules.iter().cloned();
        let rules = rules.map(|rule| Override {
            windowed: None,
            ..rule
        });
        Cow::Owned(Overrides {
            rules: rules.collect(),
        })
    }

    fn select(&self, request: &select::Request, overrides: &Overrides) -> Result<Selection> {
        select::select(request, &self.fabric, overrides)
            .map_err(|error| unsupported(request, &error))
    }

    fn explain(&self, op: Op, bytes: u64, dtype: DataType, windows: bool) -> Result<Explanation> {
        self.check_ranks(op)?;
        // Collectives have none where some peer's memory is not mapped.
        let reaches_all = || (0..self.size()).all(|rank| self.is_mapped(rank));
        let windows =
            windows && self.goes_over_windows(op, bytes) && (!op.is_collective() || reaches_all());
        let request = select::Request {
            op,
            bytes,
            element_bytes: dtype.size() as u32,
            slot_bytes: self.slot_bytes,
            windows,
            readable: !windows,
            deterministic: self.world.options.deterministic,
        };
        Ok(Explanation {
            selection: self.select(&request, &self.forced_for(op, windows))?,
            notes: self.notes(),
        })
    }

    /// What is not as the link graph and the list of plugins say.
    fn notes(&self) -> Vec<String> {
        let world = &self.world;
        let without = world.left_out.iter().map(|one| {
            let (rank, name, why) = (world.rank, &one.name, &one.why);
            format!("Rank {rank} of the job does without plugin `{name}`: {why}")
        });
        self.refused.lines().into_iter().chain(without).collect()
    }

    fn front(&self, op: Op, dtype: DataType) -> Result<Arc<Front>> {
        self.check_ranks(op)?;
        let request = select::Request {
            op,
            bytes: 0,
            element_bytes: dtype.size() as u32,
            slot_bytes: self.slot_bytes,
            windows: false,
            readable: true,
            deterministic: self.world.options.deterministic,
        };
        let largest = Communicator::LARGEST_OF_FRONT;
        Ok(front(
            request,
            &self.fabric,
            &self.forced_for(op, false),
            largest,
        ))
    }

    /// What a device of some rank cannot do is refused here, on every rank, and never discovered on the
    /// way.
    fn check_devices(&self, key: &Key) -> Result<()> {
        match key.reduction {
            None => Ok(()),
            Some(kind) => support::check(&self.supports, key.kind.name(), key.dtype, kind),
        }
    }

    fn check_ranks(&self, op: Op) -> Result<()> {
        let (what, rank) = match op {
            Op::Broadcast { root }
            | Op::Reduce { root }
            | Op::Gather { root }
            | Op::Scatter { root } => ("root", root),
            Op::Send { to } => ("to", to),
            Op::Recv { from } => ("from", from),
            _ => return Ok(()),
        };
        if rank >= self.size() {
            return Err(Error::invalid(
                op.name(),
                format!(
                    "{what} is rank {rank}, the communicator has ranks 0 to {}",
                    self.size() - 1
                ),
            ));
        }
        if !op.is_collective() && rank == self.rank {
            return Err(Error::invalid(
                op.name(),
                format!("{what} is this rank itself ({rank}); copy instead"),
            ));
        }
        Ok(())
    }
}

fn unsupported(request: &select::Request, error: &SelectError) -> Error {
    Error::Unsupported {
        call: request.op.name(),
        why: error.to_string(),
    }
}

/// A message without the acknowledgement of each piece, which the plan has so that the sender
/// hears of its peer's call.
///
/// Here the receiver compares the two calls and the control channel tells the sender. So a channel
/// carries the messages of its direction and nothing else, which lets those of a group run in any
/// order, and a send whose message passes slots is complete before its peer has called. Over windows the credit says
/// what the acknowledgement would: that the message has been taken.
fn one_way(mut program: Program) -> Program {
    let keep = |action: &Action| match program.op {
        Op::Send { .. } => matches!(action, Action::Put { .. }),
        Op::Recv { .. } => !matches!(action, Action::Put { .. }),
        _ => true,
    };
    if !program.op.is_collective() {
        debug_assert!(!program.has_legs(), "they would be merged");
        program.steps.retain(|step| keep(&step.action));
        let skews = program.steps.iter().map(|step| step.skew);
        program.max_skew = skews.max().unwrap_or(0);
    }
    program
}

/// Refuses a reduction that is not defined on the elements.
fn check_type(request: &Request<'_>) -> Result<()> {
    let dtype = request.dtype;
    let wrong = match &request.reduction {
        Some(Reduction(How::Op(op))) if !op.applies_to(dtype) => {
            format!("{op} is for integers, not for {dtype}")
        }
        Some(Reduction(How::Scaled(factor))) if factor.dtype != dtype => {
            format!("the factor is of {}, the elements of {dtype}", factor.dtype)
        }
        Some(Reduction(How::User(user))) if user.dtype() != dtype => {
            format!(
                "the reduction is of {}, the elements of {dtype}",
                user.dtype()
            )
        }
        _ => return Ok(()),
    };
    Err(Error::invalid(request.asked.kind.name(), wrong))
}

/// Why a call of a certain size runs as it does: the candidates, their predicted times, the winner.
/// Its `Display` is a table.
#[derive(Clone, Debug)]
pub struct Explanation {
    selection: Selection,
    notes: Vec<String>,
}

impl Explanation {
    /// The name of the algorithm or template that runs.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        self.selection.winner().template.name()
    }

    /// Whether it goes over windows, else it is staged.
    #[must_use]
    pub fn is_windowed(&self) -> bool {
        self.selection.winner().windowed
    }

    /// Notes what a candidate took just now.
    pub(crate) fn set_now(&mut self, plan: select::Plan, windowed: bool, time: Picoseconds) {
        let mut candidates = self.selection.candidates.iter_mut();
        if let Some(of) = candidates.find(|c| c.plan == plan && c.windowed == windowed) {
            of.now = Some(time);
        }
    }

    /// Everything that was considered.
    #[must_use]
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What is not as the link graph and the list of plugins say, and why: pairs of ranks whose devices refused
    /// a mapping when the communicator was formed, and plugins that this rank does without, as their drivers
    /// are not on its machine.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.selection.fmt(f)?;
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}"))
    }
}

impl Communicator {
    /// Why `op` on a message of `bytes` bytes (the larger buffer) runs as it does.
    ///
    /// # Errors
    /// If it cannot run: a forced algorithm, no such root.
    pub fn explain(&self, op: Op, bytes: u64, dtype: DataType) -> Result<Explanation> {
        self.shared.not_forked()?;
        self.shared.explain(op, bytes, dtype, false)
    }

    /// What runs at which size, up to [`Communicator::LARGEST_OF_FRONT`] bytes. Made once
    /// in a process for each fabric, operation and size of elements: the graph is frozen, so it stays true.
    ///
    /// # Errors
    /// If there is no such root or peer.
    pub fn front(&self, op: Op, dtype: DataType) -> Result<Arc<Front>> {
        self.shared.not_forked()?;
        self.shared.front(op, dtype)
    }

    /// The largest message of a [`Communicator::front`].
    pub const LARGEST_OF_FRONT: u64 = 4 << 30;

    /// [`Communicator::explain`] for buffers that lie in windows.
    ///
    /// # Errors
    /// As there.
    pub fn explain_windows(&self, op: Op, bytes: u64, dtype: DataType) -> Result<Explanation> {
        self.shared.not_forked()?;
        self.shared.explain(op, bytes, dtype, true)
    }
}
