//! How a link ends, in words.

use std::io;

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
        let Self {
            peer,
            name,
            connection,
            connections,
        } = self;
        let whose = format!(
            "rank {peer} at {name} (connection {} of {connections})",
            connection + 1
        );
        match broken {
            Broken::End => Error::new(
                Status::Peer,
                format!("{whose} closed its end: its process has died or left"),
            ),
            Broken::System(error) if error.kind() == io::ErrorKind::TimedOut => Error::system(
                Status::Peer,
                &format!(
                    "{whose} has not answered for as long as `keepalive` or `stall_timeout` allows"
                ),
                error,
            ),
            Broken::System(error) => {
                Error::system(Status::Peer, &format!("{whose} is lost"), error)
            }
            Broken::Protocol(what) => {
                Error::new(Status::Link, format!("{whose} broke the protocol: {what}"))
            }
        }
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
