//! The higher rank's end: checks who arrived, for as long as the link lives.

use std::sync::Arc;
use std::time::Instant;

use unisono_plugin::Channel;

use super::handshake::{Handshake, Refusal};
use super::{Authenticated, Listener, PROOF_TIME, Registration};
use crate::net::{Poller, peer_name};

/// Handshakes at once; the oldest goes when another comes.
const HANDSHAKES_MAX: usize = 32;

/// Accepts the link's connections, and those that take their places.
#[derive(Debug)]
pub(crate) struct Acceptor {
    registration: Registration,
    handshakes: Vec<Handshake>,
    /// How many connections the dialer makes: its first proven hello says.
    count: Option<u16>,
    /// Whether links are encrypted here.
    encrypt: bool,
    /// Whether a connection within the machine lasts as long as both processes.
    may_last: bool,
}

impl Acceptor {
    pub(crate) const fn new(registration: Registration, encrypt: bool, may_last: bool) -> Self {
        Self {
            registration,
            handshakes: Vec::new(),
            count: None,
            encrypt,
            may_last,
        }
    }

    /// How many connections the link will have, once that is known.
    pub(crate) const fn count(&self) -> Option<u16> {
        self.count
    }

    /// Goes on with all that arrived; connections that stand now go to `ready`.
    pub(crate) fn advance(
        &mut self,
        channel: &Channel,
        peer: u32,
        listener: &Listener,
        poller: &Arc<Poller>,
        ready: &mut Vec<Authenticated>,
    ) {
        while let Some(arrival) = self.registration.mailbox.collect() {
            if self.handshakes.len() >= HANDSHAKES_MAX {
                let oldest = self.handshakes.remove(0);
                listener.refuse(oldest.socket(), &Refusal::Crowd);
            }
            let deadline = Instant::now() + PROOF_TIME;
            if arrival.hello.encrypt != self.encrypt {
                let why = match self.encrypt {
                    true => "it does not encrypt, and `encrypt` is set here",
                    false => "it encrypts, and `encrypt` is not set here",
                };
                listener.refuse(&arrival.fd, &Refusal::Stranger(why));
                continue;
            }
            let begun = Handshake::accept(
                arrival.fd,
                Arc::clone(poller),
                arrival.hello,
                self.may_last,
                deadline,
            );
            if let Ok(handshake) = begun {
                self.handshakes.push(handshake);
            }
        }
        let mut at = 0;
        while let Some(handshake) = self.handshakes.get_mut(at) {
            match handshake.advance(channel, peer) {
                Ok(false) => at += 1,
                Ok(true) => {
                    let handshake = self.handshakes.remove(at);
                    self.admit(handshake, listener, ready);
                }
                Err(why) => {
                    let stranger = self.handshakes.remove(at);
                    listener.refuse(stranger.socket(), &why);
                }
            }
        }
    }

    /// Whether the peer has proved itself on a new connection of this index.
    pub(crate) fn is_proving(&self, index: usize) -> bool {
        let of_it = |one: &Handshake| usize::from(one.hello().index) == index && one.has_proved();
        self.handshakes.iter().any(of_it)
    }

    fn admit(&mut self, handshake: Handshake, listener: &Listener, ready: &mut Vec<Authenticated>) {
        let hello = *handshake.hello();
        if *self.count.get_or_insert(hello.count) != hello.count {
            let why = Refusal::Stranger("it counts the link's connections otherwise than before");
            listener.refuse(handshake.socket(), &why);
            return;
        }
        let name = peer_name(handshake.socket());
        let lasting = handshake.is_lasting();
        if let Ok((fd, tls)) = handshake.into_parts() {
            ready.push(Authenticated {
                fd,
                index: hello.index,
                generation: hello.generation,
                target: 0,
                lasting,
                name,
                tls,
            });
        }
    }

    /// Watches for what it waits for; returns when it must act even so.
    pub(crate) fn arm(&mut self, key: u64) -> std::io::Result<Option<Instant>> {
        for handshake in &mut self.handshakes {
            handshake.watch(key)?;
        }
        Ok(self.handshakes.iter().map(Handshake::deadline).min())
    }
}
