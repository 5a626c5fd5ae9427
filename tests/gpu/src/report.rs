//! What was measured, as a page.

use std::time::Duration;

use anyhow::Result;
use unisono_tests::threads;

use crate::collectives::{OPS, least_traffic, long, short};
use crate::{Scale, captured, copies, first_device, overlap, processes};

/// Ranks on the device.
const RANKS: [u32; 3] = [2, 4, 8];
/// The part of the limit that long messages should reach.
const TARGET: f64 = 0.85;
/// What a short message should take between threads, with graphs.
const TARGET_SHORT: Duration = Duration::from_micros(15);
/// Bytes of a short message.
const SHORT: usize = 8 << 10;

fn microseconds(time: Duration) -> String {
    format!("{:.1} µs", time.as_secs_f64() * 1e6)
}

/// Measures, and prints the page to standard output.
pub fn measure(scale: Scale, emulated: bool) -> Result<()> {
    let facts = threads(1, first_device, move |world| {
        let rate = copies::rate(world.device(), scale.long, scale.long_repeats);
        (world.device().info().name.clone(), rate)
    });
    let (name, rate) = facts.into_iter().next().unwrap_or_default();
    if emulated {
        println!("\nAn **emulated** {name}: no figure below says anything of a device.\n");
    } else {
        println!("\nDevice: {name}.\n");
    }
    println!(
        "Copy bandwidth, read and written: {:.1} GB/s.\n",
        rate / 1e9
    );
    println!("| ranks | operation | MiB | time | limit | of the limit |");
    println!("|---|---|---|---|---|---|");
    let mut short_of = 0;
    for ranks in RANKS {
        for (name, op) in OPS {
            let time = long(ranks, op, scale);
            let least = least_traffic(op, ranks) as f64 * scale.long as f64 / rate;
            let part = least / time.as_secs_f64().max(1e-9);
            short_of += u32::from(part < TARGET);
            println!(
                "| {ranks} | {name} | {} | {} | {} | {:.2} |",
                scale.long >> 20,
                microseconds(time),
                microseconds(Duration::from_secs_f64(least)),
                part
            );
        }
    }
    println!("\nTarget: {TARGET:.2} of the limit; {short_of} of 9 are short of it.\n");
    println!("| ranks | all_reduce of 8 KiB between | median |");
    println!("|---|---|---|");
    let mut short_late = 0;
    for ranks in RANKS {
        let threads = short(ranks, SHORT, scale);
        println!("| {ranks} | threads | {} |", microseconds(threads));
        let captured = captured::short(ranks, SHORT, scale);
        short_late += u32::from(captured.alone > TARGET_SHORT);
        let alone = microseconds(captured.alone);
        println!("| {ranks} | threads, a graph of one call | {alone} |");
        let among = microseconds(captured.among);
        println!("| {ranks} | threads, one call of a graph of many | {among} |");
        let processes = processes::measure(ranks, emulated)?;
        println!("| {ranks} | processes | {} |", microseconds(processes));
    }
    println!(
        "\nTarget: {} between threads with a graph of one call, from its launch until the host knows that \
         it is done; {short_late} of {} are later. Between processes that share a device by time there is \
         none.\n",
        microseconds(TARGET_SHORT),
        RANKS.len()
    );
    let overlap = overlap::measure(scale);
    println!(
        "A computation of {} beside an all_reduce of {} takes {}: {:.2} of the shorter is hidden.",
        microseconds(overlap.computation),
        microseconds(overlap.collective),
        microseconds(overlap.both),
        overlap.hidden()
    );
    Ok(())
}
