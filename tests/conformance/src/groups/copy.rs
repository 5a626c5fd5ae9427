//! COPY.

use unisono_abi::command_kind;
use unisono_hal::CopyPieces;

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, ensure};
use crate::queue;
use crate::store::Store;

const G: &str = "copy";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "sizes",
        "Any number of bytes at any address arrives, and nothing beside it.",
        sizes,
    ),
    Check::one(
        G,
        "strided",
        "Pieces arrive at their strides, and nothing between them.",
        strided,
    ),
    Check::one(
        G,
        "streaming",
        "The streaming hint changes nothing.",
        streaming,
    ),
    Check::one(G, "large", "A copy of many megabytes is whole.", large),
    Check::one(
        G,
        "in_order",
        "Each command sees the effects of those before it.",
        in_order,
    ),
];

/// Bytes that differ from their neighbours.
pub(super) fn pattern(len: usize, salt: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|i| {
            (i.wrapping_mul(0x9e37_79b9)
                .wrapping_add(salt.wrapping_mul(97))
                >> 7) as u8
        })
        .collect()
}

fn sizes(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let (src, dst) = (Store::new(&device, 8192)?, Store::new(&device, 8192)?);
    let bytes = pattern(8192, 1);
    src.write(0, &bytes)?;
    let mut stream = device.stream(0)?;
    for len in [0_usize, 1, 2, 7, 8, 63, 64, 65, 1000, 4095, 4097] {
        for (to, from) in [(0_usize, 0_usize), (1, 0), (0, 1), (3, 5), (64, 63)] {
            dst.write(0, &[0xee; 8192])?;
            let mut batch = queue::batch();
            batch.copy(dst.at() + to as u64, src.at() + from as u64, len as u64);
            queue::run(&mut stream, &mut batch)?;
            let mut expected = vec![0xee; 8192];
            expected[to..to + len].copy_from_slice(&bytes[from..from + len]);
            let right = dst.read(0, 8192)? == expected;
            ensure!(right, "{len} bytes from offset {from} to {to} are wrong");
        }
    }
    Ok(())
}

fn pieces(case: &Case, streaming: bool) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let (src, dst) = (Store::new(&device, 65536)?, Store::new(&device, 65536)?);
    let bytes = pattern(65536, 2);
    src.write(0, &bytes)?;
    let mut stream = device.stream(0)?;
    for (len, repeat, to, from) in [
        (1, 9, 3, 2),
        (5, 100, 5, 64),
        (64, 33, 128, 64),
        (1000, 20, 1000, 0),
    ] {
        dst.write(0, &[0; 65536])?;
        let mut batch = queue::batch();
        batch.copy_strided(&CopyPieces {
            dst: dst.at() + 8,
            src: src.at() + 16,
            bytes: len,
            repeat,
            dst_stride: to,
            src_stride: from,
            streaming,
        });
        queue::run(&mut stream, &mut batch)?;
        let mut expected = vec![0; 65536];
        for i in 0..repeat {
            let (to, from) = ((8 + i * to) as usize, (16 + i * from) as usize);
            expected[to..to + len as usize].copy_from_slice(&bytes[from..from + len as usize]);
        }
        let right = dst.read(0, 65536)? == expected;
        ensure!(
            right,
            "{repeat} pieces of {len} bytes, strides {to} and {from}, are wrong"
        );
    }
    Ok(())
}

fn strided(case: &Case) -> Checked {
    pieces(case, false)
}

fn streaming(case: &Case) -> Checked {
    pieces(case, true)?;
    let device = case.streams(command_kind::COPY)?;
    let len = (1 << 20) + 13;
    let (src, dst) = (Store::new(&device, len)?, Store::new(&device, len)?);
    let bytes = pattern(len as usize, 3);
    src.write(0, &bytes)?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.copy_strided(&CopyPieces {
        dst: dst.at() + 1,
        src: src.at(),
        bytes: len - 1,
        repeat: 1,
        dst_stride: 0,
        src_stride: 0,
        streaming: true,
    });
    queue::run(&mut stream, &mut batch)?;
    let right = dst.read(1, len - 1)? == bytes[..len as usize - 1];
    ensure!(right, "a large copy with the hint is wrong");
    Ok(())
}

fn large(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let len = (32 << 20) + 5;
    let (src, dst) = (Store::new(&device, len)?, Store::new(&device, len)?);
    let bytes = pattern(len as usize, 4);
    src.write(0, &bytes)?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.copy(dst.at(), src.at(), len);
    queue::run(&mut stream, &mut batch)?;
    ensure!(dst.read(0, len)? == bytes, "{len} bytes are wrong");
    Ok(())
}

fn in_order(case: &Case) -> Checked {
    let device = case.streams(command_kind::COPY)?;
    let store = Store::new(&device, 64 * 1024)?;
    let first = pattern(1024, 5);
    store.write(0, &first)?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    // Each piece is copied from the one before.
    for i in 1..64_u64 {
        batch.copy(store.at() + i * 1024, store.at() + (i - 1) * 1024, 1024);
    }
    for _ in 0..20 {
        batch.rewind();
        queue::run(&mut stream, &mut batch)?;
        ensure!(
            store.read(63 * 1024, 1024)? == first,
            "a chain of copies lost the order"
        );
        store.write(1024, &vec![0; 63 * 1024])?;
    }
    Ok(())
}
