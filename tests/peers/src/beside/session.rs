//! The visits, round by round.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Arguments, Transport};
use crate::ballast::Ballast;
use crate::cell::{Cell, cells};
use crate::group::Group;
use crate::machine::{busy_cores, cores};
use crate::peer::{self, Peer};
use crate::results::{Key, LIMIT, OURS, Results};
use crate::stop;
use crate::visit::visit;

/// Measures the whole grid, or what of it was measured until the user wanted an end.
pub fn run(arguments: &Arguments) -> Result<Results> {
    let folder = tempfile::Builder::new().prefix("peers-").tempdir()?;
    let peers = peer::find(&arguments.mpi, folder.path())?;
    if peers.is_empty() {
        eprintln!(
            "no MPI is installed: ours is measured beside the machine's limit alone \
             (Debian: apt install libopenmpi-dev openmpi-bin libmpich-dev mpich; others: --mpi)"
        );
    }
    let mut results = Results::default();
    let named = peers.iter().filter(|peer| peer.is_named());
    results.named = named.map(|peer| peer.name.clone()).collect();
    let ranks: &[u32] = match &arguments.ranks[..] {
        [] if arguments.quick => &[2],
        [] => &[2, 4, 8],
        chosen => chosen,
    };
    for &transport in &arguments.transport {
        for &ranks in ranks {
            if ranks < 2 {
                bail!("{ranks} ranks: a comparison needs two or more");
            }
            if !stop::asked() {
                part(arguments, &peers, transport, ranks, &mut results)?;
            }
        }
    }
    Ok(results)
}

/// All rounds with one number of ranks.
fn part(
    arguments: &Arguments,
    peers: &[Peer],
    transport: Transport,
    ranks: u32,
    results: &mut Results,
) -> Result<()> {
    let cells = cells(arguments, ranks);
    let _held = Ballast::take();
    let mut groups = start(arguments, peers, transport, ranks, &cells, results)?;
    for group in &groups {
        results
            .versions
            .insert(group.name.clone(), group.version.clone());
    }
    let rounds = arguments
        .rounds
        .unwrap_or(if arguments.quick { 3 } else { 5 });
    let bar = progress(
        rounds * cells.len(),
        &format!("{} {ranks} ranks", transport.name()),
    );
    for round in 0..rounds {
        results.others.push(busy_cores());
        for &cell in &cells {
            let key = Key {
                transport,
                ranks,
                cell,
            };
            visit(&mut groups, key, arguments.quick, round, results)?;
            bar.inc(1);
            if stop::asked() {
                bar.abandon();
                return Ok(());
            }
        }
    }
    bar.finish_and_clear();
    Ok(())
}

/// Starts everybody's ranks. A library whose ranks do not start is left out, and it is said why;
/// ours must start.
fn start(
    arguments: &Arguments,
    peers: &[Peer],
    transport: Transport,
    ranks: u32,
    cells: &[Cell],
    results: &mut Results,
) -> Result<Vec<Group>> {
    let largest = cells.iter().map(|cell| cell.bytes).max().unwrap_or(0);
    let flag = |on: bool| u8::from(on).to_string();
    let environment = [
        ("PEERS_MAXBYTES", largest.max(4096).to_string()),
        ("PEERS_BIND", "core".to_owned()),
        ("PEERS_DIRTY", flag(arguments.dirty)),
        ("PEERS_WINDOWS", flag(arguments.own_memory)),
        ("PEERS_OFFSET", arguments.offset.to_string()),
    ];
    let crowded = ranks as usize > cores();
    let mut groups = Vec::new();
    for peer in peers {
        let command = peer.command(ranks, transport, crowded);
        match Group::start(&peer.name, command, ranks, &environment) {
            Ok(group) => groups.push(group),
            Err(why) => {
                let place = format!("with {ranks} ranks over {}", transport.name());
                eprintln!("{} is left out {place}: {why:#}", peer.name);
                results.missing.insert((peer.name.clone(), place));
            }
        }
    }
    let server = beside("unisono-peers")?;
    let count = ranks.to_string();
    let mut command = Command::new(&server);
    command.args([&count, transport.name()]);
    let ours = Group::start(OURS, command, ranks, &environment);
    groups.push(ours.context("our own ranks do not start")?);
    if transport == Transport::Shm {
        let mut command = Command::new(&server);
        command.args([&count, "limit"]);
        let limit = Group::start(LIMIT, command, ranks, &environment);
        groups.push(limit.context("the limit's threads do not start")?);
    }
    Ok(groups)
}

/// A program that was built with this one.
fn beside(name: &str) -> Result<PathBuf> {
    let here = env::current_exe().context("finding this program's file")?;
    let file = here.with_file_name(name);
    if !Path::is_file(&file) {
        bail!(
            "{} is not built: run `cargo xtask peers`, which builds it",
            file.display()
        );
    }
    Ok(file)
}

fn progress(steps: usize, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} {elapsed} ({eta} left)");
    let bar = ProgressBar::new(steps as u64).with_message(what.to_owned());
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
