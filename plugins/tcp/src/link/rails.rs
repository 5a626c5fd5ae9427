//! The ways that a link's connections take, in words: from which card to which address, how they stand,
//! and what share of the bytes each has carried.

use std::net::IpAddr;
use std::time::Instant;

use super::access::End;
use super::connection::Connection;
use super::established::Established;
use crate::net::interfaces;

impl Established {
    /// Each connection's way, its state and its share.
    pub(super) fn rails(&self, now: Instant) -> String {
        let cards = interfaces().unwrap_or_default();
        let card = |address: IpAddr| {
            let found = cards.iter().find(|card| card.address == address);
            found.map_or_else(String::new, |card| format!("{} ", card.name))
        };
        let total: u64 = self.connections.iter().map(|c| c.carried).sum();
        let ways = self.connections.iter().enumerate().map(|(at, connection)| {
            let here = connection.here();
            let from = here.map_or_else(|| "?".to_owned(), |here| format!("{}{here}", card(here)));
            let share = match total {
                0 => String::new(),
                total => format!(", {} % of the bytes", connection.carried * 100 / total),
            };
            let state = self.state(at, connection, now);
            format!("{from} to {}{state}{share}", connection.host())
        });
        ways.collect::<Vec<_>>().join("; ")
    }

    /// Nothing to say of a connection that is well and at home.
    fn state(&self, at: usize, connection: &Connection, now: Instant) -> String {
        if let Some(trouble) = &connection.trouble {
            let since = now.saturating_duration_since(trouble.since);
            return format!(", lost {since:.1?} ago");
        }
        match &self.access.end {
            _ if !connection.open => ", ended".to_owned(),
            End::Dialer(dialer) if dialer.home(at) != connection.target => {
                match dialer.is_dialling(at) {
                    true => ", not at home, which is tried now".to_owned(),
                    false => ", not at home".to_owned(),
                }
            }
            _ => String::new(),
        }
    }
}
