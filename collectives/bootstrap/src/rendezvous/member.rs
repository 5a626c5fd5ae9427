//! A rank that another one leads.

use std::os::fd::OwnedFd;
use std::time::Instant;

use crate::error::{BootstrapError, Result};
use crate::secret::Secret;
use crate::wire::acceptor;
use crate::wire::connection::frame;
use crate::wire::handshake::{NO_RANK, Purpose};
use crate::wire::hub::{Hub, HubEvent};

use super::message::Message;
use super::node::{Met, Node};

/// How following ended.
pub(crate) enum Followed {
    /// With the root's answer.
    Done(Met),
    /// The leader is gone; somebody else may lead.
    Lost(String),
    /// Whoever holds the name did not answer.
    Unanswered,
}

/// Reports to the leader and waits for what it says.
pub(crate) fn follow(node: &Node<'_>, socket: OwnedFd) -> Result<Followed> {
    let (place, same_user) = acceptor::peer(&socket);
    if node.same_user && !same_user {
        let why = format!(
            "{place} holds the name under which the ranks of this node meet; set UNISONO_JOB to another one"
        );
        return Err(BootstrapError::Refused { why });
    }
    let (started, wait) = (Instant::now(), &node.options.wait);
    let mut hub = Hub::new(node.me.clone(), "rank")?;
    hub.adopt(socket, place, Purpose::Meet, NO_RANK)?;
    let mut opened = false;
    while !wait.is_over() {
        node.check_abort()?;
        hub.sleep(wait.slice());
        for event in hub.turn(Instant::now(), &|_| None)? {
            match event {
                HubEvent::Opened { token, .. } => {
                    opened = true;
                    hub.send(
                        token,
                        frame(&Message::Report(vec![node.arrival()]).encode()),
                    );
                }
                HubEvent::Closed { .. } if !opened => return Ok(Followed::Unanswered),
                HubEvent::Closed { .. } => {
                    return Ok(Followed::Lost(
                        "the leader of this node went away".to_owned(),
                    ));
                }
                HubEvent::Frame { token, body } => {
                    hub.close(token);
                    return match Message::decode(&body) {
                        Some(Message::Answer { entries, secret }) => {
                            let secret = secret.map(Secret::from_bytes);
                            let strays = hub.strays.clone();
                            Ok(Followed::Done(Met {
                                entries,
                                secret,
                                leader: false,
                                root_messages: 0,
                                strays,
                            }))
                        }
                        Some(Message::Refusal(error)) => Err(error),
                        _ => Err(BootstrapError::Protocol {
                            rank: NO_RANK,
                            what: "an unknown message".to_owned(),
                        }),
                    };
                }
                HubEvent::Watched { .. } => {}
            }
        }
    }
    Err(node.in_vain(started, "the leader of this node heard nothing either"))
}
