//! unisono beside other libraries, on whatever MPI is installed, so that anyone can repeat the
//! figures: `cargo xtask peers`.
//!
//! Every library's ranks stay alive and blocked between commands ([`group`]). Each cell (operation,
//! bytes, ranks) is measured at one library, at the next, at ours and at the machine's limit, one
//! right after the other and round after round ([`session`]): a machine whose speed drifts moves
//! all of them alike; and if the machine's host moves its cores apart or together meanwhile, the cell's round begins
//! anew ([`visit`]). What is compared are medians over the rounds; the ratios come first, since
//! they hold on other machines where times do not.

mod arguments;
mod ballast;
mod cell;
mod cores;
mod group;
mod machine;
mod page;
mod peer;
mod plot;
mod results;
mod session;
mod stop;
mod table;
mod visit;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use arguments::Arguments;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    stop::on_interrupt()?;
    let results = session::run(&arguments)?;
    print!("{}", table::for_terminal(&results));
    if stop::asked() {
        eprintln!("interrupted: the medians are of the rounds until then, and no page is written");
        return Ok(ExitCode::from(130));
    }
    if let Some(folder) = &arguments.page {
        let page = page::write(folder, &arguments, &results)?;
        println!("wrote {}", page.display());
    }
    Ok(if results.wrong().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
