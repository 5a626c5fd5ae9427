//! The higher rank's end: checks who arrived, until all connections stand.

use std::sync::Arc;
use std::time::Instant;

use unisono_plugin::Channel;

use super::handshake::{Handshake, Refusal};
use super::{Authenticated, Listener, PROOF_TIME, Registration};
use crate::net::{Poller, peer_name};

/// Handshakes at once; the oldest goes when another comes.
const HANDSHAKES_MAX: usize = 32;

/// Accepts until all connections stand.
#[derive(Debug)]
pub(crate) struct Acceptor {
    registration: Option<Registration>,
    handshakes: Vec<Handshake>,
    /// How many connections the dialer makes: its first proven hello says.
    count: Option<u16>,
}

impl Acceptor {
    pub(crate) const fn new(registration: Registration) -> Self {
        Self {
            registration: Some(registration),
            handshakes: Vec::new(),
            count: None,
        }
    }

    /// How many connections the link will have, once that is known.
    pub(crate) const fn count(&self) -> Option<u16> {
        self.count
    }

    /// Ends the accepting: who comes now is refused.
    pub(crate) fn finish(&mut self) -> Option<Registration> {
        self.registration.take().inspect(|r| r.mailbox.close())
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
        let mailbox = self.registration.as_ref().map(|r| Arc::clone(&r.mailbox));
        while let Some(arrival) = mailbox.as_ref().and_then(|m| m.collect()) {
            if self.handshakes.len() >= HANDSHAKES_MAX {
                let oldest = self.handshakes.remove(0);
                listener.refuse(oldest.socket(), &Refusal::Crowd);
            }
            let deadline = Instant::now() + PROOF_TIME;
            let begun = Handshake::accept(arrival.fd, Arc::clone(poller), arrival.hello, deadline);
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

    fn admit(&mut self, handshake: Handshake, listener: &Listener, ready: &mut Vec<Authenticated>) {
        let hello = *handshake.hello();
        if *self.count.get_or_insert(hello.count) != hello.count {
            let why = Refusal::Stranger("it counts the link's connections otherwise than before");
            listener.refuse(handshake.socket(), &why);
            return;
        }
        let name = peer_name(handshake.socket());
        if let Ok(fd) = handshake.into_fd() {
            ready.push(Authenticated {
                fd,
                index: hello.index,
                name,
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
