//! A plan becomes batches of commands on a stream and on links.
//!
//! [`Lane`] is the queue of one communicator: it *lowers* the oldest call's program into commands,
//! *submits* them in batches, *polls* its stream and links, and *retires* what is complete. Short
//! calls between CPUs it runs [directly](direct).

mod aside;
mod calls;
mod common;
mod direct;
mod due_bells;
pub(crate) mod exchanges;
mod group;
pub(crate) mod held;
mod holdings;
mod lane;
mod left;
mod links;
mod lower;
mod mark;
mod notices;
mod op;
mod past;
mod peer;
mod place;
mod pointed;
mod record;
mod recorded;
mod repeat;
mod state;
mod told;
mod track;
mod unchecked;
mod windows;

use unisono_hal::Batch;

pub(crate) use aside::{Aside, Asides};
pub(crate) use direct::{Answered, Direct};
pub(crate) use holdings::{Bells, Holdings, Kept};
pub(crate) use lane::{Lane, OnFailure, is_abort};
pub(crate) use left::sweep;
pub(crate) use mark::{Flag, Gate, Mark};
pub(crate) use op::{Op, PeerBuffers, Planned};
pub(crate) use past::Past;
pub(crate) use peer::{Fetch, Load, Near, Own, Peer, Posted, SIGNAL_WINDOW, SLOTS_WINDOW, Way};
pub(crate) use pointed::LONG_MESSAGE;
pub(crate) use repeat::{CallShape, Ended, Key};
pub(crate) use state::{HEARD, State};
pub(crate) use told::Target;
pub(crate) use windows::{Mapped, Windows};

#[allow(
    unsafe_code,
    reason = "commands hold plain addresses; this is where the lane answers for them"
)]
fn new_batch() -> Batch {
    // SAFETY: a lane's batches are filled by `Lowering`; by a track that hands a direct run over, with
    // waits for its own flags; and with what makes up for owed waits: waits for its own flags and
    // signals to its peers' credit flags and bells. The addresses are the lane's arena and the arenas of its peers,
    // all of which the lane keeps mapped until its queues are quiet; gates, which ops own; and the
    // buffers of ops, which their callers keep alive and untouched until the op is complete (borrowed
    // by the blocking form, owned by the stream form, promised by the raw form). That commands do not
    // race is what the plan verifier proves of every program; what makes up is on the main track
    // alone, before the first command of an op and before messages begin beside it.
    // Of a recorded call the same holds for each replay: what it names is kept until the communicator is
    // gone or is told to forget it, after which nobody runs the graph, by the contract of `on`.
    unsafe { Batch::new() }
}
