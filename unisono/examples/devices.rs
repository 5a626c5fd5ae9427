//! One program that holds several devices at once, of any vendors, and moves data between them: it copies
//! from each to the next, then every device takes part in one communicator as a thread of its own.
//!
//! ```text
//! cargo run -p unisono --example devices -- cuda:0 rocm:0 ascend:0 host:0
//! ```

use std::collections::BTreeSet;
use std::error::Error;

use unisono::bootstrap::RootSpec;
use unisono::{Communicator, InitOptions, PluginRequest, ReduceOp};

const LEN: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let devices: Vec<String> = std::env::args().skip(1).collect();
    if devices.is_empty() {
        return Err("name devices, as in `cuda:0 rocm:0 host:0`".into());
    }
    run(&devices)
}

/// Copies around, and sums up.
pub fn run(devices: &[String]) -> Result<(), Box<dyn Error>> {
    let devices: Vec<(String, u32)> = devices
        .iter()
        .map(|of| parse(of))
        .collect::<Result<_, _>>()?;
    let ranks = devices.len() as u32;
    let worlds = Communicator::init_all(ranks, |rank| {
        let mut options = InitOptions::new(rank, ranks, RootSpec::Node);
        // Devices that do not reach each other meet in host memory, which is that plugin's.
        let names = devices.iter().map(|(plugin, _)| plugin.as_str());
        let names: BTreeSet<&str> = names.chain(["host"]).collect();
        options.plugins = names.into_iter().map(PluginRequest::named).collect();
        options.device = Some(devices[rank as usize].clone());
        options
    })?;

    // From device to device, each of which may be another vendor's.
    let numbers: Vec<u32> = (0..LEN as u32).collect();
    let mut last = worlds[0].buffer::<u32>(LEN)?;
    last.write(&numbers)?;
    for world in worlds.iter().skip(1) {
        let mut next = world.buffer(LEN)?;
        next.copy_from(&last)?;
        last = next;
    }
    let mut arrived = vec![0; LEN];
    last.read(&mut arrived)?;
    assert_eq!(arrived, numbers);
    println!("{LEN} numbers went through {ranks} devices");

    // All together: a rank is a thread with a device.
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (worlds.into_iter())
            .map(|world| scope.spawn(move || sum(&world)))
            .collect();
        ranks
            .into_iter()
            .try_for_each(|rank| rank.join().expect("no panic"))
    })?;
    println!("and {ranks} ranks have summed up");
    Ok(())
}

/// `cuda:0` as plugin and number.
fn parse(text: &str) -> Result<(String, u32), Box<dyn Error>> {
    let (plugin, number) = text.split_once(':').ok_or("a device is PLUGIN:NUMBER")?;
    Ok((plugin.to_owned(), number.parse()?))
}

fn sum(world: &Communicator) -> Result<(), unisono::Error> {
    let mut buffer = world.buffer::<f32>(LEN)?;
    buffer.write(&vec![world.rank() as f32; LEN])?;
    let buffer = world.start_all_reduce(buffer, ReduceOp::Sum)?.wait()?;
    let mut sum = vec![0.0; LEN];
    buffer.read(&mut sum)?;
    let expected: u32 = (0..world.size()).sum();
    assert!(sum.iter().all(|found| *found == expected as f32));
    world.barrier()
}
