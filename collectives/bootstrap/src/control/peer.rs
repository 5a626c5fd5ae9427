//! One other rank, as this one sees it: its connections and whether it lives.

use std::time::{Duration, Instant};

use crate::wire::poller::Token;

use super::session::Session;

/// The longest pause between two attempts to reach a peer.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How the death of a peer is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// The system tells, through a process descriptor; or it is a thread of this process and dies with it.
    Process,
    /// It is silent for too long.
    Heartbeat,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) session: Session,
    /// Open connections: the one that it dialled, the one that this rank dialled.
    pub(super) incoming: Option<Token>,
    pub(super) outgoing: Option<Token>,
    /// The one of them that this rank sends on.
    pub(super) active: Option<Token>,
    pub(super) dialling: Option<Token>,
    /// Which of its addresses is dialled next.
    pub(super) address: usize,
    pub(super) failures: u32,
    pub(super) again: Instant,
    /// This rank keeps a connection to it open.
    pub(super) neighbour: bool,
    pub(super) watch: Watch,
    /// When it last gave a sign of life; `None` while nothing is expected of it.
    pub(super) heard: Option<Instant>,
    /// It was told the floods that went round before it was connected.
    pub(super) greeted: bool,
    pub(super) paused: bool,
    /// A message for it alone waits for a connection.
    pub(super) owed: bool,
    /// What each attempt to reach it met, the first few.
    pub(super) tried: Vec<String>,
}

impl Peer {
    pub(super) fn new(watch: Watch, now: Instant) -> Peer {
        Peer {
            session: Session::default(),
            incoming: None,
            outgoing: None,
            active: None,
            dialling: None,
            address: 0,
            failures: 0,
            again: now,
            neighbour: false,
            watch,
            heard: None,
            greeted: false,
            paused: false,
            owed: false,
            tried: Vec::new(),
        }
    }

    /// Whether a connection should be dialled.
    pub(super) fn wants_connection(&self) -> bool {
        self.active.is_none()
            && self.dialling.is_none()
            && (self.neighbour || !self.session.is_settled())
    }

    /// Its connections, open or not.
    pub(super) fn connections(&self) -> impl Iterator<Item = Token> + use<> {
        [self.incoming, self.outgoing, self.dialling]
            .into_iter()
            .flatten()
    }

    /// Plans the next attempt after a failed one: soon at first, then ever later.
    pub(super) fn back_off(&mut self, now: Instant) {
        let pause = Duration::from_millis(10) * (1 << self.failures.min(6));
        self.again = now + pause.min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
    }

    /// Forgets a connection that is gone; whether this rank was sending on it.
    pub(super) fn lose(&mut self, token: Token) -> bool {
        for slot in [&mut self.incoming, &mut self.outgoing, &mut self.dialling] {
            if *slot == Some(token) {
                *slot = None;
            }
        }
        let was_active = self.active == Some(token);
        if was_active {
            self.active = self.incoming.or(self.outgoing);
        }
        was_active
    }
}
