//! The root: counts the nodes' reports and answers each of them once.
//!
//! It runs on a thread of its own, because the rank that serves it is busy being a rank. The thread ends with its
//! answer, at its deadline, or when the rank's abort flag is raised.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Result};
use crate::identity::Prover;
use crate::report::Strays;
use crate::secret::Secret;
use crate::wait::Wait;
use crate::wire::acceptor::Listener;
use crate::wire::connection::frame;
use crate::wire::handshake::{Credentials, NO_RANK};
use crate::wire::hub::{Hub, HubEvent};
use crate::wire::poller::Token;

use super::message::Message;
use super::roll::Roll;

/// After ranks were found not to fit, how long to wait for further ones, so that they are told as well.
const SETTLE: Duration = Duration::from_millis(300);
/// How long latecomers are told why the job does not start.
const LINGER: Duration = Duration::from_secs(2);

/// Whether nobody has come for so long that a refusal reaches all that will come.
pub(crate) fn settle(now: Instant, last_arrival: Instant) -> bool {
    now.saturating_duration_since(last_arrival) >= SETTLE
}

/// The root of one job.
pub(crate) struct Root {
    thread: JoinHandle<Strays>,
}

impl Root {
    /// Serves a job of `size` ranks.
    pub(crate) fn start(
        listener: TcpListener,
        secret: Secret,
        size: u32,
        wait: Wait,
        place: String,
    ) -> Result<Root> {
        let me = Credentials {
            secret,
            rank: NO_RANK,
            prover: Prover::random()?,
        };
        let mut hub = Hub::new(me, "root")?;
        hub.listen(Listener::Tcp(listener))?;
        let now = Instant::now();
        let service = Service {
            hub,
            roll: Roll::new(size),
            sources: BTreeSet::new(),
            size,
            place,
            started: now,
            last_arrival: now,
        };
        let thread = std::thread::Builder::new()
            .name("unisono-root".to_owned())
            .spawn(move || service.run(&wait));
        let thread = thread.map_err(|e| BootstrapError::io("starting the root's thread", e))?;
        Ok(Root { thread })
    }

    /// Waits for it to end, which it does within a second once all ranks have their answers.
    pub(crate) fn finish(self) -> Strays {
        self.thread.join().unwrap_or_default()
    }
}

struct Service {
    hub: Hub,
    roll: Roll,
    sources: BTreeSet<Token>,
    size: u32,
    place: String,
    started: Instant,
    last_arrival: Instant,
}

impl Service {
    fn run(mut self, wait: &Wait) -> Strays {
        let verdict = self.collect(wait);
        if let Some(verdict) = verdict {
            let complete = verdict.is_none();
            self.tell(verdict.as_ref());
            self.see_off(
                verdict.as_ref(),
                if complete {
                    Duration::from_secs(1)
                } else {
                    LINGER
                },
                wait,
            );
        }
        let strays = self.hub.strays.clone();
        self.hub.shut_down();
        strays
    }

    /// Waits for all: `Some(None)` once they are here, `Some(error)` if they never will be, `None` if nobody is to
    /// be told anything.
    fn collect(&mut self, wait: &Wait) -> Option<Option<BootstrapError>> {
        let mut misfit: Option<BootstrapError> = None;
        loop {
            let now = Instant::now();
            if wait.abort.is_raised() {
                return None;
            }
            for event in self.hub.turn(now, &|_| None).ok()? {
                if let Err(error) = self.hear(event, now) {
                    misfit.get_or_insert(error);
                }
            }
            if misfit.is_some() {
                if settle(now, self.last_arrival) {
                    return Some(misfit);
                }
            } else if self.roll.is_complete() {
                return Some(None);
            }
            let cutoff = self
                .roll
                .cutoff()
                .map_or(wait.until, |cutoff| cutoff.min(wait.until));
            if now >= cutoff {
                let (ranks, size, waited) =
                    (self.roll.missing(), self.size, self.started.elapsed());
                return Some(Some(misfit.unwrap_or(BootstrapError::Missing {
                    ranks,
                    size,
                    waited,
                    root: self.place.clone(),
                })));
            }
            self.hub
                .sleep((cutoff - now).min(Duration::from_millis(20)));
        }
    }

    fn hear(&mut self, event: HubEvent, now: Instant) -> Result<()> {
        match event {
            HubEvent::Frame { token, body } => {
                self.last_arrival = now;
                match Message::decode(&body) {
                    Some(Message::Report(arrivals)) => {
                        self.sources.insert(token);
                        return arrivals
                            .iter()
                            .try_for_each(|arrival| self.roll.add(arrival, Some(token), now));
                    }
                    Some(Message::Retract(rank)) => self.roll.remove(rank, token),
                    _ => self.hub.close(token),
                }
            }
            HubEvent::Closed { token, .. } => {
                self.roll.remove_source(token);
                self.sources.remove(&token);
            }
            HubEvent::Opened { .. } | HubEvent::Watched { .. } => {}
        }
        Ok(())
    }

    /// Answers everyone who has reported.
    fn tell(&mut self, refusal: Option<&BootstrapError>) {
        let refusal = refusal.map(refusal_frame);
        for &source in &self.sources {
            let message = refusal.clone().unwrap_or_else(|| {
                let entries = self.roll.answer(Some(source));
                frame(
                    &Message::Answer {
                        entries,
                        secret: None,
                    }
                    .encode(),
                )
            });
            self.hub.send(source, message);
        }
    }

    /// Stays until all have their answers; after a refusal, for latecomers too.
    fn see_off(&mut self, refusal: Option<&BootstrapError>, limit: Duration, wait: &Wait) {
        let until = Instant::now() + limit;
        while Instant::now() < until && !wait.abort.is_raised() {
            if refusal.is_none() && self.sources.is_empty() {
                return;
            }
            self.hub.sleep(Duration::from_millis(20));
            let Ok(events) = self.hub.turn(Instant::now(), &|_| None) else {
                return;
            };
            for event in events {
                match event {
                    HubEvent::Closed { token, .. } => drop(self.sources.remove(&token)),
                    HubEvent::Frame { token, .. } => {
                        if let Some(refusal) = refusal {
                            self.hub.send(token, refusal_frame(refusal));
                        }
                    }
                    HubEvent::Opened { .. } | HubEvent::Watched { .. } => {}
                }
            }
        }
    }
}

fn refusal_frame(error: &BootstrapError) -> std::sync::Arc<[u8]> {
    frame(&Message::encode_refusal(error))
}
