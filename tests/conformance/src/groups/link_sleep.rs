//! Sleeping for posted links.

use std::time::Duration;

use unisono_hal::{Queue, SleepWays, State};

use crate::case::Case;
use crate::check::Check;
use crate::ends::Ends;
use crate::outcome::{Checked, Stop, ensure};
use crate::queue;
use crate::sleep::{Sleeper, offered};

const G: &str = "link_sleep";

/// Rounds of the race between a sleeper and a sender, shared by the ways to sleep.
const ROUNDS: u64 = 10_000;

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "ends",
        "A put that arrives ends a sleep, in each way that is offered.",
        ends_sleep,
    ),
    Check::two(
        G,
        "no_lost_wake_up",
        "No wake-up is lost to a racing sender, in 10 000 rounds.",
        race,
    ),
    Check::two(
        G,
        "disarmed",
        "After disarm the waker is never called.",
        disarmed,
    ),
    Check::two(
        G,
        "connecting",
        "A link that connects can be slept on.",
        connecting,
    ),
    Check::two(
        G,
        "large_asleep",
        "Many megabytes move while both ends sleep whenever they can.",
        large,
    ),
    Check::two(G, "peer_dies", "A peer's death ends a sleep.", peer_dies),
    Check::two(
        G,
        "flag_up",
        "A link whose next WAIT is satisfied does not go to sleep.",
        flag_up,
    ),
];

fn arms(case: &Case) -> Checked {
    case.needs(&[("link", "arm")])
}

fn await_asleep(ends: &mut Ends<'_>, way: SleepWays, line: u64, value: u64) -> Checked {
    let sleeper = Sleeper::new();
    let (flags, link) = (&ends.flags, &mut ends.link);
    queue::until("a put", || {
        link.poll(queue::BUDGET)?;
        if flags.value(line) >= value {
            return Ok(true);
        }
        sleeper.sleep(link, way)?;
        Ok(false)
    })
}

fn ends_sleep(case: &Case) -> Checked {
    arms(case)?;
    let mut ends = Ends::connect(case, 1)?;
    ends.drain()?;
    let ways = offered(&mut ends.link)?;
    ends.meet(100)?;
    for (round, (way, name)) in (1..).zip(ways) {
        if ends.role() == 0 {
            let slept = await_asleep(&mut ends, way, 0, round);
            slept.map_err(|e| e.at(format!("by {name}")))?;
        } else {
            std::thread::sleep(Duration::from_millis(30));
            let mut batch = queue::batch();
            batch.put(&ends.put(0, 100, 0, 0));
            ends.submit(&mut batch)?;
            ends.drain()?;
        }
        ends.meet(round)?;
    }
    ends.part()
}

fn race(case: &Case) -> Checked {
    arms(case)?;
    let mut ends = Ends::connect(case, 1)?;
    ends.drain()?;
    let ways = offered(&mut ends.link)?;
    // A put that came while the other end still asked would tell it "do not sleep now", in every way.
    ends.meet(1)?;
    let rounds = ROUNDS / ways.len() as u64 + 1;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 16, 0, 0));
    let mut round = 0;
    for (way, name) in ways {
        for _ in 0..rounds {
            round += 1;
            batch.rewind();
            if ends.role() == 0 {
                ends.submit(&mut batch)?;
            }
            let slept = await_asleep(&mut ends, way, 0, round);
            slept.map_err(|e| e.at(format!("round {round} by {name}")))?;
            if ends.role() == 1 {
                ends.submit(&mut batch)?;
                ends.link.poll(queue::BUDGET)?;
            }
        }
    }
    ends.part()
}

fn disarmed(case: &Case) -> Checked {
    arms(case)?;
    let mut ends = Ends::connect(case, 1)?;
    ends.drain()?;
    let by_waker = offered(&mut ends.link)?
        .iter()
        .any(|(way, _)| *way == SleepWays::WAKER);
    let sleeper = Sleeper::new();
    for round in 1..=50 {
        if by_waker {
            ends.link.arm(SleepWays::WAKER, sleeper.waker())?;
            ends.link.disarm();
        }
        let before = sleeper.wakes();
        case.peer()?.meet(round)?;
        let mut batch = queue::batch();
        batch.put(&ends.put(0, 100, 0, 0));
        ends.submit(&mut batch)?;
        ends.await_flag(0, round)?;
        let calls = sleeper.wakes() - before;
        ensure!(
            calls == 0,
            "the waker was called {calls} times after disarm"
        );
    }
    ends.part()?;
    if by_waker {
        return Ok(());
    }
    Err(Stop::unsupported("its links call no waker"))
}

fn connecting(case: &Case) -> Checked {
    arms(case)?;
    for round in 1..=20 {
        let instance = crate::ends::posted(case)?;
        let mut link = crate::ends::link(case, &instance, round)?;
        let ways = offered(&mut link);
        let way = match &ways {
            Ok(ways) => ways[round as usize % ways.len()].0,
            // A link may want to be polled while it connects.
            Err(Stop::Unsupported(_)) => SleepWays::ALL,
            Err(stop) => return Err(stop.clone()),
        };
        let sleeper = Sleeper::new();
        queue::until("connecting", || {
            if link.poll(queue::BUDGET)?.state != unisono_hal::State::Connecting {
                return Ok(true);
            }
            sleeper.sleep(&mut link, way)?;
            Ok(false)
        })?;
        case.peer()?.meet(100 + round)?;
    }
    Ok(())
}

fn large(case: &Case) -> Checked {
    arms(case)?;
    let size = 16 << 20;
    let mut ends = Ends::connect_with(case, 1, size)?;
    ends.drain()?;
    let ways = offered(&mut ends.link)?;
    // As in the race: nobody sends while the other end still asks.
    ends.meet(100)?;
    for (round, (way, name)) in (1..).zip(ways) {
        let mut batch = queue::batch();
        batch.put(&ends.put(0, size, 0, 0));
        ends.submit(&mut batch)?;
        let slept = await_asleep(&mut ends, way, 0, round);
        slept.map_err(|e| e.at(format!("by {name}")))?;
        ends.meet(round)?;
    }
    ends.part()
}

fn peer_dies(case: &Case) -> Checked {
    arms(case)?;
    let mut ends = Ends::connect(case, 1)?;
    ends.drain()?;
    let way = offered(&mut ends.link)?[0].0;
    case.peer()?.meet(1)?;
    if ends.role() == 1 {
        std::thread::sleep(Duration::from_millis(50));
        super::share_gone::die();
    }
    case.expect_death();
    match await_asleep(&mut ends, way, 0, 1) {
        Err(Stop::Failed(what)) if !what.contains("nothing ") => Ok(()),
        Err(stop) => Err(stop),
        Ok(()) => Err(Stop::failed("a put of a dead peer arrived")),
    }
}

/// While a link sleeps, who raises the flag of its WAIT wakes the host; what was raised before is
/// the link's to see.
fn flag_up(case: &Case) -> Checked {
    arms(case)?;
    let mut ends = Ends::connect(case, 1)?;
    ends.drain()?;
    for (round, (way, name)) in (1..).zip(offered(&mut ends.link)?) {
        let mut batch = queue::batch();
        batch.wait(ends.local.flag(0), ends.local.counter(0), None);
        ends.submit(&mut batch)?;
        let state = ends.link.poll(queue::BUDGET)?.state;
        ensure!(state == State::Waiting, "a link that waits is {state:?}");
        ends.local.set(0, round, [0; 3]);
        let slept = Sleeper::new().sleep(&mut ends.link, way);
        slept.map_err(|e| e.at(format!("by {name}")))?;
        ends.drain()?;
    }
    ends.part()
}
