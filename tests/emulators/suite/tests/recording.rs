//! Batches recorded into a graph of the driver's, and replayed with no work of the host's.
#![allow(
    unsafe_code,
    reason = "calls the driver, and hands addresses to streams"
)]

use std::time::{Duration, Instant};

use unisono::PluginRequest;
use unisono::hal::{Batch, Queue, Reduce, State, Stream};
use unisono_emulated_tests::{Driver, Emulated, Flags, Values};
use unisono_tests::Rng;

const LEN: usize = 300;

fn run(stream: &mut Stream, batch: &mut Batch) {
    let end = Instant::now() + Duration::from_secs(20);
    batch.rewind();
    while !batch.is_empty() {
        stream.submit(batch).expect("a batch");
    }
    while stream.poll(1 << 20).expect("a poll").state != State::Idle {
        assert!(Instant::now() < end, "it takes too long");
        std::thread::yield_now();
    }
}

/// dst = src + src, behind a signal of another stream, with a signal at the end; a thousand times.
#[test]
fn a_thousand_replays() {
    const ROUNDS: u64 = 1000;
    let test = "a_thousand_replays";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let world = rank.init(|options| options.plugins = vec![PluginRequest::named("cuda")]);
        let device = world.device();
        let driver = Driver::open();
        driver.enter(0);
        let native = driver.stream();
        // SAFETY: the stream lives as long as the process.
        let mut stream = unsafe { device.wrap_stream(native as u64) }.expect("a stream");
        let (src, dst) = (
            Values::<i32>::new(device, LEN),
            Values::<i32>::new(device, LEN),
        );
        let flags = Flags::new(device);
        // SAFETY: memory of this test, which waits for all that uses it.
        let (mut recorded, mut gate) = unsafe { (Batch::new(), Batch::new()) };
        recorded.wait(flags.line(0), flags.line(4), Some([1, 2, 3]));
        recorded.reduce(&Reduce {
            dst: dst.address(),
            a: src.address(),
            b: src.address(),
            elements: LEN as u64,
            repeat: 1,
            dst_stride: 0,
            a_stride: 0,
            b_stride: 0,
            dtype: 5,
            reduction: 1,
            divisor: 0,
            streaming: false,
        });
        recorded.signal(flags.line(1), flags.line(5), 0, None);
        driver.begin(native);
        let recording = stream.capturing().expect("it says that it records");
        assert!(recording.is_known());
        stream
            .submit(&mut recorded)
            .expect("a batch that can be recorded");
        assert!(recorded.is_empty(), "all of it was taken");
        let runnable = driver.end(native);
        assert!(stream.capturing().is_none());
        assert_eq!(flags.value(1), 0, "recording runs nothing");
        let mut other = device.stream(0).expect("a stream");
        gate.signal(flags.line(0), flags.line(6), 0, Some([1, 2, 3]));
        let mut random = Rng::new(Rng::seed());
        for round in 1..=ROUNDS {
            let values: Vec<i32> = (0..LEN as i32).map(|i| i * round as i32).collect();
            src.write(&values);
            driver.launch(runnable, native);
            if random.below(16) == 0 {
                std::thread::sleep(Duration::from_micros(random.below(500)));
            }
            assert_eq!(flags.value(1), round - 1, "nothing passes the wait");
            run(&mut other, &mut gate);
            driver.synchronise(native);
            let doubled: Vec<i32> = values.iter().map(|value| value * 2).collect();
            assert_eq!(dst.read(), doubled, "round {round}");
            assert_eq!(flags.value(1), round);
        }
        // What is not recorded goes on where the replays left the counters.
        run(&mut other, &mut gate);
        run(&mut stream, &mut recorded);
        assert_eq!(flags.value(1), ROUNDS + 1);
        rank.say("done");
    });
    let exits = ranks.finish();
    assert!(exits[0].said("done"), "{exits:?}");
}
