//! How fast a connection brings bytes to the peer, by what the peer says that it has.
//!
//! It counts the time in which something was under way, the way there and back with it: a rail that is far
//! is a slow one for a short message, and a fast one for a long message. What lies in the kernel's buffer
//! has gone nowhere, so what the kernel takes says nothing.

use std::time::{Duration, Instant};

/// Of what was measured this much time counts, in which something was under way.
const MEMORY: Duration = Duration::from_millis(25);
/// What was measured so long ago counts a third.
const FADE: Duration = Duration::from_millis(100);

/// What is under way over one connection, and what was measured of it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Bytes that the peer has got, and seconds in which something was under way.
    bytes: f64,
    time: f64,
    /// Bytes that it has not said it has.
    under_way: u64,
    /// While something is: since when, or since the peer last spoke.
    since: Option<Instant>,
    /// When the peer last spoke.
    measured: Option<Instant>,
}

impl Pace {
    /// So many more bytes are under way.
    pub(crate) fn sent(&mut self, bytes: u64, now: Instant) {
        self.under_way += bytes;
        self.since.get_or_insert(now);
    }

    /// The peer has so many more of them.
    pub(crate) fn landed(&mut self, bytes: u64, now: Instant) {
        let bytes = bytes.min(self.under_way);
        self.under_way -= bytes;
        let Some(since) = self.since.filter(|_| bytes > 0) else {
            return;
        };
        let gap = self.measured.map_or(0.0, |last| seconds(last, now));
        let keep = (-gap / FADE.as_secs_f64()).exp();
        let time = self.time * keep + seconds(since, now).max(1e-6);
        let bytes = self.bytes * keep + bytes as f64;
        let within = (MEMORY.as_secs_f64() / time).min(1.0);
        (self.bytes, self.time) = (bytes * within, time * within);
        self.measured = Some(now);
        self.since = (self.under_way > 0).then_some(now);
    }

    /// Another connection takes this one's place: what was measured is of the old one. What was under way
    /// is kept, for it is sent again.
    pub(crate) fn restart(&mut self) {
        *self = Self {
            under_way: self.under_way,
            ..Self::default()
        };
    }

    /// The other connection goes on with what was under way.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.since = (self.under_way > 0).then_some(now);
    }

    /// Bytes that the peer has not said it has.
    pub(crate) const fn under_way(&self) -> u64 {
        self.under_way
    }

    /// Bytes in a second, once something was measured.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.time > 0.0).then(|| self.bytes / self.time)
    }

    /// More it can't be: as if all that is under way landed now. So a rail that stalls is known to be slow
    /// before the peer has said anything.
    pub(crate) fn at_most(&self, now: Instant) -> f64 {
        let waited = self.since.map_or(0.0, |since| seconds(since, now));
        match self.time + waited {
            0.0 => f64::INFINITY,
            time => (self.bytes + self.under_way as f64) / time,
        }
    }

    /// Whether nothing was measured for so long that it may be another rate by now.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.under_way == 0 && self.measured.is_some_and(|last| now - last >= FADE)
    }
}

fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends stripes one after the other over a rail of so many bytes in a second.
    fn carry(pace: &mut Pace, now: &mut Instant, rate: f64, stripe: u64, stripes: u32) {
        for _ in 0..stripes {
            pace.sent(stripe, *now);
            *now += Duration::from_secs_f64(stripe as f64 / rate);
            pace.landed(stripe, *now);
        }
    }

    fn near(pace: &Pace, wanted: f64) {
        let rate = pace.rate().unwrap();
        assert!(
            (rate / wanted - 1.0).abs() < 0.1,
            "{rate:.0}, not {wanted:.0}"
        );
    }

    #[test]
    fn a_rate_is_known_after_one_stripe_and_idle_time_does_not_count() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        assert_eq!(pace.rate(), None);
        assert!(pace.at_most(now).is_infinite());
        for _ in 0..5 {
            carry(&mut pace, &mut now, 1e8, 64 << 10, 1);
            near(&pace, 1e8);
            now += Duration::from_millis(30);
        }
        assert_eq!(pace.under_way(), 0);
    }

    #[test]
    fn a_rate_that_changes_is_followed_both_ways() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        carry(&mut pace, &mut now, 1e8, 64 << 10, 1000);
        near(&pace, 1e8);
        // Within 150 ms, and then within 200.
        carry(&mut pace, &mut now, 5e6, 16 << 10, 45);
        near(&pace, 5e6);
        carry(&mut pace, &mut now, 1e8, 64 << 10, 300);
        near(&pace, 1e8);
    }

    #[test]
    fn a_stall_is_known_before_the_peer_says_anything() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        carry(&mut pace, &mut now, 1e8, 64 << 10, 1000);
        pace.sent(64 << 10, now);
        assert!(pace.at_most(now) >= pace.rate().unwrap());
        now += Duration::from_millis(225);
        assert!(pace.at_most(now) < 1.1e7, "{}", pace.at_most(now));
        near(&pace, 1e8);
    }

    #[test]
    fn one_probe_after_a_long_time_lifts_the_rate_but_a_burst_is_not_believed_at_once() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        carry(&mut pace, &mut now, 5e5, 4 << 10, 20);
        assert!(!pace.is_old(now));
        now += FADE;
        assert!(pace.is_old(now));
        carry(&mut pace, &mut now, 1e8, 4 << 10, 1);
        let rate = pace.rate().unwrap();
        assert!((7e5..2e6).contains(&rate), "{rate}");
        assert!(!pace.is_old(now));
    }

    #[test]
    fn another_connection_is_measured_anew_with_what_was_under_way() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        carry(&mut pace, &mut now, 1e8, 64 << 10, 10);
        pace.sent(64 << 10, now);
        pace.restart();
        assert_eq!((pace.rate(), pace.under_way()), (None, 64 << 10));
        now += Duration::from_secs(2);
        pace.resume(now);
        now += Duration::from_millis(10);
        pace.landed(64 << 10, now);
        near(&pace, 6.5e6);
    }
}
