//! How a link ends, in words.

use std::io;
use std::time::Duration;

use unisono_plugin::{Error, Status};

use super::broken::Broken;

/// Which connection a link was lost over.
pub(crate) struct Farewell<'a> {
    pub(crate) peer: u32,
    pub(crate) name: &'a str,
    pub(crate) connection: usize,
    pub(crate) connections: usize,
}

impl Farewell<'_> {
    /// The link can't go on.
    pub(crate) fn lost(&self, broken: &Broken) -> Error {
        let what = format!("{} {broken}", self.who());
        match broken {
            Broken::System(error) => Error::system(Status::Peer, &what, error),
            Broken::Protocol(_) => Error::new(Status::Link, what),
            _ => Error::new(Status::Peer, what),
        }
    }

    /// No other connection could be made in its place.
    pub(crate) fn given_up(
        &self,
        broken: &Broken,
        tried: &str,
        limit: Duration,
        set_by: &str,
    ) -> Error {
        let what = format!(
            "no way to {} was found within {limit:.1?} (`{set_by}`); {tried}; before that it {broken}",
            self.who()
        );
        let late = io::Error::from_raw_os_error(libc::ETIMEDOUT);
        match broken {
            Broken::System(error) => Error::system(Status::Peer, &what, error),
            _ => Error::system(Status::Peer, &what, &late),
        }
    }

    /// The peer and the connection, for people.
    pub(crate) fn who(&self) -> String {
        let Self {
            peer,
            name,
            connection,
            connections,
        } = self;
        format!(
            "rank {peer} at {name} (connection {} of {connections})",
            connection + 1
        )
    }
}

/// The peer's link failed or was aborted.
pub(crate) fn gave_up(peer: u32, name: &str) -> Error {
    Error::new(
        Status::Aborted,
        format!("rank {peer} at {name} aborted its end of the link"),
    )
}

/// The peer said goodbye, but not all that it sent is here.
pub(crate) fn cut_short(peer: u32) -> Error {
    Error::new(
        Status::Peer,
        format!("rank {peer} ended its link before all that it sent had come"),
    )
}

/// The peer said goodbye.
pub(crate) fn ended(peer: u32) -> Error {
    Error::new(
        Status::Peer,
        format!("rank {peer} has ended its link: nothing can be sent to it"),
    )
}
