//! The main job: four processes, each of which finds and loads its plugins at run time.

use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use crate::run::{cargo, run};
use crate::{root, target};

pub fn demo(ranks: u32) -> Result<()> {
    // Not quietly: the first time it takes some minutes.
    run(&mut cargo(&["build", "--release", "--workspace"]))?;
    let since = Instant::now();
    let cli = target(false).join("unisono");
    let ops = "all_reduce,all_gather,reduce_scatter,broadcast";
    run(Command::new(&cli)
        .current_dir(root())
        .args(["bench", ops, "--ranks", &ranks.to_string()])
        .args(["-b", "8", "-e", "64M", "-f", "8", "--topo"]))?;
    println!("demo: {ranks} ranks, {ops}: {:.1?}", since.elapsed());
    Ok(())
}
