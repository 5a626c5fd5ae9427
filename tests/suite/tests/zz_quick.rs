#[test]
fn quick_bench() {
    for count in [2usize, 256, 4096, 65536, 1 << 20, 16 << 20] {
        let r = unisono_tests::threads(2, |o| { if let Ok(us) = std::env::var("BS") { o.before_sleep = std::time::Duration::from_micros(us.parse().unwrap()); } }, move |world| {
            let mut data = vec![1.0f32; count];
            let mut out = vec![0.0f32; count];
            let iters = (200_000_000 / (count * 40 + 2000)).clamp(3, 20000);
            for _ in 0..(iters / 10).max(2) { world.all_reduce(&data, &mut out, unisono::ReduceOp::Sum).unwrap(); }
            world.barrier().unwrap();
            let t = std::time::Instant::now();
            for _ in 0..iters { world.all_reduce(&data, &mut out, unisono::ReduceOp::Sum).unwrap(); }
            let us = t.elapsed().as_secs_f64() * 1e6 / iters as f64;
            data[0] = 2.0;
            let e = world.explain(unisono::Op::AllReduce, count as u64 * 4, unisono::DataType::F32).unwrap();
            (us, format!("{}", e.algorithm()))
        });
        println!("{:>10} B {:>12.2} us {}", count * 4, r[0].0, r[0].1);
    }
}
