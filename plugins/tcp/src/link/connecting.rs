//! A link on its way to its connections.

use std::time::{Duration, Instant};

use unisono_plugin::{Channel, Error, Result, Status};

use super::access::{Access, End};
use super::connection::Connection;
use crate::setup::Authenticated;

/// How much longer the end waits that is dialled: who dials knows why nobody answers. Where
/// both began at about the same time, both ranks then report that.
const DIALLER_SPEAKS_FIRST: Duration = Duration::from_millis(500);

/// What both ends need.
#[derive(Debug)]
pub(crate) struct Connecting {
    access: Option<Access>,
    /// Found by index; the newest wins, as the dialer knows which of them stands.
    found: Vec<Option<Authenticated>>,
    limit: Duration,
    deadline: Option<Instant>,
}

/// All connections of a link, in their order, and how to come by others in their places.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) connections: Vec<Connection>,
    pub(crate) access: Access,
}

impl Connecting {
    pub(crate) fn new(access: Access, limit: Duration) -> Self {
        Self {
            access: Some(access),
            found: Vec::new(),
            limit,
            deadline: None,
        }
    }

    /// Goes on; `Some` once all connections stand.
    pub(crate) fn advance(&mut self, channel: &Channel, peer: u32) -> Result<Option<Connected>> {
        let Some(access) = &mut self.access else {
            return Ok(None);
        };
        let deadline = *self.deadline.get_or_insert_with(|| {
            Instant::now()
                + match access.end {
                    End::Dialer(_) => self.limit,
                    End::Acceptor(_) => self.limit + DIALLER_SPEAKS_FIRST,
                }
        });
        for one in access.advance(channel, peer) {
            let at = usize::from(one.index);
            if self.found.len() <= at {
                self.found.resize_with(at + 1, || None);
            }
            self.found[at] = Some(one);
        }
        let count = match &access.end {
            End::Dialer(dialer) => Some(dialer.connections()),
            End::Acceptor(acceptor) => acceptor.count(),
        };
        let complete = self.found.len() == count.map_or(usize::MAX, usize::from)
            && self.found.iter().all(Option::is_some);
        if complete && let Some(access) = self.access.take() {
            return self.finish(access, peer).map(Some);
        }
        if Instant::now() >= deadline {
            return Err(self.too_late(peer));
        }
        Ok(None)
    }

    fn finish(&mut self, access: Access, peer: u32) -> Result<Connected> {
        let connections = self
            .found
            .drain(..)
            .flatten()
            .map(|one| Connection::new(one, access.listener.options(), &access.poller))
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| {
                let what = format!("cannot set up a connection to rank {peer}");
                Error::system(Status::Link, &what, &error)
            })?;
        Ok(Connected {
            connections,
            access,
        })
    }

    fn too_late(&self, peer: u32) -> Error {
        let stand = self.found.iter().flatten().count();
        let why = match self.access.as_ref().map(|access| (&access.end, access)) {
            Some((End::Dialer(dialer), _)) => format!("dialling it: {}", dialer.last_problem()),
            Some((End::Acceptor(_), access)) => format!(
                "it has not dialled port {} here: is a firewall between?",
                access.listener.port()
            ),
            None => "it ended meanwhile".to_owned(),
        };
        Error::new(
            Status::Timeout,
            format!(
                "no link to rank {peer} within {:?} ({stand} connections stand); {why}",
                self.limit
            ),
        )
    }

    /// Watches for all that it waits for, and for the moment when it must act even so.
    pub(crate) fn arm(&mut self) -> std::io::Result<()> {
        let limit = self.deadline.unwrap_or_else(Instant::now);
        match &mut self.access {
            Some(access) => access.arm(Some(limit)),
            None => Ok(()),
        }
    }
}
