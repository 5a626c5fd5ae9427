//! The devices' kernels: compiled anew, or compared with what is committed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::root;
use crate::run::run;

/// What is committed of one source.
const MADE: [&str; 4] = [
    "kernels.ptx",
    "gfx90a.hsaco",
    "gfx942.hsaco",
    "gfx1100.hsaco",
];
/// Generations that the vendor's assembler is asked for.
const GENERATIONS: [&str; 4] = ["sm_70", "sm_80", "sm_90", "sm_100"];

/// Writes plugins/kernels/made anew; with `check`, says whether it would change. Where the vendor's
/// assembler is there (`PTXAS`, or on the path), it must take the PTX for every generation.
pub fn kernels(check: bool) -> Result<()> {
    let crate_of = root().join("plugins/kernels");
    let made = crate_of.join("made");
    let temporary = root().join("target/kernels");
    let folder = if check { &temporary } else { &made };
    run(Command::new(crate_of.join("build.sh")).arg(folder)).context(
        "clang 19 and lld 19 are needed (packages clang-19, lld-19; CLANG names another)",
    )?;
    if check {
        let differ: Vec<_> = MADE
            .into_iter()
            .filter(|file| !same(&temporary.join(file), &made.join(file)))
            .collect();
        if !differ.is_empty() {
            bail!(
                "plugins/kernels/made is not what the sources give: {}; run cargo xtask kernels and \
                 commit what it writes",
                differ.join(", ")
            );
        }
        println!("plugins/kernels/made is what the sources give");
    }
    assemble(&folder.join("kernels.ptx"), &temporary)
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b)
}

fn assemble(ptx: &Path, folder: &Path) -> Result<()> {
    let ptxas = std::env::var("PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    if Command::new(&ptxas).arg("--version").output().is_err() {
        println!(
            "not assembled: {ptxas} is not there (the package nvidia-cuda-nvcc-cu12 has it; PTXAS names it)"
        );
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    for generation in GENERATIONS {
        let out = folder.join(generation).with_extension("cubin");
        run(Command::new(&ptxas)
            .arg(format!("-arch={generation}"))
            .arg(ptx)
            .arg("-o")
            .arg(&out))?;
        println!("{generation}: {} bytes", fs::metadata(&out)?.len());
    }
    Ok(())
}
