//! How a link fails, in words.

use unisono_plugin::{Error, Status};

use super::session::Session;
use super::wire::{Broken, Route};
use crate::sys::abi::wc_status;

/// A queue pair is dead, or a call to its device failed.
pub(crate) fn broken(session: &Session, route: &Route, broken: &Broken) -> Error {
    let way = format!("rank {} over {}", session.peer(), session.route_name(route));
    match broken {
        Broken::System(what, error) => {
            Error::system(Status::Link, &format!("the link to {way}: {what}"), error)
        }
        Broken::Status {
            status,
            vendor_code,
        } => {
            let shared = session.shared();
            let text = shared.rails.all()[route.rail]
                .pd
                .context()
                .status_text(*status);
            let (kind, hint) = meaning(*status);
            Error::new(
                kind,
                format!("the link to {way}: {text} (status {status}){hint}"),
            )
            .with_vendor_code(i64::from(*vendor_code))
        }
    }
}

/// What a completion status says of the link, and what to look at.
const fn meaning(status: i32) -> (Status, &'static str) {
    match status {
        wc_status::RETRY_EXC_ERR | wc_status::RESP_TIMEOUT_ERR => (
            Status::Peer,
            ": no answer; is the peer gone, or a path or its MTU wrong?",
        ),
        wc_status::RNR_RETRY_EXC_ERR => (Status::Peer, ": the peer takes no messages"),
        wc_status::REM_ACCESS_ERR => (
            Status::Link,
            ": the peer's window is closed, or not where it was",
        ),
        wc_status::WR_FLUSH_ERR => (Status::Link, ": the queue pair was put in error"),
        wc_status::LOC_PROT_ERR => (Status::Link, ": memory that is not registered"),
        _ => (Status::Link, ""),
    }
}

/// The peer does not say that a new queue pair stands.
pub(crate) fn unanswered(session: &Session, route: &Route) -> Error {
    Error::new(
        Status::Peer,
        format!(
            "rank {} does not take up a new queue pair over {}",
            session.peer(),
            session.route_name(route)
        ),
    )
}

/// A lane goes back to its own rails.
pub(crate) fn moving(peer: u32) -> Error {
    Error::new(
        Status::Link,
        format!("the link to rank {peer} goes back to its own rails"),
    )
}

/// The peer has less than its device has acknowledged.
pub(crate) fn lost(peer: u32, messages: u64) -> Error {
    Error::new(
        Status::Link,
        format!("{messages} messages that the device of rank {peer} acknowledged are lost there"),
    )
}

/// A lane could not be brought back in time.
pub(crate) fn given_up(cause: &Error, after: std::time::Duration, outstanding: usize) -> Error {
    Error::new(
        match cause.status() {
            Status::Peer => Status::Peer,
            _ => Status::Link,
        },
        format!(
            "{}; not back within {after:?}, {outstanding} writes not acknowledged",
            cause.message()
        ),
    )
    .with_vendor_code(cause.vendor_code())
}

/// The peer was the first to find that a lane does not come back.
pub(crate) fn given_up_there(peer: u32, cause: &Error) -> Error {
    let what = format!("{}; rank {peer} has given the link up", cause.message());
    Error::new(
        match cause.status() {
            Status::Peer => Status::Peer,
            _ => Status::Link,
        },
        what,
    )
    .with_vendor_code(cause.vendor_code())
}

/// The peer takes no part in bringing a lane back.
pub(crate) fn absent(peer: u32, cause: &Error, after: std::time::Duration) -> Error {
    Error::new(
        Status::Peer,
        format!(
            "{}; rank {peer} has not looked for another way with this one within {after:?}: it does \
             not call the library, or is gone",
            cause.message()
        ),
    )
    .with_vendor_code(cause.vendor_code())
}

/// The peer's link failed or was aborted.
pub(crate) fn gave_up(peer: u32, was_up: bool) -> Error {
    if was_up {
        let what = format!("rank {peer} aborted its end of the link");
        return Error::new(Status::Aborted, what);
    }
    let what = format!("rank {peer} gave up before the link was up; its own error says why");
    Error::new(Status::Peer, what)
}

/// The peer said goodbye.
pub(crate) fn ended(peer: u32) -> Error {
    Error::new(
        Status::Peer,
        format!("rank {peer} has ended its link: nothing can be sent to it"),
    )
}

/// The peer has begun anew while this end has not.
pub(crate) fn restarted(peer: u32) -> Error {
    Error::new(
        Status::Peer,
        format!("rank {peer} has made its end of the link anew"),
    )
}

/// The peer broke the protocol.
pub(crate) fn nonsense(peer: u32, what: &str) -> Error {
    Error::new(
        Status::Link,
        format!("rank {peer} broke the protocol: {what}"),
    )
}

/// The link did not come up in time.
pub(crate) fn too_late(
    peer: u32,
    limit: std::time::Duration,
    heard: bool,
    last: Option<&Error>,
) -> Error {
    let why = match last {
        Some(error) => format!("last: {}", error.message()),
        None if heard => "it has not brought up its queue pairs".to_owned(),
        None => "nothing was heard of it".to_owned(),
    };
    Error::new(
        Status::Timeout,
        format!("no link to rank {peer} within {limit:?}; {why}"),
    )
}
