//! Asks one plugin and tells the process that started this one: the smallest helper for
//! `unisono_hal::probe::check_in_child`.

use std::path::Path;
use std::process::exit;

fn main() {
    let args: Vec<_> = std::env::args_os().collect();
    let [_, path] = &args[..] else {
        eprintln!("usage: unisono-probe PLUGIN");
        exit(2);
    };
    exit(unisono_hal::probe::child_main(Path::new(path)));
}
