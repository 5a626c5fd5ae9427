//! Posted links: what is refused, and what is counted.

use unisono_hal::{Put, Queue, Status};

use crate::case::Case;
use crate::check::Check;
use crate::ends::{DATA, Ends, FLAGS};
use crate::flags::LINE;
use crate::outcome::{Checked, ensure, refused};
use crate::queue;

const G: &str = "link";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "statistics",
        "A link counts what it sent and received.",
        statistics,
    ),
    Check::two(
        G,
        "window_ids",
        "A window's number is taken once, and free again when it is closed.",
        window_ids,
    ),
    Check::two(
        G,
        "bounds",
        "A put outside of a window is refused whole.",
        bounds,
    ),
    Check::two(
        G,
        "refused_whole",
        "Of a batch with an unsupported command nothing is taken.",
        refused_whole,
    ),
];

fn statistics(case: &Case) -> Checked {
    case.needs(&[("link", "statistics")])?;
    let mut ends = Ends::connect(case, 1)?;
    let before = ends.link.statistics()?;
    ensure!(
        before.connections >= 1,
        "a link that is up has no connection"
    );
    ensure!(
        (before.puts_sent, before.puts_received) == (0, 0),
        "it starts at {before:?}"
    );
    let mut batch = queue::batch();
    for _ in 0..10 {
        batch.put(&ends.put(0, 1000, 0, 0));
    }
    ends.submit(&mut batch)?;
    ends.await_flag(0, 10)?;
    ends.drain()?;
    let after = ends.link.statistics()?;
    let puts = (after.puts_sent, after.puts_received);
    ensure!(
        puts == (10, 10),
        "after 10 puts each way it counts {puts:?}"
    );
    let bytes = (after.bytes_sent, after.bytes_received);
    ensure!(
        bytes.0 >= 10_000 && bytes.1 >= 10_000,
        "after 10 000 bytes each way: {bytes:?}"
    );
    ends.part()
}

#[allow(unsafe_code, reason = "exports a window")]
fn window_ids(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let (at, len) = (ends.source.host(), ends.source.len());
    // SAFETY: the source outlives the link, and nobody has the token.
    let again = unsafe { ends.link.export_window(DATA, at, len) };
    refused("a window's number used twice", again, &[])?;
    refused(
        "closing a window that is none",
        ends.link.close_window(77),
        &[],
    )?;
    // SAFETY: as above.
    unsafe { ends.link.export_window(5, at, len) }?;
    ends.link.close_window(5)?;
    // SAFETY: as above.
    unsafe { ends.link.export_window(5, at, len) }?;
    refused(
        "a token of rubbish",
        ends.link.import_window(9, &[0xff; 300]),
        &[],
    )?;
    ends.put_one(3)?;
    ends.part()
}

fn bounds(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let (len, lines) = (ends.data.len(), ends.flags.region().len());
    let good = ends.put(0, 64, 0, 0);
    let bad = [
        (
            "one byte past the end",
            Put {
                dst_offset: len - 63,
                ..good
            },
        ),
        (
            "behind the end",
            Put {
                dst_offset: len + 64,
                ..good
            },
        ),
        (
            "an offset that wraps",
            Put {
                dst_offset: u64::MAX - 31,
                ..good
            },
        ),
        (
            "pieces past the end",
            Put {
                repeat: len,
                ..good
            },
        ),
        (
            "pieces that wrap",
            Put {
                bytes: 1 << 40,
                repeat: 1 << 40,
                ..good
            },
        ),
        (
            "a window that is none",
            Put {
                dst_window: 55,
                ..good
            },
        ),
        (
            "a signal past the end",
            Put {
                signal: Some((FLAGS, lines)),
                ..good
            },
        ),
        (
            "a signal across the end",
            Put {
                signal: Some((FLAGS, lines - LINE / 2)),
                ..good
            },
        ),
        (
            "a signal in no window",
            Put {
                signal: Some((55, 0)),
                ..good
            },
        ),
        ("no piece at all", Put { repeat: 0, ..good }),
    ];
    for (what, put) in bad {
        let mut batch = queue::batch();
        batch.put(&good);
        batch.put(&put);
        refused(what, ends.link.submit(&mut batch), &[Status::Invalid])?;
    }
    let state = queue::settle(&mut ends.link)?;
    ensure!(
        state.accepted == 0,
        "{} commands of refused batches were taken",
        state.accepted
    );
    ends.meet(1)?;
    ensure!(ends.flags.value(0) == 0, "a put of a refused batch arrived");
    ends.meet(2)?;
    ends.put_one(4)?;
    ends.part()
}

fn refused_whole(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    batch.copy(ends.source.at(), ends.source.at() + 64, 8);
    refused(
        "COPY on a link",
        ends.link.submit(&mut batch),
        &[Status::Unsupported],
    )?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    batch.signal(ends.local.flag(0), ends.local.counter(0), 0, None);
    refused(
        "SIGNAL on a link",
        ends.link.submit(&mut batch),
        &[Status::Unsupported],
    )?;
    ends.meet(1)?;
    ensure!(ends.flags.value(0) == 0, "a put of a refused batch arrived");
    ends.meet(2)?;
    ends.put_one(4)?;
    ends.part()
}
