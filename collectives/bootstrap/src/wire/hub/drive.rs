//! One connection's turn.

use std::time::Instant;

use crate::report::StrayKind;
use crate::wire::connection::{Connection, Filled, Stage};
use crate::wire::handshake::{Credentials, Keys, Step};
use crate::wire::poller::Token;

use super::{HubEvent, READ_A_TURN};

/// Why a connection cannot go on.
pub(super) enum Failure {
    Lost(String),
    Stray(StrayKind, String),
    Later,
}

/// Reads, proves and writes one connection as far as it goes now.
pub(super) fn advance(
    connection: &mut Connection,
    me: &Credentials,
    readable: bool,
    writable: bool,
    keys: Keys<'_>,
    token: Token,
    events: &mut Vec<HubEvent>,
) -> Result<(), Failure> {
    let lost = |e: rustix::io::Errno| Failure::Lost(std::io::Error::from(e).to_string());
    if matches!(connection.stage, Stage::Connecting(_)) {
        if !writable {
            return Ok(());
        }
        match rustix::net::sockopt::socket_error(&connection.socket) {
            Ok(Ok(())) => {}
            Ok(Err(e)) | Err(e) => return Err(lost(e)),
        }
        if let Stage::Connecting(handshake) = std::mem::replace(&mut connection.stage, Stage::Open)
        {
            connection.stage = Stage::Shaking(handshake);
            connection.since = Instant::now();
        }
    }
    // What is here is read before a broken pipe is noticed: the last words of the other side may be among it.
    let mut ended = None;
    if connection.paused {
        // Nothing is asked for but the end, and what was not read will be sent again.
        ended = readable.then(|| "the other side closed".to_owned());
    } else if readable {
        let limit = if connection.is_open() {
            READ_A_TURN
        } else {
            4096
        };
        match connection.fill(limit) {
            Ok(Filled::Some) => {}
            Ok(Filled::Ended) => ended = Some("the other side closed".to_owned()),
            Err(e) => ended = Some(std::io::Error::from(e).to_string()),
        }
    }
    shake(connection, me, keys, token, events)?;
    if connection.is_open() {
        while let Some(body) = connection.next_frame().map_err(|length| {
            Failure::Lost(format!(
                "it sent a frame of {length} bytes, which no frame may have"
            ))
        })? {
            events.push(HubEvent::Frame { token, body });
        }
    }
    if let Some(why) = ended {
        return Err(Failure::Lost(why));
    }
    connection.flush().map_err(lost)
}

/// Takes as many messages of the handshake as are here.
fn shake(
    connection: &mut Connection,
    me: &Credentials,
    keys: Keys<'_>,
    token: Token,
    events: &mut Vec<HubEvent>,
) -> Result<(), Failure> {
    while let Stage::Shaking(handshake) = &connection.stage {
        if handshake.is_garbage(connection.unread()) {
            return Err(Failure::Stray(
                StrayKind::Garbage,
                "its first bytes are not this protocol".to_owned(),
            ));
        }
        if connection.unread().len() < handshake.wanted() {
            return Ok(());
        }
        let message = connection.take(handshake.wanted());
        let Stage::Shaking(handshake) = &mut connection.stage else {
            return Ok(());
        };
        let step = handshake
            .advance(&message, me, keys)
            .map_err(|e| Failure::Lost(e.to_string()))?;
        match step {
            Step::Continue(send) => connection.push(send.into()),
            Step::Done { send, rank, .. } => {
                connection.push(send.into());
                connection.stage = Stage::Open;
                events.push(HubEvent::Opened {
                    token,
                    rank,
                    outgoing: connection.outgoing,
                });
            }
            Step::Refuse { send, kind, why } => {
                say_last(connection, send);
                return Err(Failure::Stray(kind, why));
            }
            Step::Later { send } => {
                say_last(connection, send);
                return Err(Failure::Later);
            }
        }
    }
    Ok(())
}

/// Sends what ends a connection, as far as the system takes it at once.
fn say_last(connection: &mut Connection, send: Vec<u8>) {
    connection.push(send.into());
    let _ = connection.flush();
}
