//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::cell;

/// Compares unisono with other collective libraries on this machine.
#[derive(Parser)]
#[command(name = "cargo xtask peers")]
pub struct Arguments {
    /// A smaller grid and three rounds: about a minute.
    #[arg(long)]
    pub quick: bool,
    /// Rewrite the send buffers before each call, as a program that computes its input does; the
    /// time that takes is taken off. Without it the cores keep clean copies of each other's input.
    #[arg(long)]
    pub dirty: bool,
    /// Buffers that the library allocates (Communicator::alloc, MPI_Alloc_mem).
    #[arg(long)]
    pub own_memory: bool,
    /// Private buffers begin so many bytes behind a page, a multiple of four below 4096: 16 is where malloc puts large
    /// ones.
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = parse_offset, conflicts_with = "own_memory")]
    pub offset: usize,
    /// How many ranks, such as 2,4,8.
    #[arg(long, value_delimiter = ',')]
    pub ranks: Vec<u32>,
    /// Bytes of the larger buffer, such as 4,16K,64M.
    #[arg(long, value_delimiter = ',', value_parser = cell::parse_bytes)]
    pub sizes: Vec<usize>,
    /// Operations, such as all_reduce,broadcast.
    #[arg(long, value_delimiter = ',', value_parser = cell::parse_op)]
    pub ops: Vec<&'static str>,
    /// What the ranks talk over.
    #[arg(long, value_delimiter = ',', default_value = "shm")]
    pub transport: Vec<Transport>,
    /// Rounds over the whole grid.
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Another MPI: a name for it, and the folder that has bin/mpicc and bin/mpirun.
    #[arg(long, value_name = "NAME=PREFIX", value_parser = parse_mpi)]
    pub mpi: Vec<(String, PathBuf)>,
    /// Write the page and its drawings to this folder: host.md, host-tcp.md, host-own-memory.md.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = "vendor-docs/results")]
    pub page: Option<PathBuf>,
    /// A line about the commit and the machine, for the page.
    #[arg(long, default_value = "", hide = true)]
    pub about: String,
}

/// What the ranks talk over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Transport {
    /// As each library chooses on one node: shared memory, or each other's memory.
    Shm,
    /// Sockets alone, over loopback.
    Tcp,
}

impl Transport {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Tcp => "tcp",
        }
    }
}

fn parse_offset(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if bytes < 4096 && bytes % 4 == 0 => Ok(bytes),
        _ => Err("give a multiple of 4 below 4096".to_owned()),
    }
}

fn parse_mpi(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, prefix)) if !name.is_empty() && !prefix.is_empty() => {
            Ok((name.to_owned(), prefix.into()))
        }
        _ => Err("give a name and a folder, as NAME=/opt/mpi".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_units_are_read() {
        let line = "x --sizes 4,16K,64M --ops all_reduce,barrier --ranks 2,3 --mpi a=/opt/a";
        let read = Arguments::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(read.sizes, [4, 16 << 10, 64 << 20]);
        assert_eq!(read.ops, ["all_reduce", "barrier"]);
        assert_eq!(read.ranks, [2, 3]);
        assert_eq!(read.transport, [Transport::Shm]);
        assert_eq!(read.mpi, [("a".to_owned(), "/opt/a".into())]);
        for bad in [
            "--sizes 4Q",
            "--ops all_dance",
            "--mpi a",
            "--ranks x",
            "--offset 6",
            "--offset 4096",
            "--offset 16 --own-memory",
        ] {
            let words = std::iter::once("x").chain(bad.split(' '));
            assert!(Arguments::try_parse_from(words).is_err(), "{bad}");
        }
    }
}
