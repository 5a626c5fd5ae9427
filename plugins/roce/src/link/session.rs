//! What the two ends say to each other over the control channel, and to whom they say it.
//!
//! Each end has a number of its own for each time that it is made, so that what an earlier one left in
//! the channel is told apart.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use unisono_plugin::{Channel, Error, Result, Status};

use super::wire::Route;
use crate::nic::{GidEntry, GidType, Rail, Side, choose};
use crate::plugin::Shared;
use crate::verbs::Path;
use crate::wire::{
    CONTROL_MAX, Control, End, Hello, Message, PeerRail, Record, SIGNATURE, transcript,
};

/// The tag of all control messages.
const TAG: u64 = 0x726f_6365;

/// The conversation of one link.
#[derive(Debug)]
pub(crate) struct Session {
    shared: Arc<Shared>,
    channel: Channel,
    peer: u32,
    /// This incarnation, and the peer's.
    own: u64,
    theirs: Option<u64>,
    own_hello: Vec<u8>,
    their_hello: Vec<u8>,
    met: Option<Met>,
    is_said: bool,
    buffer: Vec<u8>,
}

/// What is known once both have said hello.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) hello: Hello,
    /// Pairs of rails that can reach each other, in the order of lanes; the same at both ends.
    pub(crate) pairs: Vec<Route>,
    pub(crate) lanes: usize,
}

/// A control message for a link that is known to be its peer's.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The peer is there, or there anew.
    Met,
    Control(Control),
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, channel: Channel, peer: u32) -> Result<Self> {
        let own = random()?;
        let hello = Hello {
            queue_pairs: shared.config.queue_pairs,
            credits: shared.config.credits,
            rails: shared.rails.all().iter().map(introduce).collect(),
        };
        let own_hello = Message {
            from: own,
            to: 0,
            control: Control::Hello(hello),
        };
        Ok(Self {
            shared,
            channel,
            peer,
            own,
            theirs: None,
            own_hello: own_hello.encode(),
            their_hello: Vec::new(),
            met: None,
            is_said: false,
            buffer: vec![0; CONTROL_MAX],
        })
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) const fn peer(&self) -> u32 {
        self.peer
    }

    /// The lower rank dials.
    pub(crate) fn is_dialer(&self) -> bool {
        self.channel.rank() < self.peer
    }

    /// What is known of the peer.
    pub(crate) const fn met(&self) -> Option<&Met> {
        self.met.as_ref()
    }

    /// Says hello, once.
    pub(crate) fn greet(&mut self) -> Result<()> {
        if !self.is_said {
            self.channel.send(self.peer, TAG, &self.own_hello)?;
            self.is_said = true;
        }
        Ok(())
    }

    /// The next message of the peer's that is meant for this link, if one has come.
    ///
    /// # Errors
    /// The peer speaks nonsense, cannot prove who it is, or cannot be reached.
    pub(crate) fn hear(&mut self) -> Result<Option<Heard>> {
        loop {
            let length = match self.channel.recv(self.peer, TAG, &mut self.buffer)? {
                None => return Ok(None),
                Some(length) => length,
            };
            let bytes = &self.buffer[..length];
            let message = Message::decode(bytes).map_err(|error| {
                let peer = self.peer;
                Error::new(
                    Status::Link,
                    format!("rank {peer} sent a control message that cannot be: {error}"),
                )
            })?;
            if let Control::Hello(hello) = message.control {
                if self.theirs == Some(message.from) {
                    continue;
                }
                let bytes = bytes.to_vec();
                self.meet(message.from, hello, bytes)?;
                return Ok(Some(Heard::Met));
            }
            if message.to != self.own || self.theirs != Some(message.from) {
                continue; // an earlier link's
            }
            if let Some(signature) = message.signature() {
                let ranks = [self.peer, self.channel.rank()];
                let said = transcript(self.channel.id(), ranks, self.hellos(), &message);
                self.channel
                    .verify(self.peer, &said, signature)
                    .map_err(|_| {
                        let peer = self.peer;
                        Error::new(
                            Status::Auth,
                            format!("who speaks as rank {peer} cannot prove to be it"),
                        )
                    })?;
            }
            return Ok(Some(Heard::Control(message.control)));
        }
    }

    fn meet(&mut self, from: u64, hello: Hello, bytes: Vec<u8>) -> Result<()> {
        let pairs = self.pairs(&hello);
        if pairs.is_empty() {
            return Err(self.strangers(&hello));
        }
        let queue_pairs = hello.queue_pairs.min(self.shared.config.queue_pairs);
        let lanes = (pairs.len() * usize::from(queue_pairs)).min(Record::LANES_MAX);
        if self.theirs.replace(from).is_some() {
            // It may have come too late to hear this link's.
            self.is_said = false;
            self.greet()?;
        }
        self.their_hello = bytes;
        self.met = Some(Met {
            hello,
            pairs,
            lanes,
        });
        Ok(())
    }

    /// Says something; what must be signed is.
    pub(crate) fn say(&self, control: Control) -> Result<()> {
        let Some(to) = self.theirs else {
            return Ok(()); // nobody is there to hear it
        };
        let mut message = Message {
            from: self.own,
            to,
            control,
        };
        if message.signature().is_some() {
            let ranks = [self.channel.rank(), self.peer];
            let said = transcript(self.channel.id(), ranks, self.hellos(), &message);
            let proof: [u8; SIGNATURE] = self.channel.prove(&said)?;
            if let Some(signature) = message.signature_mut() {
                *signature = proof;
            }
        }
        self.channel.send(self.peer, TAG, &message.encode())
    }

    /// The dialer's, then the acceptor's.
    fn hellos(&self) -> [&[u8]; 2] {
        let (own, theirs) = (&*self.own_hello, &*self.their_hello);
        if self.is_dialer() {
            [own, theirs]
        } else {
            [theirs, own]
        }
    }

    /// Which rails reach which: each with one, and where one end has fewer, several with one.
    fn pairs(&self, hello: &Hello) -> Vec<Route> {
        let own = self.shared.rails.all();
        let count = own.len().max(hello.rails.len());
        (0..count)
            .filter_map(|index| {
                let (rail, peer_rail) = (index % own.len(), index % hello.rails.len());
                let (here, there) = (&own[rail], &hello.rails[peer_rail]);
                if here.layer() != there.layer {
                    return None;
                }
                let theirs: Vec<GidEntry> = there.gids.iter().map(entry).collect();
                let (gid, peer_gid) = choose(Side(&here.gids), Side(&theirs), source)?;
                Some(Route {
                    rail,
                    peer_rail,
                    gid,
                    peer_gid,
                })
            })
            .collect()
    }

    fn strangers(&self, hello: &Hello) -> Error {
        let list = |names: Vec<String>| names.join(", ");
        let own = self.shared.rails.all().iter();
        Error::new(
            Status::Link,
            format!(
                "no rail here ({}) reaches one of rank {} ({}): they differ in link layer or address \
                 family",
                list(
                    own.map(|rail| describe(&rail.facts.name(), &rail.addresses()))
                        .collect()
                ),
                self.peer,
                list(
                    hello
                        .rails
                        .iter()
                        .map(|r| describe(&r.name, &r.gids))
                        .collect()
                ),
            ),
        )
    }

    /// Whether a route that the peer names is one that can be.
    pub(crate) fn is_route(&self, route: &Route) -> bool {
        let own = self.shared.rails.all().get(route.rail);
        let theirs = self
            .met
            .as_ref()
            .and_then(|m| m.hello.rails.get(route.peer_rail));
        let (Some(own), Some(theirs)) = (own, theirs) else {
            return false;
        };
        route.gid < own.gids.len()
            && route.peer_gid < theirs.gids.len()
            && own.layer() == theirs.layer
    }

    /// The way to the peer's queue pair over a route that can be.
    pub(crate) fn path(&self, route: &Route, end: End, own_start: u32) -> Option<Path> {
        let config = &self.shared.config;
        let rail = self.shared.rails.all().get(route.rail)?;
        let peer = self.met.as_ref()?.hello.rails.get(route.peer_rail)?;
        Some(Path {
            port: rail.facts.port,
            mtu: rail.mtu.min(peer.mtu),
            peer_number: end.number,
            peer_start: end.start,
            own_start,
            peer_gid: peer.gids.get(route.peer_gid)?.0,
            peer_lid: peer.lid,
            gid_index: rail.gids.get(route.gid)?.index,
            global: rail.is_global(),
            hop_limit: config.hop_limit,
            traffic_class: config.traffic_class,
            service_level: config.service_level,
            timeout: config.ack_timeout,
            retries: config.retries,
            // As for packets; credits see to it that none is needed.
            receiver_retries: 6,
        })
    }

    /// A route in words: "mlx5_0 (10.0.0.1) to mlx5_1 (10.0.0.2)".
    pub(crate) fn route_name(&self, route: &Route) -> String {
        let own = self.shared.rails.all().get(route.rail).map(|rail| {
            let gid = rail.gids.get(route.gid).map(|entry| entry.gid);
            describe(&rail.facts.name(), gid.as_slice())
        });
        let peer = self
            .met
            .as_ref()
            .and_then(|m| m.hello.rails.get(route.peer_rail));
        let peer = peer.map(|rail| {
            let gid = rail.gids.get(route.peer_gid).copied();
            describe(&rail.name, gid.as_slice())
        });
        format!(
            "{} to {}",
            own.unwrap_or_default(),
            peer.unwrap_or_default()
        )
    }

    /// What a route carries, in bytes per second.
    pub(crate) fn speed(&self, route: &Route) -> u64 {
        let own = self.shared.rails.all().get(route.rail);
        let peer = self
            .met
            .as_ref()
            .and_then(|m| m.hello.rails.get(route.peer_rail));
        let own = own.map_or(1, |rail| rail.bytes_per_second);
        peer.map_or(own, |rail| own.min(rail.bytes_per_second))
            .max(1)
    }
}

fn introduce(rail: &Rail) -> PeerRail {
    PeerRail {
        name: rail.facts.name(),
        layer: rail.layer(),
        mtu: rail.mtu,
        lid: rail.lid,
        bytes_per_second: rail.bytes_per_second,
        gids: rail.addresses(),
    }
}

fn entry(gid: &crate::nic::Gid) -> GidEntry {
    GidEntry {
        index: 0,
        gid: *gid,
        gid_type: GidType::RoceV2,
        interface: String::new(),
    }
}

fn describe(name: &str, gids: &[crate::nic::Gid]) -> String {
    let gids: Vec<String> = gids.iter().map(ToString::to_string).collect();
    format!("{name} ({})", gids.join(" "))
}

/// The address that the system sends from to reach another; nothing is sent to learn it.
fn source(to: IpAddr) -> Option<IpAddr> {
    let any: SocketAddr = match to {
        IpAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        IpAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = std::net::UdpSocket::bind(any).ok()?;
    // 4791 is RoCE's own port: routes by port see what its packets see.
    socket.connect((to, 4791)).ok()?;
    socket.local_addr().ok().map(|local| local.ip())
}

/// A number that nobody else has.
pub(crate) fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Error::new(
            Status::Link,
            format!("the system has no randomness: {error}"),
        )
    })?;
    // 0 stands for "nobody".
    Ok(u64::from_le_bytes(bytes).max(1))
}
