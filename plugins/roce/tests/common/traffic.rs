//! Puts with checked contents.

use std::time::{Duration, Instant};

use unisono_plugin::{Link, QueuePhase};

use super::{Commands, End, Memory, Random, drive, put};

/// Puts of all sizes with a checked flag each, until `rounds` are done; the peer's data is checked
/// whenever its flag is up.
pub fn traffic(ends: &mut [End; 2], random: &mut Random, puts: usize) -> Duration {
    let window = 1 << 20;
    let source = Memory::new(window);
    let mut worst = Duration::ZERO;
    for round in 0..puts {
        let size = match random.below(3) {
            0 => random.below(100),
            1 => random.below(60_000),
            _ => random.below(window as u64),
        } as usize;
        let content = random.bytes(size);
        source.write(0, &content);
        let from = round % 2;
        let to = 1 - from;
        let before = ends[to].raised(5);
        ends[from].submit(&Commands::default().put(put(source.address(), size, 0, Some(5))));
        let start = Instant::now();
        drive(ends, |e| e[to].raised(5) > before);
        worst = worst.max(start.elapsed());
        assert_eq!(ends[to].raised(5), before + 1, "a signal came twice");
        assert!(
            ends[to].data.read(0, size) == content,
            "{size} bytes are wrong"
        );
        // The source is changed only when nothing reads it any more.
        drive(ends, |e| e[from].phase() == QueuePhase::Idle);
    }
    worst
}
