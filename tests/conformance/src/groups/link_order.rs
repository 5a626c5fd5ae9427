//! Posted links: what comes after what.

use unisono_hal::{Queue, State};

use super::copy::pattern;
use crate::case::Case;
use crate::check::Check;
use crate::ends::{Ends, posted};
use crate::outcome::{Checked, ensure};
use crate::queue;

const G: &str = "link";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "done",
        "The local signal comes once the source may be reused.",
        done,
    ),
    Check::two(
        G,
        "wait",
        "Nothing behind a WAIT is sent before its flag is there.",
        wait,
    ),
    Check::two(
        G,
        "replay",
        "One batch, played 100 times, does the same each time.",
        replay,
    ),
    Check::two(
        G,
        "abort_step",
        "A signal is added: it does not undo an abort of the flag.",
        abort_step,
    ),
    Check::two(
        G,
        "several",
        "Links of several channels between two processes stay apart.",
        several,
    ),
];

fn done(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let size = 100_000;
    for n in 1..=40_u64 {
        ends.source.write(0, &pattern(size, n));
        let mut batch = queue::batch();
        let mut put = ends.put(0, size as u64, 0, 0);
        put.done = Some((ends.local.flag(0), ends.local.counter(0)));
        batch.put(&put);
        ends.submit(&mut batch)?;
        queue::until("the local signal", || {
            ends.link.poll(queue::BUDGET)?;
            Ok(ends.local.value(0) >= n)
        })?;
        ensure!(ends.local.value(0) == n, "it signals more than once");
        ensure!(
            ends.local.counted(0).0 == n,
            "its counter is {:?}",
            ends.local.counted(0)
        );
        // Now the source may be reused: what was sent must be what was there.
        ends.source.write(0, &vec![0xff; size]);
        ends.await_flag(0, n)?;
        let right = ends.data.read(0, size as u64) == pattern(size, n);
        ensure!(
            right,
            "round {n}: the source was read after its local signal"
        );
        ends.meet(n)?;
    }
    ends.part()
}

fn wait(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    for n in 1..=20 {
        let mut batch = queue::batch();
        batch.wait(ends.local.flag(1), ends.local.counter(1), None);
        batch.put(&ends.put(0, 8, 0, 0));
        ends.submit(&mut batch)?;
        let state = queue::settle(&mut ends.link)?;
        ensure!(
            state.state == State::Waiting,
            "before the flag it is {:?}",
            state.state
        );
        ends.meet(2 * n)?;
        ensure!(
            ends.flags.value(0) == n - 1,
            "the put was sent before its flag"
        );
        ends.source.write(0, &n.to_le_bytes());
        ends.meet(2 * n + 1)?;
        ends.local.set(1, n, [0; 3]);
        ends.await_flag(0, n)?;
        ensure!(
            ends.data.read(0, 8) == n.to_le_bytes(),
            "it sent what was there before"
        );
        ends.drain()?;
        ends.meet(1000 + n)?;
    }
    ends.part()
}

fn replay(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut batch = queue::batch();
    let mut put = ends.put(0, 4096, 0, 0);
    put.done = Some((ends.local.flag(0), ends.local.counter(0)));
    put.words = Some([1, 2, 3]);
    batch.put(&put);
    // The link waits for its own local signal, by another counter.
    batch.wait(ends.local.flag(0), ends.local.counter(1), None);
    batch.put(&ends.put(0, 16, 8192, 1));
    for n in 1..=100 {
        ends.source.write(0, &pattern(4096, n));
        batch.rewind();
        ends.submit(&mut batch)?;
        ends.await_flag(1, n)?;
        ensure!(
            ends.flags.value(0) == n,
            "round {n}: flag 0 is {}",
            ends.flags.value(0)
        );
        ensure!(
            ends.data.read(0, 4096) == pattern(4096, n),
            "round {n}: other bytes"
        );
        ends.drain()?;
        ends.meet(n)?;
    }
    ends.part()
}

fn abort_step(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    ends.flags.add(0, unisono_abi::ABORT_STEP);
    ends.meet(1)?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    batch.put(&ends.put(0, 8, 0, 1));
    ends.submit(&mut batch)?;
    ends.await_flag(1, 1)?;
    let value = ends.flags.value(0);
    ensure!(
        value > unisono_abi::ABORT_AHEAD,
        "after a signal the aborted flag is {value:#x}"
    );
    ends.part()
}

fn several(case: &Case) -> Checked {
    let instance = posted(case)?;
    let mut all = Vec::new();
    for id in 1..=3 {
        all.push(Ends::of(case, &instance, id, 4096)?);
    }
    for round in 1..=20 {
        for (index, ends) in (0..).zip(&mut all) {
            ends.put_one(round * 3 + index)?;
        }
    }
    for ends in all {
        ends.part()?;
    }
    Ok(())
}
