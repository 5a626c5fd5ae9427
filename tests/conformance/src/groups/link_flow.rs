//! Posted links under load: order, and what a slow reader does.

use std::time::{Duration, Instant};

use unisono_hal::{Queue, State};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::ends::Ends;
use crate::outcome::{Checked, ensure};
use crate::queue;

const G: &str = "flow";

/// Slots in the peer's window, and bytes of one.
const SLOTS: u64 = 8;
const SLOT: u64 = 128 << 10;

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "order",
        "A signal never overtakes its data, under load both ways.",
        order,
    ),
    Check::two(
        G,
        "back_pressure",
        "A reader that does not poll blocks no writer, and loses nothing.",
        back_pressure,
    ),
    Check::two(
        G,
        "submit_never_blocks",
        "A link that waits refuses more and does not block.",
        never_blocks,
    ),
    Check::two(
        G,
        "small_budgets",
        "With small budgets a link moves on, and says that there is more.",
        budgets,
    ),
    Check::two(
        G,
        "counts",
        "A link tells what it accepted and what is complete.",
        counts,
    ),
];

/// Bytes of put `n`: small, large and in between, and the same on both sides.
fn size(n: u64) -> u64 {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    match n % 4 {
        0 => mixed % 64,
        1 => mixed % 4096,
        2 => mixed % 20_000,
        _ => SLOT - mixed % 1000,
    }
}

fn order(case: &Case) -> Checked {
    const PUTS: u64 = 2000;
    let mut ends = Ends::connect_with(case, 1, SLOTS * SLOT)?;
    // Both send and receive: n-th put goes to slot n, credits come back as empty puts on flag 1.
    let (mut sent, mut got) = (0_u64, 0_u64);
    queue::until_slow("two thousand puts each way", || {
        ends.link.poll(256 << 10)?;
        while sent < PUTS && sent < ends.flags.value(1) + SLOTS {
            let (slot, len) = (sent % SLOTS, size(sent));
            // The source of the put that had this slot was read: the peer has given it back.
            ends.source.write(slot * SLOT, &pattern(len as usize, sent));
            let mut batch = queue::batch();
            let mut put = ends.put(slot * SLOT, len, slot * SLOT, 0);
            put.words = Some([sent; 3]);
            batch.put(&put);
            queue::submit(&mut ends.link, &mut batch)?;
            sent += 1;
        }
        while got < ends.flags.value(0) {
            let (slot, len) = (got % SLOTS, size(got));
            let right = ends.data.read(slot * SLOT, len) == pattern(len as usize, got);
            ensure!(
                right,
                "put {got} of {len} bytes: its data was not there with its signal"
            );
            let mut batch = queue::batch();
            batch.put(&ends.put(0, 0, 0, 1));
            queue::submit(&mut ends.link, &mut batch)?;
            got += 1;
        }
        Ok(got == PUTS && ends.flags.value(1) == PUTS)
    })?;
    ensure!(
        ends.flags.value(0) == PUTS,
        "{} of {PUTS} signals came",
        ends.flags.value(0)
    );
    ends.part()
}

fn back_pressure(case: &Case) -> Checked {
    let size = 1 << 20;
    let mut ends = Ends::connect_with(case, 1, size)?;
    ends.source.write(0, &pattern(size as usize, 1));
    if ends.role() == 0 {
        // More than any socket buffer holds; role 1 does not poll meanwhile.
        let (mut taken, start) = (0_u64, Instant::now());
        let mut batch = queue::batch();
        for _ in 0..64 {
            batch.put(&ends.put(0, size, 0, 0));
        }
        while start.elapsed() < Duration::from_millis(500) {
            taken += u64::from(queue::prompt("submit", || ends.link.submit(&mut batch))?);
            let state = queue::prompt("poll", || ends.link.poll(queue::BUDGET))?;
            ensure!(state.completed <= taken, "more is complete than was taken");
            std::thread::sleep(Duration::from_millis(1));
        }
        let state = ends.link.state()?;
        ensure!(
            state.state != State::Idle,
            "64 MiB to a reader that does not poll are all complete"
        );
        case.peer()?.meet(1)?;
        ends.submit(&mut batch)?;
    } else {
        case.peer()?.meet(1)?;
        ends.await_flag(0, 64)?;
        ensure!(
            ends.data.read(0, size) == pattern(size as usize, 1),
            "the bytes are wrong"
        );
    }
    ends.part()
}

fn never_blocks(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut first = queue::batch();
    first.wait(ends.local.flag(0), ends.local.counter(0), None);
    ends.submit(&mut first)?;
    let mut batch = queue::batch();
    for _ in 0..10_000 {
        batch.put(&ends.put(0, 8, 0, 0));
    }
    let mut puts = 0;
    for _ in 0..100 {
        batch.rewind();
        let taken = queue::prompt("submit to a link that waits", || {
            ends.link.submit(&mut batch)
        })?;
        puts += u64::from(taken);
        queue::prompt("poll of a link that waits", || {
            ends.link.poll(queue::BUDGET)
        })?;
        if taken == 0 {
            break;
        }
    }
    let theirs = case.peer()?.exchange(2, &puts.to_le_bytes())?;
    ensure!(ends.flags.value(0) == 0, "a put behind the wait was sent");
    ends.local.set(0, 1, [0; 3]);
    let theirs = u64::from_le_bytes(theirs.try_into().unwrap_or_default());
    ends.await_flag(0, theirs)?;
    ends.part()
}

fn budgets(case: &Case) -> Checked {
    let size = 4 << 20;
    let mut ends = Ends::connect_with(case, 1, size)?;
    let bytes = pattern(size as usize, 5);
    ends.source.write(0, &bytes);
    let mut batch = queue::batch();
    batch.put(&ends.put(0, size, 0, 0));
    ends.submit(&mut batch)?;
    let (flags, link) = (&ends.flags, &mut ends.link);
    queue::until_slow("4 MiB by polls of 16 KiB", || {
        queue::prompt("poll", || link.poll(16 << 10))?;
        Ok(flags.value(0) == 1)
    })?;
    ensure!(ends.data.read(0, size) == bytes, "the bytes are wrong");
    ends.part()
}

fn counts(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 100, 0, 0));
    batch.put(&ends.put(0, 0, 0, 1));
    for n in 1..=10 {
        batch.rewind();
        ends.submit(&mut batch)?;
        let state = ends.drain()?;
        let counted = (state.accepted, state.completed);
        ensure!(
            counted == (2 * n, 2 * n),
            "after {} puts it counts {counted:?}",
            2 * n
        );
        let asked = ends.link.state()?;
        ensure!(asked.completed == 2 * n, "query counts {}", asked.completed);
    }
    ends.await_flag(1, 10)?;
    ends.part()
}
