//! Copies and reductions against a plain `memcpy` in the same run, by size.
//!
//! `cargo bench -p unisono-plugin-host --bench reduce`
#![allow(unsafe_code, reason = "kernels take addresses")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use unisono_plugin_host::cpu::Isa;
use unisono_plugin_host::reduce::{Dtype, Kernel, Reduction};

/// In the first-level cache, in the second, in the third, in memory.
const SIZES: [usize; 4] = [8 << 10, 256 << 10, 4 << 20, 64 << 20];

/// Memory aligned to a page, written once so that it is there.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new(bytes: usize) -> Self {
        Self((0..bytes + 4096).map(|i| (i % 60) as u8).collect())
    }

    fn at(&mut self) -> *mut u8 {
        let skip = self.0.as_ptr().align_offset(4096);
        self.0[skip..].as_mut_ptr()
    }
}

fn copies(c: &mut Criterion) {
    for size in SIZES {
        let (mut source, mut target) = (Buffer::new(size), Buffer::new(size));
        let (src, dst) = (source.at(), target.at());
        let mut group = c.benchmark_group("copy");
        group.throughput(Throughput::Bytes(size as u64));
        group.warm_up_time(Duration::from_millis(300));
        group
            .measurement_time(Duration::from_secs(1))
            .sample_size(10);
        group.bench_function(BenchmarkId::new("memcpy", size), |b| {
            // SAFETY: both hold `size` bytes and are distinct.
            b.iter(|| unsafe { std::ptr::copy_nonoverlapping(src, dst, size) });
        });
        group.bench_function(BenchmarkId::new("streaming", size), |b| {
            // SAFETY: as above.
            b.iter(|| unsafe { unisono_copy::copy_past(dst, src, size) });
        });
        group.finish();
    }
}

fn reductions(c: &mut Criterion) {
    let cases = [
        (Dtype::F32, Reduction::Sum),
        (Dtype::F32, Reduction::Max),
        (Dtype::F64, Reduction::Sum),
        (Dtype::Bf16, Reduction::Sum),
        (Dtype::Bf16, Reduction::Max),
        (Dtype::F16, Reduction::Sum),
        (Dtype::F8e4m3, Reduction::Sum),
        (Dtype::I8, Reduction::Sum),
        (Dtype::I64, Reduction::Max),
    ];
    for size in SIZES {
        let (mut a, mut b, mut dst) = (Buffer::new(size), Buffer::new(size), Buffer::new(size));
        let (a, b, dst) = (a.at(), b.at(), dst.at());
        let mut group = c.benchmark_group("reduce");
        group.throughput(Throughput::Bytes(size as u64));
        group.warm_up_time(Duration::from_millis(200));
        group
            .measurement_time(Duration::from_millis(600))
            .sample_size(10);
        for (dtype, reduction) in cases {
            let kernel = Kernel::new(Isa::best(), dtype, reduction).expect("it is defined");
            let elements = size / dtype.bytes();
            let mut case = |name: &str, dst: *mut u8, a: *mut u8, streaming: bool| {
                let id = BenchmarkId::new(format!("{dtype:?} {reduction:?} {name}"), size);
                group.bench_function(id, |bench| {
                    // SAFETY: all hold `elements` elements; `dst` is `a` or distinct.
                    bench.iter(|| unsafe { kernel.run(dst, a, b, elements, 0, streaming) });
                });
            };
            case("distinct", dst, a, false);
            case("in place", dst, dst, false);
            if size >= 4 << 20 {
                case("streaming", dst, a, true);
            }
        }
        group.finish();
    }
}

criterion_group!(benches, copies, reductions);
criterion_main!(benches);
