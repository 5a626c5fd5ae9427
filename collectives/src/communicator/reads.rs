//! Whether the ranks of a communicator can read each other's memory, and at what speed: what `mesh_read` needs.
//!
//! Each rank tells the others by what its memory is read, tries theirs, and tells what came of it. It is used if all
//! succeed in all, so every rank finds the same.

use unisono_abi::command_kind::READ;
use unisono_hal::{
    Device, DeviceKind, ExportKind, Memory, MemoryKind, MemoryRequest, Place, SupportQuery,
};
use unisono_plan::cost::{Rate, Reads, Uncached};

use crate::options::InitOptions;

// What follows was measured on a Xeon of 2 cores, but for the two that say so, by `cargo xtask peers -- --dirty` with
// `UNISONO_ALGORITHMS='[{op: all_gather, use: mesh_read}, {op: broadcast, use: mesh_read}]'`.

/// What a core spends on one read besides the bytes: two calls of the operating system, one of which looks whether the
/// process is there. Half of it at each end, by the model's way of counting: `--ops all_gather --sizes 16K --ranks 8`.
const CALL_PS: u64 = 1_000_000;
/// What the system copies from another process's memory, page by page: `--ops all_gather --sizes 4M,64M`.
const BYTES_PER_SECOND: u64 = 7_000_000_000;
/// The same where all read the memory of one, which its own core copies meanwhile: `--ops broadcast --sizes 4M,64M`.
const FROM_ONE_BYTES_PER_SECOND: u64 = 4_900_000_000;
/// The two on a processor whose cores have no cache in common, while what is read lies in that of a core far away: on an
/// EPYC 7003, by `unisono bench all_gather,broadcast --ranks 2 -b 4M -e 4M --dirty` with `mesh_read` forced. Where the cores
/// were near each other it was 10 and 5 GB/s, and slots, which are written as suits the distance ([`unisono_copy::Ways`]),
/// were still the faster way.
const APART_BYTES_PER_SECOND: [u64; 2] = [3_500_000_000, 2_200_000_000];
/// What ranks that share a core read there of each other: the same all_gather, of 1 MiB, under `taskset -c 0`.
const OF_OWN_CORE_BYTES_PER_SECOND: u64 = 10_000_000_000;
/// What a core copies past its caches out of memory: on an EPYC 7003 one alone moves 10.5 GB/s
/// (`cargo bench -p unisono-plugin-host -- copy/streaming`, 64 MiB). It is taken as less, since others do the same.
const COPIED_BYTES_PER_SECOND: u64 = 9_000_000_000;
/// What it takes besides to read what caches do not hold, and how much these hold: all_to_alls of 8 MiB take 0.74, 1.9 and 5.8
/// ms among two, four and eight ranks, of 64 MiB 8.6, 23 and 51 (`--ops all_to_all --ranks 2,4,8 --sizes 8M,16M,32M,64M`
/// with `mesh_read` forced). Of others' processors nothing is known.
const ALONE: Uncached = Uncached {
    held: 48 << 20,
    rate: Rate::bytes_per_second(6_500_000_000),
};
/// What is added up when it has been read. Out of its second-level cache a Xeon adds 38 GB/s of f32, an EPYC 7002 32 GB/s
/// (`cargo xtask reduction`, operands of 256 KiB, a third of what is read and written). It is less here, since one
/// operand of all, the rank's own input, comes from memory.
const ADDED_BYTES_PER_SECOND: u64 = 20_000_000_000;
/// What comes from memory besides, where no cache holds it, and goes there: the rank's own operand and the sums. A Xeon's two
/// ranks took 10 to 12 ms for a reduce_scatter of 64 MiB so, of which reads and additions of what was read are 8
/// (`--ops reduce_scatter --sizes 64M --ranks 2`, with `mesh_read` forced; `mesh_one_shot` took 9 to 10).
const SUMMED_BYTES_PER_SECOND: u64 = 15_000_000_000;
/// What comes from the first-level cache of a core that has just written it and will write it again:
/// `--ops broadcast --sizes 64K --ranks 2`.
const CACHED_BYTES_PER_SECOND: u64 = 1_000_000_000;

/// How fast ranks read each other's memory.
pub(super) fn speed() -> Reads {
    let ([rate, from_one], of_own_core) = match unisono_copy::has_caches_apart() {
        true => (APART_BYTES_PER_SECOND, OF_OWN_CORE_BYTES_PER_SECOND),
        false => (
            [BYTES_PER_SECOND, FROM_ONE_BYTES_PER_SECOND],
            BYTES_PER_SECOND,
        ),
    };
    Reads {
        call_ps: CALL_PS,
        rate: Rate::bytes_per_second(rate),
        of_own_core: Rate::bytes_per_second(of_own_core),
        from_one: Rate::bytes_per_second(from_one),
        // It is no more than what the system copies of a peer's.
        from_memory: Rate::bytes_per_second(BYTES_PER_SECOND),
        copied_from_memory: Rate::bytes_per_second(COPIED_BYTES_PER_SECOND),
        alone: match unisono_copy::hands_lines_on() {
            true => ALONE,
            false => Uncached {
                rate: Rate::UNKNOWN,
                ..ALONE
            },
        },
        added: Rate::bytes_per_second(ADDED_BYTES_PER_SECOND),
        summed: Rate::bytes_per_second(SUMMED_BYTES_PER_SECOND),
        from_cache: Rate::bytes_per_second(CACHED_BYTES_PER_SECOND),
    }
}

/// What stands for this process, for peers that read its memory; none where its device does not read theirs.
pub(crate) fn own(device: &Device, options: &InitOptions) -> Option<Memory> {
    let info = device.info();
    let is_plain = info.kind == DeviceKind::Cpu && info.reaches(unisono_abi::reach::HOST);
    let reads = device.supports(&SupportQuery {
        command: READ,
        dtype: 0,
        reduction: 0,
        source: Place::Device,
        destination: Place::Device,
    });
    if !options.memory.single_copy || !is_plain || !reads {
        return None;
    }
    let request = MemoryRequest::new(MemoryKind::Process, 64).exportable();
    // A plugin of an earlier contract has none.
    device.alloc(&request).ok()
}

/// By what peers read this process's memory; empty if they do not.
pub(super) fn token(own: Option<&Memory>) -> Vec<u8> {
    let token = own.map(|memory| memory.export(ExportKind::Process));
    token.and_then(Result::ok).unwrap_or_default()
}

/// Of all ranks what each told of its reads: nothing, or why one fails.
pub(super) fn of_all(told: &[Option<String>]) -> Result<Reads, String> {
    match told.iter().flatten().next() {
        None => Ok(speed()),
        Some(why) => Err(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rank_that_cannot_is_enough() {
        let no = || Some("rank 1 cannot read rank 0: no".to_owned());
        assert!(of_all(&[None, None, None]).is_ok());
        assert_eq!(of_all(&[None, no(), None]), Err(no().unwrap()));
        assert!(of_all(&[None]).is_ok(), "alone it copies");
    }
}
