//! A lane's next queue pair, from the first word about it until it carries the lane.
//!
//! The first one of a lane comes up like all that replace it: the dialer offers, the acceptor answers,
//! the dialer sees a packet acknowledged, and only then does anything depend on it.

use std::io;
use std::thread::JoinHandle;
use std::time::Instant;

use unisono_plugin::{Error, Result, Status, spawn_quiet};

use super::lane::{Lane, Old};
use super::session::{Session, random};
use super::wire::{Arrival, Broken, Route, Wire};
use crate::verbs::Capacity;
use crate::wire::{Answer, Control, Count, End, Offer, SIGNATURE};

/// A queue pair on its way.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) wire: Wire,
    /// When the peer was last told something, or answered.
    pub(crate) since: Instant,
    stage: Stage,
}

/// A queue pair that is being connected, by a thread of its own: drivers look for the neighbour and take
/// seconds where the path is dead, and the lane's other rails must not wait for that. Who lets go of it
/// lets the thread end by itself; it then drops the wire.
#[derive(Debug)]
pub(crate) struct Connecting {
    thread: JoinHandle<(Wire, io::Result<()>)>,
    route: Route,
    side: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Dialer,
    Acceptor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Dialer: until the peer has one too.
    Offered,
    /// Dialer: until the path has carried a packet.
    Probing,
    /// Dialer: until the old one is empty.
    Emptying,
    /// Dialer: until the peer has settled too.
    Ready,
    /// Acceptor: until the dialer is ready.
    Answered,
    /// Acceptor: until the old one is empty; the dialer has received so much.
    Settling(u64),
}

/// What came of a step.
#[derive(Debug)]
pub(crate) enum Progress {
    Nothing,
    /// The new queue pair carries the lane; the peer had received so many of our messages.
    Up(u64),
    /// It came to nothing.
    Failed(Broken, Route),
}

impl Attempt {
    /// Whether it has got an answer already.
    pub(crate) fn is_answered(&self) -> bool {
        self.stage != Stage::Offered
    }
}

/// The dialer begins: a new queue pair over a route.
pub(crate) fn offer(session: &Session, lane: &mut Lane, route: Route) -> Result<()> {
    lane.generation += 1;
    let wire = new_wire(session, lane, route, lane.generation)?;
    let end = End {
        number: wire.number(),
        start: wire.start,
    };
    session.say(Control::Offer(Offer {
        lane: lane.index as u8,
        generation: lane.generation,
        rails: [route.rail as u8, route.peer_rail as u8],
        gids: [route.gid as u8, route.peer_gid as u8],
        end,
        signature: [0; SIGNATURE],
    }))?;
    lane.attempt = Some(Attempt {
        wire,
        since: Instant::now(),
        stage: Stage::Offered,
    });
    Ok(())
}

/// The acceptor takes up an offer. Where its end of the path cannot be set up it says so, and the dialer
/// tries another.
pub(crate) fn answer(session: &Session, lane: &mut Lane, offer: &Offer) -> Result<Progress> {
    if offer.generation <= lane.generation {
        return Ok(Progress::Nothing); // overtaken
    }
    let [rail, gid] = [offer.rails[1], offer.gids[1]].map(usize::from);
    let [peer_rail, peer_gid] = [offer.rails[0], offer.gids[0]].map(usize::from);
    let route = Route {
        rail,
        peer_rail,
        gid,
        peer_gid,
    };
    if !session.is_route(&route) {
        return Err(Error::new(
            Status::Link,
            format!("rank {} offers a route that cannot be", session.peer()),
        ));
    }
    lane.generation = offer.generation;
    lane.attempt = None;
    let wire = new_wire(session, lane, route, offer.generation)?;
    connect(session, lane, wire, offer.end, Side::Acceptor)
}

/// The dialer hears the answer.
pub(crate) fn answered(session: &Session, lane: &mut Lane, answer: &Answer) -> Result<Progress> {
    match take_offered(lane, answer.generation) {
        Some(wire) => connect(session, lane, wire, answer.end, Side::Dialer),
        None => Ok(Progress::Nothing),
    }
}

/// The dialer hears that the acceptor cannot set its end up.
pub(crate) fn refused(lane: &mut Lane, generation: u32) -> Progress {
    match take_offered(lane, generation) {
        Some(wire) => Progress::Failed(
            Broken::System(
                "the peer cannot set the path up",
                io::ErrorKind::HostUnreachable.into(),
            ),
            wire.route,
        ),
        None => Progress::Nothing,
    }
}

/// The queue pair of an offer that is not answered yet.
fn take_offered(lane: &mut Lane, generation: u32) -> Option<Wire> {
    current(lane, generation, Stage::Offered)?;
    lane.attempt.take().map(|attempt| attempt.wire)
}

/// Goes on with a queue pair that is connected now. The dialer then sees whether the path carries a packet;
/// the acceptor says that it may.
fn connected(session: &Session, lane: &mut Lane) -> Result<Progress> {
    let done = |connecting: &mut Connecting| connecting.thread.is_finished();
    let Some(connecting) = lane.connecting.take_if(done) else {
        return Ok(Progress::Nothing);
    };
    let Connecting {
        thread,
        route,
        side,
    } = connecting;
    let Ok((mut wire, connected)) = thread.join() else {
        let what = "the thread that connects a queue pair has panicked";
        return Err(Error::new(Status::Internal, what));
    };
    if let Err(error) = connected {
        let broken = Broken::System("the path cannot be set up", error);
        return Ok(Progress::Failed(broken, route));
    }
    let stage = match side {
        Side::Dialer => {
            if let Err(broken) = wire.probe() {
                return Ok(Progress::Failed(broken, route));
            }
            Stage::Probing
        }
        Side::Acceptor => {
            session.say(Control::Answer(Answer {
                lane: lane.index as u8,
                generation: wire.generation,
                end: End {
                    number: wire.number(),
                    start: wire.start,
                },
                signature: [0; SIGNATURE],
            }))?;
            Stage::Answered
        }
    };
    lane.attempt = Some(Attempt {
        wire,
        since: Instant::now(),
        stage,
    });
    Ok(Progress::Nothing)
}

/// The acceptor hears that the dialer is ready.
pub(crate) fn ready(lane: &mut Lane, count: &Count) {
    if let Some(attempt) = current(lane, count.generation, Stage::Answered) {
        attempt.stage = Stage::Settling(count.received);
        retire(lane);
    }
}

/// The dialer hears that the acceptor has settled.
pub(crate) fn settled(lane: &mut Lane, count: &Count) -> Progress {
    if current(lane, count.generation, Stage::Ready).is_none() {
        return Progress::Nothing;
    }
    install(lane, count.received)
}

/// Goes on as far as it can without the peer.
pub(crate) fn go_on(session: &Session, lane: &mut Lane) -> Result<Progress> {
    if let failed @ Progress::Failed(..) = connected(session, lane)? {
        return Ok(failed);
    }
    let Some(attempt) = &mut lane.attempt else {
        return Ok(Progress::Nothing);
    };
    if attempt.stage == Stage::Probing {
        let mut probed = false;
        let collected = attempt
            .wire
            .collect(|arrival| probed |= arrival == Arrival::Answered);
        if let Err(broken) = collected {
            let route = attempt.wire.route;
            lane.attempt = None;
            return Ok(Progress::Failed(broken, route));
        }
        if probed {
            attempt.stage = Stage::Emptying;
            retire(lane);
        }
    }
    if !is_empty(lane) {
        return Ok(Progress::Nothing);
    }
    let Some(attempt) = &mut lane.attempt else {
        return Ok(Progress::Nothing);
    };
    let count = Count {
        lane: lane.index as u8,
        generation: attempt.wire.generation,
        received: lane.received,
        signature: [0; SIGNATURE],
    };
    match attempt.stage {
        Stage::Emptying => {
            attempt.stage = Stage::Ready;
            attempt.since = Instant::now();
            session.say(Control::Ready(count))?;
            Ok(Progress::Nothing)
        }
        Stage::Settling(received) => {
            session.say(Control::Settled(count))?;
            Ok(install(lane, received))
        }
        Stage::Offered | Stage::Probing | Stage::Ready | Stage::Answered => Ok(Progress::Nothing),
    }
}

/// Gives an attempt up. An acceptor that was told that it is ready may have sent over it: what its
/// device took for acknowledged is still to be taken.
pub(crate) fn give_up(lane: &mut Lane) {
    if let Some(attempt) = lane.attempt.take()
        && attempt.stage == Stage::Ready
    {
        lane.old = Some(stopped(attempt.wire));
    }
}

/// Stops the wire of a lane, if it has one. What had come over it is still to be taken.
pub(crate) fn retire(lane: &mut Lane) {
    if let Some(wire) = lane.wire.take() {
        lane.old = Some(stopped(wire));
    }
}

fn stopped(mut wire: Wire) -> Old {
    // Where even this fails the device is gone, and nothing of it can land.
    let _ = wire.stop();
    Old::new(wire)
}

/// Whether all that had come over a stopped wire is taken; then it is gone.
fn is_empty(lane: &mut Lane) -> bool {
    if lane.old.as_ref().is_some_and(|old| !old.is_empty()) {
        return false;
    }
    lane.old = None;
    true
}

fn install(lane: &mut Lane, received: u64) -> Progress {
    match lane.attempt.take() {
        Some(attempt) => {
            let mut wire = attempt.wire;
            // It may have waited long for the peer.
            wire.heard = Instant::now();
            lane.wire = Some(wire);
            Progress::Up(received)
        }
        None => Progress::Nothing,
    }
}

/// The attempt of this generation, if it is at this stage: all else is overtaken.
fn current(lane: &mut Lane, generation: u32, stage: Stage) -> Option<&mut Attempt> {
    lane.attempt
        .as_mut()
        .filter(|attempt| attempt.wire.generation == generation && attempt.stage == stage)
}

fn new_wire(session: &Session, lane: &Lane, route: Route, generation: u32) -> Result<Wire> {
    let shared = session.shared();
    let rail = &shared.rails.all()[route.rail];
    let start = (random()? & 0xff_ffff) as u32;
    let capacity = Capacity {
        sends: shared.rails.depth(shared.config.queue_depth),
        receives: lane.block.receives(),
        inline: shared.config.inline,
    };
    Wire::new(rail, route, generation, start, &lane.block, capacity).map_err(|error| {
        let what = format!(
            "{}: no queue pair for the link to rank {}",
            rail.facts.name(),
            session.peer()
        );
        Error::system(Status::Device, &what, &error)
    })
}

/// Begins to connect to the peer's queue pair; without a thread it cannot.
///
/// # Errors
/// There is no such route.
fn connect(
    session: &Session,
    lane: &mut Lane,
    mut wire: Wire,
    end: End,
    side: Side,
) -> Result<Progress> {
    let path = session.path(&wire.route, end, wire.start).ok_or_else(|| {
        Error::new(
            Status::Link,
            format!("rank {} names a route that cannot be", session.peer()),
        )
    })?;
    let route = wire.route;
    let run = move || {
        let connected = wire.connect(&path);
        (wire, connected)
    };
    match spawn_quiet("unisono-connect", run) {
        Ok(thread) => {
            lane.connecting = Some(Connecting {
                thread,
                route,
                side,
            });
            Ok(Progress::Nothing)
        }
        Err(error) => {
            let error = io::Error::other(error.to_string());
            let broken = Broken::System("the path cannot be set up", error);
            Ok(Progress::Failed(broken, route))
        }
    }
}
