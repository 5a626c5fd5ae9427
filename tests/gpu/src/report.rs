//! What was measured, as a page.

use std::time::Duration;

use anyhow::Result;
use unisono_tests::threads;

use crate::collectives::{Home, OPS, least_traffic, long, short};
use crate::commands::{self, Cost};
use crate::{Part, Scale, Settings, captured, copies, first_device, overlap, processes, results};

/// Ranks on the device whose results are looked at.
const CHECKED: [u32; 3] = [2, 3, 8];
/// Ranks on the device that are measured.
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

/// Measures, all or these parts alone, and prints the page to standard output.
pub fn measure(scale: Scale, emulated: bool, only: &[Part]) -> Result<()> {
    let wants = |part| only.is_empty() || only.contains(&part);
    let costs_too = wants(Part::Commands);
    let facts = threads(1, first_device, move |world| {
        let device = world.device();
        let rate = copies::rate(device, scale.long, scale.long_repeats);
        let costs = costs_too.then(|| commands::costs(device, scale));
        (device.info().name.clone(), rate, costs)
    });
    let (name, rate, costs) = facts.into_iter().next().unwrap_or_default();
    if emulated {
        println!("\nAn **emulated** {name}: no figure below says anything of a device.\n");
    } else {
        println!("\nDevice: {name}.\n");
    }
    let settings = Settings::own().arguments();
    if !settings.is_empty() {
        println!("With {}.\n", settings.join(" "));
    }
    if wants(Part::Results) {
        let checked = Settings::own().ranks(&CHECKED);
        let right = checked.iter().map(|ranks| results::check(*ranks, scale));
        let all: u64 = right.sum();
        println!(
            "{all} calls of every collective, type and reduction among {checked:?} ranks that are threads: all \
             elements right.\n"
        );
        let late = checked
            .iter()
            .map(|ranks| results::check_late(*ranks, scale));
        let late: u64 = late.sum();
        println!("{late} long calls to which one of them comes late: all elements right.\n");
    }
    println!("Copy bandwidth, read and written: {:.1} GB/s.", rate / 1e9);
    if let Some(costs) = costs {
        print_costs(&costs);
    }
    if wants(Part::Long) {
        print_long(scale, rate);
    }
    if wants(Part::Short) || wants(Part::Processes) {
        print_short(scale, emulated, &wants)?;
    }
    if wants(Part::Overlap) {
        let overlap = overlap::measure(scale);
        println!(
            "\nA computation of {} beside an all_reduce of {} takes {}: {:.2} of the shorter is hidden.",
            microseconds(overlap.computation),
            microseconds(overlap.collective),
            microseconds(overlap.both),
            overlap.hidden()
        );
    }
    Ok(())
}

/// What commands cost.
fn print_costs(costs: &[Cost]) {
    println!("\n| one command of many | runs | is handed over in |");
    println!("|---|---|---|");
    for cost in costs {
        let [run, hand_over] = [cost.run, cost.hand_over].map(microseconds);
        println!("| {} | {run} | {hand_over} |", cost.what);
    }
}

/// Long messages, against what the device copies in a second.
fn print_long(scale: Scale, rate: f64) {
    println!(
        "\n| ranks | operation | MiB | limit | own memory | of the limit | windows | of the limit |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut short_of = [0, 0];
    let counts = Settings::own().ranks(&RANKS);
    for ranks in counts.iter().copied() {
        for (name, op) in OPS {
            let least = least_traffic(op, ranks) as f64 * scale.long as f64 / rate;
            let times = [Home::Own, Home::Windows].map(|home| long(ranks, home, op, scale));
            let parts = times.map(|time| least / time.as_secs_f64().max(1e-9));
            for (short_of, part) in short_of.iter_mut().zip(parts) {
                *short_of += u32::from(part < TARGET);
            }
            println!(
                "| {ranks} | {name} | {} | {} | {} | {:.2} | {} | {:.2} |",
                scale.long >> 20,
                microseconds(Duration::from_secs_f64(least)),
                microseconds(times[0]),
                parts[0],
                microseconds(times[1]),
                parts[1]
            );
        }
    }
    println!(
        "\nTarget: {TARGET:.2} of the limit; {} of {} are short of it from memory of the ranks' own, and {} in \
         windows of the communicator's.",
        short_of[0],
        counts.len() * OPS.len(),
        short_of[1]
    );
}

/// Short messages, between threads and between processes.
fn print_short(scale: Scale, emulated: bool, wants: &dyn Fn(Part) -> bool) -> Result<()> {
    println!("\n| ranks | all_reduce of 8 KiB between | median |");
    println!("|---|---|---|");
    let mut short_late = 0;
    let counts = Settings::own().ranks(&RANKS);
    for ranks in counts.iter().copied() {
        let print = |how: &str, time| println!("| {ranks} | {how} | {} |", microseconds(time));
        if wants(Part::Short) {
            print("threads", short(ranks, SHORT, scale));
            let captured = captured::short(ranks, SHORT, scale);
            short_late += u32::from(captured.alone > TARGET_SHORT);
            print("threads, a graph of one call", captured.alone);
            print("threads, one call of a graph of many", captured.among);
        }
        if wants(Part::Processes) {
            print("processes", processes::measure(ranks, emulated)?);
        }
    }
    println!(
        "\nTarget: {} between threads with a graph of one call, from its launch until the host knows that \
         it is done; {short_late} of {} are later. Between processes that share a device by time there is \
         none.",
        microseconds(TARGET_SHORT),
        counts.len()
    );
    Ok(())
}
