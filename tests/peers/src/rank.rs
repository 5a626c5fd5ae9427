//! One rank: reads commands, measures, answers.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_setaffinity};
use unisono::{Communicator, Init};

use crate::call::{Caller, Op};
use crate::command::{Cell, Command, parse};
use crate::memory::Buffers;
use crate::trial::{Figures, fill, measure};

/// Bytes of a buffer if nothing else is said.
const DEFAULT_BYTES: usize = 64 << 20;

/// Serves the driver with a rank of the library until it says `quit` or goes away.
pub fn serve(transport: &str) -> Result<()> {
    // As who starts ranks does: libraries see where they run as they begin.
    let me = env::var("UNISONO_RANK").context("UNISONO_RANK")?;
    bind(me.parse().context("UNISONO_RANK")?)?;
    let communicator = join(transport)?;
    let version = concat!("unisono ", env!("CARGO_PKG_VERSION"));
    let mut buffers = Buffers::of(&communicator, elements(communicator.size())?)?;
    answer_all(&communicator, &mut buffers, "unisono", version)?;
    communicator.finalize()?;
    Ok(())
}

/// Elements of each buffer, as the driver says.
pub fn elements(ranks: u32) -> Result<usize> {
    let bytes = match env::var("PEERS_MAXBYTES") {
        Ok(text) => text.parse().context("PEERS_MAXBYTES")?,
        Err(_) => DEFAULT_BYTES,
    };
    Ok(bytes / size_of::<f32>() + ranks as usize + 16)
}

/// Says hello and answers commands until `quit` or the end of the pipe.
pub fn answer_all(
    on: &impl Caller,
    buffers: &mut Buffers,
    peer: &str,
    version: &str,
) -> Result<()> {
    let control = PathBuf::from(env::var_os("PEERS_CTL").context("PEERS_CTL names no folder")?);
    let (me, ranks) = (on.rank(), on.size());
    let (send, recv) = buffers.slices();
    fill(send, me);
    recv.fill(0.0);
    on.call(Op::Barrier, &mut [], &mut [])?;
    let mut results = open(&control, "r", true)?;
    let commands = open(&control, &format!("c.{me}"), false)?;
    let hello = format!(
        "{{\"hello\":{me},\"pid\":{},\"readers\":{ranks},\"version\":\"{version}\"}}\n",
        std::process::id()
    );
    // At once: all ranks write to this pipe.
    results.write_all(hello.as_bytes())?;
    for line in BufReader::new(commands).lines() {
        let Command::Run(cell) = parse(&line?)? else {
            break;
        };
        let figures = match cell.op {
            Some(op) if op.elements(cell.bytes, ranks as usize) <= send.len() => {
                Some(measure(on, op, &cell, send, recv)?)
            }
            _ => None,
        };
        if me == 0 {
            results.write_all(answer(peer, &cell, ranks, figures.as_ref()).as_bytes())?;
        }
    }
    Ok(())
}

fn join(transport: &str) -> Result<Communicator> {
    let mut init = Init::from_env();
    match transport {
        "shm" => {}
        tcp if tcp.starts_with("tcp") => init = init.without_link("shm"),
        _ => bail!("transport `{transport}` is none of shm and tcp"),
    }
    Ok(init.join()?)
}

/// Rank r to core r modulo cores, if the driver says so.
pub fn bind(rank: u32) -> Result<()> {
    if env::var("PEERS_BIND").is_ok_and(|how| how == "core") {
        let cores = std::thread::available_parallelism()?.get();
        let mut set = CpuSet::new();
        set.set(rank as usize % cores);
        sched_setaffinity(None, &set).context("binding to a core")?;
    }
    Ok(())
}

fn open(folder: &Path, name: &str, write: bool) -> Result<File> {
    let path = folder.join(name);
    let mut options = OpenOptions::new();
    options.read(!write).write(write);
    options
        .open(&path)
        .with_context(|| format!("opening {}", path.display()))
}

/// One line of JSON, short enough to be written at once.
fn answer(peer: &str, cell: &Cell, ranks: u32, figures: Option<&Figures>) -> String {
    let (op, bytes) = (&cell.name, cell.bytes);
    let head = format!("{{\"peer\":\"{peer}\",\"op\":\"{op}\",\"ranks\":{ranks},\"bytes\":{bytes}");
    match figures {
        Some(Figures { usec, iters, wrong }) => format!(
            "{head},\"usec_median\":{usec:.3},\"usec_min\":{usec:.3},\"iters\":{iters},\"wrong\":{wrong}}}\n"
        ),
        None => format!("{head},\"error\":\"unsupported\"}}\n"),
    }
}
