//! Copies between addresses at several distances modulo a page, by this crate and by `memcpy`, in the same run.
//!
//! `cargo bench -p unisono-copy`
#![allow(unsafe_code, reason = "copies take addresses")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const PAGE: usize = 4096;
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];
const DISTANCES: [usize; 5] = [0, 16, 31, 32, PAGE - 16];

/// Memory that starts with a page, written once so that it is there.
fn page_of(memory: &mut Vec<u8>, bytes: usize) -> *mut u8 {
    memory.resize(bytes + 3 * PAGE, 1);
    let skip = memory.as_ptr().align_offset(PAGE);
    memory[skip..].as_mut_ptr()
}

fn offsets(c: &mut Criterion) {
    for size in SIZES {
        let (mut source, mut target) = (Vec::new(), Vec::new());
        let (src, dst) = (page_of(&mut source, size), page_of(&mut target, size));
        let mut group = c.benchmark_group(format!("copy {size} B"));
        group.throughput(Throughput::Bytes(size as u64));
        group.warm_up_time(Duration::from_millis(200));
        group
            .measurement_time(Duration::from_secs(1))
            .sample_size(10);
        for distance in DISTANCES {
            let dst = dst.wrapping_add(distance);
            group.bench_function(BenchmarkId::new("memcpy", distance), |b| {
                // SAFETY: both hold `size` bytes behind any of the distances, and are apart.
                b.iter(|| unsafe { std::ptr::copy_nonoverlapping(src, dst, size) });
            });
            group.bench_function(BenchmarkId::new("copy", distance), |b| {
                // SAFETY: as above.
                b.iter(|| unsafe { unisono_copy::copy(dst, src, size) });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, offsets);
criterion_main!(benches);
