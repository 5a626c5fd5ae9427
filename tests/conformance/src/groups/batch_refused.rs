//! Batches that are refused, whole.

use unisono_abi::{self as abi, command_kind};
use unisono_hal::{Put, Queue, Status};

use super::batch::command;
use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, ensure, refused};
use crate::queue;
use crate::raw::RawStream;
use crate::store::Store;

const G: &str = "batch";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "refused_whole",
        "Of a batch with an unsupported command nothing is taken.",
        refused_whole,
    ),
    Check::one(
        G,
        "unknown_kind",
        "A kind of command that is none is unsupported.",
        unknown_kind,
    ),
    Check::one(G, "cut_off", "A batch that is cut off is refused.", cut_off),
];

fn refused_whole(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 128)?;
    store.write(0, &[1; 64])?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.copy(store.at() + 64, store.at(), 64);
    batch.put(&Put {
        src: store.at(),
        bytes: 8,
        repeat: 1,
        src_stride: 0,
        dst_window: 0,
        dst_offset: 0,
        signal: None,
        done: None,
        words: None,
    });
    let answer = stream.submit(&mut batch);
    refused("PUT on a stream", answer, &[Status::Unsupported])?;
    let state = queue::settle(&mut stream)?;
    ensure!(
        state.accepted == 0,
        "{} commands of that batch were taken",
        state.accepted
    );
    ensure!(store.read(64, 64)? == [0; 64], "the command before it ran");
    let mut good = queue::batch();
    good.copy(store.at() + 64, store.at(), 64);
    queue::run(&mut stream, &mut good)?;
    ensure!(
        store.read(64, 64)? == [1; 64],
        "the stream is of no use after a refusal"
    );
    Ok(())
}

fn refused_raw(what: &str, stream: &mut RawStream, words: &[u64], count: u32, by: i32) -> Checked {
    let (status, accepted, message) = stream.submit(words, count)?;
    ensure!(status == by, "{what} gives status {status}, not {by}");
    ensure!(accepted == 0, "{what}: {accepted} commands were taken");
    ensure!(!message.is_empty(), "{what} is refused without a message");
    Ok(())
}

fn unknown_kind(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 128)?;
    let mut stream = RawStream::new(case)?;
    let good = command(
        command_kind::COPY,
        0,
        &[store.at() + 64, store.at(), 8, 1, 0, 0],
    );
    for kind in [0, 11, 99, u16::MAX] {
        let mut words = good.clone();
        words.extend(command(kind, 0, &[0; 6]));
        let what = format!("a command of kind {kind}");
        refused_raw(&what, &mut stream, &words, 2, abi::status::UNSUPPORTED)?;
    }
    let words = command(command_kind::COPY, 1 << 31, &good[1..]);
    refused_raw(
        "an unknown flag",
        &mut stream,
        &words,
        1,
        abi::status::UNSUPPORTED,
    )?;
    Ok(())
}

fn cut_off(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 128)?;
    let mut stream = RawStream::new(case)?;
    let good = command(
        command_kind::COPY,
        0,
        &[store.at() + 64, store.at(), 8, 1, 0, 0],
    );
    let invalid = abi::status::INVALID;
    refused_raw(
        "a batch cut in a command",
        &mut stream,
        &good[..5],
        1,
        invalid,
    )?;
    refused_raw(
        "a batch with fewer commands than said",
        &mut stream,
        &good,
        2,
        invalid,
    )?;
    let short = command(command_kind::COPY, 0, &[store.at() + 64, store.at()]);
    refused_raw(
        "a command that is too short",
        &mut stream,
        &short,
        1,
        invalid,
    )?;
    let mut endless = good.clone();
    endless[0] &= !(0xffff << 16);
    refused_raw("a command of no size", &mut stream, &endless, 1, invalid)?;
    Ok(())
}
