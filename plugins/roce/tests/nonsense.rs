//! Conversations in which messages come twice, again, in another order, for another end, or changed: while
//! a link connects, carries puts, and loses a rail.

mod common;

use std::time::{Duration, Instant};

use common::*;
use unisono_plugin::{Link, QueuePhase};

/// How long one conversation may go on: all of a link's own limits are far below it.
const PATIENCE: Duration = Duration::from_secs(8);
/// Parameters with which a link that is lied to gives up soon.
const SOON: &[(&str, Value)] = &[
    ("keepalive", Value::Number(ms(100))),
    ("recovery", Value::Number(ms(700))),
    ("connect_timeout", Value::Number(ms(700))),
    ("ack_timeout", Value::Number(ms(1))),
    ("stripe", Value::Number(4096)),
    ("queue_pairs", Value::Number(2)),
];
/// Places in a message of the link's: kind, the incarnations, the lane, its generation.
const KIND: usize = 5;
const FROM: usize = 6;
const LANE: usize = 22;
/// Bytes of a put.
const PUT: usize = 20_000;

/// Conversations of each kind. A soak's count is of cases that take no time; these take some.
fn conversations() -> u64 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    cases
        .and_then(|text| text.parse::<u64>().ok())
        .map_or(12, |cases| (cases / 100).max(12))
}

/// Who stands between the two ends.
struct Meddler {
    random: Random,
    /// All that was said so far, by whom.
    heard: Vec<((u32, u64), Vec<u8>)>,
    /// Messages of each box that were looked at already.
    lies: bool,
}

impl Meddler {
    /// Takes note of what is on its way, and now and then does something to it. Nothing is withheld
    /// but what is changed: the channel is a reliable one.
    fn meddle(&mut self, mail: &mut Mail, seen: &mut usize) {
        let mut boxes: Vec<_> = mail.keys().copied().collect();
        boxes.sort_unstable();
        for key in boxes {
            let on_the_way: Vec<Vec<u8>> = mail[&key].iter().cloned().collect();
            for message in on_the_way {
                if !self
                    .heard
                    .iter()
                    .any(|known| known.0 == key && known.1 == message)
                {
                    self.heard.push((key, message));
                }
            }
        }
        if self.heard.is_empty() || self.random.below(40) != 0 {
            return;
        }
        *seen += 1;
        let at = self.random.below(self.heard.len() as u64) as usize;
        let (key, mut message) = self.heard[at].clone();
        let (from, tag) = key;
        let queue = mail.entry(key).or_default();
        if !self.lies {
            // A message comes twice, or again long after.
            queue.push_back(message);
            return;
        }
        match self.random.below(5) {
            // To its own sender.
            0 => mail.entry((1 - from, tag)).or_default().push_back(message),
            // The next two change places.
            1 if queue.len() > 1 => queue.swap(0, 1),
            // Another kind, lane or generation: a message that could be.
            2 if message.len() > LANE + 4 => {
                message[KIND] = 1 + self.random.below(7) as u8;
                queue.push_back(message);
            }
            3 if message.len() > LANE + 4 => {
                let at = LANE + self.random.below(5) as usize;
                message[at] = self.random.below(6) as u8;
                queue.push_back(message);
            }
            // Any byte behind whom it is from and for.
            _ => {
                let rest = (message.len() - FROM) as u64;
                let at = FROM + self.random.below(rest) as usize;
                message[at] ^= 1 << self.random.below(8);
                queue.push_back(message);
            }
        }
    }
}

/// One conversation; how many messages were meddled with, and how many ends failed.
fn converse(devices: &Devices, seed: u64, lies: bool) -> (usize, usize) {
    let mut random = Random(seed);
    let mut ends = strangers([SOON, SOON], 1 << 16, [5, 5]);
    let mail = ends[0].identity.mail.clone();
    if lies {
        ends.iter().for_each(|end| end.identity.trust());
    }
    let sources = [0, 1].map(|_| Memory::new(PUT));
    for source in &sources {
        source.write(0, &random.bytes(PUT));
    }
    let puts = 1 + random.below(6);
    let cut = random.below(3) == 0;
    let mut meddler = Meddler {
        random,
        heard: Vec::new(),
        lies,
    };
    let (mut meddled, mut failed, mut given) = (0, [false; 2], [0; 2]);
    let start = Instant::now();
    loop {
        for (side, end) in ends.iter_mut().enumerate() {
            if failed[side] {
                continue;
            }
            // The next put goes when the one before it is done.
            if given[side] < puts && end.phase() == QueuePhase::Idle {
                let put = put(
                    sources[side].address(),
                    PUT,
                    64 * given[side] as usize,
                    Some(2),
                );
                end.submit(&Commands::default().put(put));
                given[side] += 1;
                if cut && given[side] == 2 {
                    devices.cut("fake1");
                }
            }
            if let Err(error) = end.link.poll(1 << 20) {
                assert!(!error.message().is_empty());
                failed[side] = true;
            }
            meddler.meddle(&mut mail.lock().unwrap(), &mut meddled);
        }
        let over = |side: usize| {
            failed[side] || given[side] == puts && ends[side].phase() == QueuePhase::Idle
        };
        // What one end has sent, the other must still take.
        let come = |side: usize| lies || failed[1 - side] || ends[side].raised(2) >= puts;
        if (0..2).all(|side| over(side) && (failed[side] || come(side))) {
            break;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "seed {seed}, lies {lies}: it neither ends nor fails: {:?} {failed:?} {given:?} of {puts}",
            [ends[0].phase(), ends[1].phase()]
        );
        std::thread::yield_now();
    }
    devices.mend("fake1");
    for side in 0..2 {
        let raised = ends[side].raised(2);
        assert!(
            raised <= puts,
            "seed {seed}: {raised} signals of {puts} puts"
        );
        if !lies {
            assert!(
                !failed[side],
                "seed {seed}: a repeated message is no reason to fail"
            );
            let last = 64 * (puts as usize - 1);
            let right = ends[side].data.read(last, PUT) == sources[1 - side].read(0, PUT);
            assert!(right, "seed {seed}: wrong bytes");
        }
    }
    (meddled, failed.iter().filter(|failed| **failed).count())
}

#[test]
fn no_conversation_does_harm() {
    let devices = Devices::ethernet(2);
    let mut random = Random::seeded();
    for lies in [false, true] {
        let (mut meddled, mut failed) = (0, 0);
        for _ in 0..conversations() {
            let (times, ends) = converse(&devices, random.next(), lies);
            meddled += times;
            failed += ends;
        }
        let kind = if lies {
            "with lies"
        } else {
            "with repetitions"
        };
        println!(
            "{} conversations {kind}: {meddled} messages, {failed} ends failed",
            conversations()
        );
        assert!(meddled > 0, "nothing was meddled with");
    }
}
