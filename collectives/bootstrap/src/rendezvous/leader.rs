//! The rank that gathers its node's ranks and speaks to the root for them.

use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Result};
use crate::secret::Secret;
use crate::wire::acceptor::Listener;
use crate::wire::connection::frame;
use crate::wire::handshake::{Credentials, NO_RANK, Purpose};
use crate::wire::hub::{End, Hub, HubEvent};
use crate::wire::poller::Token;

use super::address;
use super::message::{Arrival, Message};
use super::node::{Met, NoUplink, Node, Uplink};
use super::roll::Roll;
use super::root::settle;

/// How long a leader that does not know how many ranks its node has waits for one more.
const QUIET: Duration = Duration::from_millis(100);
/// How long it waits between attempts to reach the root: it may not be there yet.
const RETRY: Duration = Duration::from_millis(50);

/// The way to the root.
enum Link {
    /// Not reached; to be tried again then.
    Down(Instant),
    /// Being reached.
    Dialling,
    /// Reached, and told of the first so many arrivals.
    Up(Token, usize),
}

struct Leader<'a> {
    node: &'a Node<'a>,
    /// Towards this node's ranks. They know this side as their leader.
    members: Hub,
    /// Towards the root. It knows this side as a rank.
    upward: Hub,
    roll: Roll,
    /// All that came, in order, also what did not fit: the root decides.
    arrivals: Vec<(Arrival, Option<Token>)>,
    link: Link,
    addresses: Vec<SocketAddr>,
    attempts: usize,
    started: Instant,
    last_arrival: Instant,
    last_failure: String,
    misfit: Option<BootstrapError>,
    root_messages: u32,
}

/// Leads the node's ranks until the root (or, without one, the count of ranks) decides.
pub(crate) fn lead(node: &Node<'_>, listener: UnixListener) -> Result<Met> {
    let leader_credentials = Credentials {
        rank: NO_RANK,
        ..node.me.clone()
    };
    let mut members = Hub::new(leader_credentials, "leader of a node")?;
    members.listen(Listener::Unix(listener, node.same_user))?;
    let now = Instant::now();
    let mut leader = Leader {
        node,
        members,
        upward: Hub::new(node.me.clone(), "leader of a node")?,
        roll: Roll::new(node.options.size),
        arrivals: Vec::new(),
        link: Link::Down(now),
        addresses: Vec::new(),
        attempts: 0,
        started: now,
        last_arrival: now,
        last_failure: "not tried yet".to_owned(),
        misfit: None,
        root_messages: 0,
    };
    leader.arrive(node.arrival(), None);
    let verdict = leader.run();
    leader.pass_on(&verdict);
    let strays = leader.members.strays.clone();
    leader.upward.shut_down();
    leader.members.shut_down();
    match verdict? {
        Message::Answer { entries, secret } => {
            let secret = secret.map(Secret::from_bytes);
            Ok(Met {
                entries,
                secret,
                leader: true,
                root_messages: leader.root_messages,
                strays,
            })
        }
        Message::Refusal(error) => Err(error),
        _ => Err(BootstrapError::Protocol {
            rank: NO_RANK,
            what: "an unknown message".to_owned(),
        }),
    }
}

impl Leader<'_> {
    /// Runs until there is something to pass on.
    fn run(&mut self) -> Result<Message> {
        loop {
            self.node.check_abort()?;
            let now = Instant::now();
            self.hear_members(now)?;
            if let Some(answer) = self.hear_root(now)? {
                return Ok(answer);
            }
            let decision = match &self.node.uplink {
                Uplink::Nobody(why) => self.decide(*why, now),
                Uplink::Root(root) => {
                    let root = root.clone();
                    self.report(&root, now)?;
                    self.give_up(&root, now)
                }
            };
            if let Some(decision) = decision {
                return Ok(decision);
            }
            let limit = self
                .node
                .options
                .wait
                .slice()
                .min(Duration::from_millis(10));
            let (above, below) = (self.upward.descriptor(), self.members.descriptor());
            use std::os::fd::AsFd;
            crate::wire::hub::sleep_on(&[above.as_fd(), below.as_fd()], limit);
        }
    }

    fn arrive(&mut self, arrival: Arrival, source: Option<Token>) {
        let now = Instant::now();
        if let Err(misfit) = self.roll.add(&arrival, source, now) {
            self.misfit.get_or_insert(misfit);
        }
        self.last_arrival = now;
        self.arrivals.push((arrival, source));
    }

    fn hear_members(&mut self, now: Instant) -> Result<()> {
        for event in self.members.turn(now, &|_| None)? {
            match event {
                HubEvent::Frame { token, body } => match Message::decode(&body) {
                    Some(Message::Report(arrivals))
                        if self.arrivals.len() < 2 * self.node.options.size as usize + 64 =>
                    {
                        arrivals
                            .into_iter()
                            .for_each(|arrival| self.arrive(arrival, Some(token)));
                    }
                    _ => self.members.close(token),
                },
                HubEvent::Closed { token, .. } => self.depart(token),
                HubEvent::Opened { .. } | HubEvent::Watched { .. } => {}
            }
        }
        Ok(())
    }

    /// A rank of this node went away before the job stood.
    fn depart(&mut self, source: Token) {
        let gone = self.roll.remove_source(source);
        if let Link::Up(link, told) = &mut self.link {
            for rank in gone {
                self.upward
                    .send(*link, frame(&Message::Retract(rank).encode()));
            }
            let before = self.arrivals[..*told]
                .iter()
                .filter(|(_, from)| *from == Some(source))
                .count();
            *told -= before;
        }
        self.arrivals.retain(|(_, from)| *from != Some(source));
    }

    fn hear_root(&mut self, now: Instant) -> Result<Option<Message>> {
        for event in self.upward.turn(now, &|_| None)? {
            match event {
                HubEvent::Opened { token, .. } => self.link = Link::Up(token, 0),
                HubEvent::Frame { body, .. } => {
                    let what = || BootstrapError::Protocol {
                        rank: NO_RANK,
                        what: "an unknown message".to_owned(),
                    };
                    return Message::decode(&body).ok_or_else(what).map(Some);
                }
                HubEvent::Closed { end, .. } => {
                    self.last_failure = match end {
                        End::Lost(why) => why,
                        End::Later => "it asked to try again".to_owned(),
                    };
                    self.link = Link::Down(now + RETRY);
                }
                HubEvent::Watched { .. } => {}
            }
        }
        Ok(None)
    }

    /// Whether this node's ranks are all here, as far as can be known.
    fn is_gathered(&self, now: Instant) -> bool {
        let expected = match self.node.options.local_size {
            Some(local) => self.roll.present() >= local,
            None => now.saturating_duration_since(self.last_arrival) >= QUIET,
        };
        expected || self.roll.is_complete() || self.misfit.is_some()
    }

    /// Tells the root of those that it does not know yet; reaches it first.
    fn report(&mut self, root: &str, now: Instant) -> Result<()> {
        match &mut self.link {
            Link::Down(again) if *again <= now => {
                if self.addresses.is_empty() {
                    self.addresses = address::resolve(root, &self.node.options.wait)?;
                }
                let at = self.addresses[self.attempts % self.addresses.len().max(1)];
                self.attempts += 1;
                self.link = match self.upward.dial(at, Purpose::Meet, NO_RANK) {
                    Ok(_) => Link::Dialling,
                    Err(e) => {
                        self.last_failure = e.to_string();
                        Link::Down(now + RETRY)
                    }
                };
            }
            Link::Up(token, told) if *told < self.arrivals.len() => {
                let (token, told) = (*token, *told);
                // One message for the whole node: it is late enough once all of them are here, or time runs out.
                let hurry = self
                    .roll
                    .cutoff()
                    .is_some_and(|cutoff| cutoff <= now + 2 * QUIET);
                if told > 0 || hurry || self.is_gathered(now) {
                    let new: Vec<Arrival> = self.arrivals[told..]
                        .iter()
                        .map(|(arrival, _)| arrival.clone())
                        .collect();
                    self.upward
                        .send(token, frame(&Message::Report(new).encode()));
                    self.root_messages += 1;
                    self.link = Link::Up(token, self.arrivals.len());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What to say when the root has said nothing and time is up.
    fn give_up(&mut self, root: &str, now: Instant) -> Option<Message> {
        let cutoff = self.roll.cutoff()?;
        let unheard = !matches!(self.link, Link::Up(..));
        // The root has its own deadline and speaks first if it is there; only then does the leader.
        if now < cutoff || (!unheard && now < self.roll.last_moment()?) {
            return None;
        }
        if let Some(misfit) = self.misfit.take() {
            return Some(Message::Refusal(misfit));
        }
        let all_here = self.node.options.local_size == Some(self.node.options.size)
            || address::are_loopback(root) && self.node.options.node_id.is_none();
        let mut missing = if all_here {
            self.roll.missing()
        } else {
            vec![0]
        };
        if self.node.entry.rank == 0 {
            missing.retain(|&rank| rank != 0);
        }
        let (root, waited) = (root.to_owned(), self.started.elapsed());
        Some(Message::Refusal(BootstrapError::RootUnreachable {
            root,
            waited,
            last: self.last_failure.clone(),
            missing,
        }))
    }

    /// Without a root, this rank decides.
    fn decide(&mut self, why: NoUplink, now: Instant) -> Option<Message> {
        if self.misfit.is_some() {
            return settle(now, self.last_arrival)
                .then(|| self.misfit.take())
                .flatten()
                .map(Message::Refusal);
        }
        if self.roll.is_complete() {
            return Some(Message::Answer {
                entries: self.roll.answer(None),
                secret: self.hand_out(),
            });
        }
        let Some(local) = self.node.options.local_size else {
            return (self.roll.cutoff()? <= now).then(|| Message::Refusal(self.incomplete(why)));
        };
        // The launcher said that other ranks are elsewhere: nothing is gained by waiting.
        let hopeless = local < self.node.options.size && self.roll.present() >= local;
        (hopeless || self.roll.cutoff()? <= now).then(|| Message::Refusal(self.incomplete(why)))
    }

    fn incomplete(&self, why: NoUplink) -> BootstrapError {
        let (size, present, missing) = (
            self.node.options.size,
            self.roll.present(),
            self.roll.missing(),
        );
        let all_local = self.node.options.local_size == Some(size);
        match why {
            _ if all_local => {
                let root = format!("node {}", self.node.entry.node);
                BootstrapError::Missing {
                    ranks: missing,
                    size,
                    waited: self.started.elapsed(),
                    root,
                }
            }
            NoUplink::NoRoot => BootstrapError::NoRoot {
                present,
                size,
                missing,
            },
            NoUplink::NoSecret => {
                let missing = crate::error::Ranks(&missing).to_string();
                let why = format!("{present} of {size} ranks met on this node, missing {missing}");
                BootstrapError::NoSecret { why }
            }
        }
    }

    fn hand_out(&self) -> Option<[u8; 32]> {
        self.node.hand_out.as_ref().map(|secret| *secret.expose())
    }

    /// Tells this node's ranks how it ended, and stays until they have heard it, a second at most.
    fn pass_on(&mut self, verdict: &Result<Message>) {
        let mut sources: Vec<Token> = self
            .arrivals
            .iter()
            .filter_map(|(_, source)| *source)
            .collect();
        sources.sort_unstable();
        sources.dedup();
        for &source in &sources {
            let message = match verdict {
                Ok(Message::Answer { secret, .. })
                    if matches!(self.node.uplink, Uplink::Nobody(_)) =>
                {
                    Message::Answer {
                        entries: self.roll.answer(Some(source)),
                        secret: *secret,
                    }
                    .encode()
                }
                Ok(message) => message.encode(),
                // This rank alone gives up: another one will lead, or tell the others what is missing.
                Err(_) => continue,
            };
            self.members.send(source, frame(&message));
        }
        if verdict.is_err() {
            return;
        }
        let until = Instant::now() + Duration::from_secs(1);
        while !sources.is_empty() && Instant::now() < until {
            self.members.sleep(Duration::from_millis(20));
            let Ok(events) = self.members.turn(Instant::now(), &|_| None) else {
                return;
            };
            for event in events {
                if let HubEvent::Closed { token, .. } = event {
                    sources.retain(|&source| source != token);
                }
            }
        }
    }
}
