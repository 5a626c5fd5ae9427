//! What a link does now and then: it hears what the peer says over the control channel, brings queue
//! pairs up, replaces dead ones, probes silent ones, and gives up in time.

use std::time::{Duration, Instant};

use unisono_plugin::{Error, Level, Result, log};

use super::bring_up::{self, Progress};
use super::established::Established;
use super::outbox::Outbox;
use super::recovery::{Overdue, UNANSWERED, UNHURRIED, same};
use super::session::{Heard, Session};
use super::trouble;
use super::wire::{Broken, Route};
use crate::wire::Control;

/// Messages of the control channel that one look takes.
const HEARD_MAX: usize = 64;
/// A queue pair with work under way of which nothing comes: its device retries in vain for no longer
/// than this beyond what it was told.
const STALL: Duration = Duration::from_secs(2);
/// While a link connects, it looks this often for what the peer says.
const CONNECTING: Duration = Duration::from_millis(1);

/// What upkeep remembers.
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// When the link began to connect.
    began: Option<Instant>,
    was_up: bool,
    /// When each lane last had an attempt that failed.
    tried: Vec<Option<Instant>>,
    last: Option<Error>,
    /// When this end last looked, and last heard of the peer.
    looked: Option<Instant>,
    heard: Option<Instant>,
}

impl Upkeep {
    /// True if anything moved.
    ///
    /// # Errors
    /// The link can't go on.
    pub(crate) fn tick(
        &mut self,
        session: &mut Session,
        established: &mut Option<Established>,
        outbox: &mut Outbox,
        now: Instant,
    ) -> Result<bool> {
        self.began.get_or_insert(now);
        let mut moved = false;
        for _ in 0..HEARD_MAX {
            let Some(heard) = session.hear()? else { break };
            moved = true;
            self.heard = Some(now);
            match heard {
                Heard::Met => {
                    if self.was_up {
                        return Err(trouble::restarted(session.peer()));
                    }
                    let met = Established::new(session)?;
                    outbox.set_lanes(met.lanes.len());
                    self.tried = vec![None; met.lanes.len()];
                    *established = Some(met);
                }
                Heard::Control(control) => {
                    let Some(established) = established else {
                        continue;
                    };
                    self.hear(session, established, control, now)?;
                }
            }
        }
        let passed = now.saturating_duration_since(self.looked.unwrap_or(now));
        if let Some(established) = established {
            let troubles = established.lanes.iter_mut();
            for trouble in troubles.filter_map(|lane| lane.trouble.as_mut()) {
                trouble.pass(passed, self.heard, now);
            }
            for lane in 0..established.lanes.len() {
                moved |= self.tend(session, established, lane, now)?;
            }
            established.settle(outbox);
            self.was_up |= established.is_up();
        }
        // The time that this look took is none in which nobody looked.
        self.looked = Some(Instant::now());
        Ok(moved)
    }

    fn hear(
        &mut self,
        session: &Session,
        established: &mut Established,
        control: Control,
        now: Instant,
    ) -> Result<()> {
        let number = match &control {
            Control::Offer(offer) => offer.lane,
            Control::Answer(answer) => answer.lane,
            Control::Ready(count) | Control::Settled(count) => count.lane,
            Control::Down { lane, .. } => *lane,
            Control::GaveUp => {
                // Where this end has lost the path too, that says more than that the peer was first.
                let own = established
                    .lanes
                    .iter()
                    .find_map(|lane| match &lane.trouble {
                        Some(trouble) if !trouble.planned => Some(&trouble.cause),
                        _ => None,
                    });
                return Err(match own {
                    Some(cause) => trouble::given_up_there(session.peer(), cause),
                    None => trouble::gave_up(session.peer(), self.was_up),
                });
            }
            Control::Hello(_) => return Ok(()),
        };
        let Some(lane) = established.lanes.get_mut(usize::from(number)) else {
            return Err(trouble::nonsense(
                session.peer(),
                "it names a lane that is none",
            ));
        };
        match control {
            Control::Offer(offer) if !session.is_dialer() => {
                let progress = bring_up::answer(session, lane, &offer)?;
                self.note(session, established, usize::from(number), progress, now)
            }
            Control::Answer(answer) if session.is_dialer() => {
                let progress = bring_up::answered(session, lane, &answer)?;
                self.note(session, established, usize::from(number), progress, now)
            }
            Control::Ready(count) if !session.is_dialer() => {
                bring_up::ready(lane, &count);
                Ok(())
            }
            Control::Settled(count) if session.is_dialer() => {
                let progress = bring_up::settled(lane, &count);
                self.note(session, established, usize::from(number), progress, now)
            }
            Control::Down { generation, .. } => {
                let current = lane.wire.as_ref().filter(|w| w.generation == generation);
                match current.map(|wire| wire.route) {
                    None => {
                        let progress = bring_up::refused(lane, generation);
                        self.note(session, established, usize::from(number), progress, now)
                    }
                    Some(route) => {
                        let error = Error::new(
                            unisono_plugin::Status::Peer,
                            format!(
                                "rank {} has lost {}",
                                session.peer(),
                                session.route_name(&route)
                            ),
                        );
                        self.down(session, established, usize::from(number), route, error, now);
                        Ok(())
                    }
                }
            }
            _ => Err(trouble::nonsense(
                session.peer(),
                "it says what is not for its end to say",
            )),
        }
    }

    /// A lane's queue pair is dead.
    ///
    /// # Errors
    /// No other could do better.
    pub(crate) fn lose(
        &mut self,
        session: &Session,
        established: &mut Established,
        lane: usize,
        broken: &Broken,
        now: Instant,
    ) -> Result<()> {
        let Some(wire) = &established.lanes[lane].wire else {
            return Ok(());
        };
        let (route, generation) = (wire.route, wire.generation);
        let error = trouble::broken(session, &route, broken);
        let again =
            broken.is_path() || (broken.is_refusal() && established.lanes[lane].may_ask_again());
        if !again {
            return Err(error);
        }
        self.down(session, established, lane, route, error, now);
        // The dialer acts by itself; the acceptor must ask it to.
        if !session.is_dialer() {
            session.say(Control::Down {
                lane: lane as u8,
                generation,
            })?;
        }
        Ok(())
    }

    fn down(
        &mut self,
        session: &Session,
        established: &mut Established,
        lane: usize,
        route: Route,
        error: Error,
        now: Instant,
    ) {
        log!(
            session.shared().host,
            Level::Warn,
            "{}; looking for another way for {} writes",
            error.message(),
            established.lanes[lane].outstanding()
        );
        established.pairs.note_failure(&route, now);
        established.stop(lane);
        let was_well = established.lanes[lane].trouble.is_none();
        established.lanes[lane].begin_trouble(error, now);
        if was_well && !established.is_any_well() {
            // The others had long while one was well. From here on they have as long as this one.
            let others = (0..)
                .zip(&mut established.lanes)
                .filter(|(other, _)| *other != lane);
            for trouble in others.filter_map(|(_, other)| other.trouble.as_mut()) {
                trouble.begin_again(now);
            }
        }
        self.tried[lane] = None;
    }

    /// Looks after one lane.
    fn tend(
        &mut self,
        session: &Session,
        established: &mut Established,
        index: usize,
        now: Instant,
    ) -> Result<bool> {
        let lane = &mut established.lanes[index];
        let progress = bring_up::go_on(session, lane)?;
        let moved = !matches!(progress, Progress::Nothing);
        self.note(session, established, index, progress, now)?;
        self.probe(session, established, index, now)?;
        let lane = &mut established.lanes[index];
        if self.was_up && lane.wire.is_none() && lane.trouble.is_none() {
            lane.begin_move(trouble::moving(session.peer()), now);
        }
        if lane.wire.is_some() && lane.is_idle() {
            lane.trouble = None;
        }
        Self::check_trouble(session, established, index, now)?;
        if session.is_dialer() {
            self.dial(session, established, index, now)?;
        }
        Ok(moved)
    }

    /// Fails if a lane is without a queue pair for too long, and the link cannot do without it.
    fn check_trouble(
        session: &Session,
        established: &mut Established,
        index: usize,
        now: Instant,
    ) -> Result<()> {
        let config = &session.shared().config;
        let (recovery, patience) = (config.recovery, config.connect_timeout);
        let is_spare = established.is_spare(index);
        let Some(trouble) = &mut established.lanes[index].trouble else {
            return Ok(());
        };
        if is_spare {
            // Its time begins when it is needed.
            trouble.begin_again(now);
            return Ok(());
        }
        let Some(overdue) = trouble.overdue(recovery, patience, now) else {
            return Ok(());
        };
        let (cause, outstanding) = (&trouble.cause, trouble.outstanding);
        Err(match overdue {
            Overdue::Unmended => trouble::given_up(cause, recovery, outstanding),
            Overdue::Absent => trouble::absent(session.peer(), cause, patience),
        })
    }

    /// Takes note of what came of a lane's next queue pair.
    fn note(
        &mut self,
        session: &Session,
        established: &mut Established,
        index: usize,
        progress: Progress,
        now: Instant,
    ) -> Result<()> {
        match progress {
            Progress::Nothing => Ok(()),
            Progress::Up(received) => {
                let lane = &mut established.lanes[index];
                lane.resume(received, &mut established.ended)
                    .map_err(|messages| trouble::lost(session.peer(), messages))?;
                established.credits.renew(index);
                established.recovered += u64::from(self.was_up && lane.is_in_trouble());
                if let Some(wire) = &lane.wire {
                    established.pairs.note_success(&wire.route, now);
                    let level = if lane.is_in_trouble() {
                        Level::Warn
                    } else {
                        Level::Debug
                    };
                    log!(
                        session.shared().host,
                        level,
                        "the link to rank {} goes over {}; {} writes go again",
                        session.peer(),
                        session.route_name(&wire.route),
                        lane.outstanding()
                    );
                }
                Ok(())
            }
            Progress::Failed(broken, route) => {
                let error = trouble::broken(session, &route, &broken);
                established.pairs.note_failure(&route, now);
                self.tried[index] = Some(now);
                let lane = &mut established.lanes[index];
                if lane.trouble.is_some() {
                    lane.begin_trouble(error.clone(), now);
                }
                self.last = Some(error);
                if !session.is_dialer() {
                    session.say(Control::Down {
                        lane: index as u8,
                        generation: lane.generation,
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Probes a queue pair that was silent for long, and finds one that is stuck.
    fn probe(
        &mut self,
        session: &Session,
        established: &mut Established,
        index: usize,
        now: Instant,
    ) -> Result<()> {
        let config = &session.shared().config;
        let lane = &mut established.lanes[index];
        let busy = lane.has_posted();
        let Some(wire) = &mut lane.wire else {
            return Ok(());
        };
        if std::mem::take(&mut wire.fresh) {
            wire.heard = now;
            if lane.is_in_trouble() {
                log!(
                    session.shared().host,
                    Level::Info,
                    "the link to rank {} is well again",
                    session.peer()
                );
            }
            lane.trouble = None;
            return Ok(());
        }
        let silent = now.saturating_duration_since(wire.heard);
        let broken = if busy || wire.is_probing() {
            let retrying =
                Duration::from_nanos(4096 << config.ack_timeout) * (u32::from(config.retries) + 2);
            if silent < retrying * 4 + STALL {
                return Ok(());
            }
            let error = std::io::ErrorKind::TimedOut.into();
            Broken::System("its device answers nothing", error)
        } else if silent < config.keepalive {
            return Ok(());
        } else {
            wire.heard = now;
            match wire.probe() {
                Ok(()) => return Ok(()),
                Err(broken) => broken,
            }
        };
        self.lose(session, established, index, &broken, now)
    }

    /// The dialer sees to it that a lane has a queue pair, and on its own rails if they live.
    fn dial(
        &mut self,
        session: &Session,
        established: &mut Established,
        index: usize,
        now: Instant,
    ) -> Result<()> {
        let lane = &mut established.lanes[index];
        if let Some(attempt) = &lane.attempt {
            // At first the peer may take its time to come; later it is there, or gone.
            let waits = now.saturating_duration_since(attempt.since);
            let patience = if lane.wire.is_some() {
                UNHURRIED
            } else {
                UNANSWERED
            };
            if self.was_up && waits > patience {
                let route = attempt.wire.route;
                if attempt.is_answered() || lane.wire.is_some() {
                    established.pairs.note_failure(&route, now);
                } else {
                    established.pairs.note_silence(&route, now);
                }
                bring_up::give_up(lane);
                // What began a trouble says more than that nobody answers since.
                if lane.trouble.as_ref().is_some_and(|trouble| trouble.planned) {
                    lane.begin_trouble(trouble::unanswered(session, &route), now);
                }
                self.tried[index] = Some(now);
            }
            return Ok(());
        }
        if !lane.may_try(self.tried[index], now) {
            return Ok(());
        }
        let rails = session.shared().rails.all();
        let is_up = |rail: usize| rails.get(rail).is_some_and(|rail| rail.is_up());
        let route = match &lane.wire {
            None => established.pairs.next(index, now, is_up),
            Some(wire) => {
                let home = established.pairs.home(index);
                let away = home.is_some_and(|home| !same(&home, &wire.route));
                away.then(|| established.pairs.may_return(index, now, is_up))
                    .flatten()
            }
        };
        match route {
            Some(route) => bring_up::offer(session, lane, route),
            None => Ok(()),
        }
    }

    /// Fails if connecting takes too long.
    pub(crate) fn check_connecting(&self, session: &Session, now: Instant) -> Result<()> {
        let limit = session.shared().config.connect_timeout;
        match self.began {
            Some(began) if now - began >= limit => Err(trouble::too_late(
                session.peer(),
                limit,
                session.met().is_some(),
                self.last.as_ref(),
            )),
            _ => Ok(()),
        }
    }

    /// When to look again, if nothing comes.
    pub(crate) fn next(&self, session: &Session) -> Duration {
        if self.was_up {
            session.shared().config.keepalive
        } else {
            CONNECTING
        }
    }
}
