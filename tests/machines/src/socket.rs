//! A plain TCP socket: what a link over TCP is compared with.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::pair::PairArgs;
use crate::speed;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pair: PairArgs,
    /// Where the other process listens.
    #[arg(long, value_name = "ADDRESS:PORT")]
    address: SocketAddr,
    /// Round trips.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rounds: usize,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut pair = args.pair.meet()?;
    let mut word = [0; 8];
    if pair.role == 1 {
        let listener = TcpListener::bind(args.address).context("listening")?;
        pair.socket.write_all(&[1])?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        // Until the other end is closed.
        while stream.read_exact(&mut word).is_ok() {
            stream.write_all(&word)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    pair.socket.read_exact(&mut [0]).context("the other end")?;
    let mut stream = TcpStream::connect(args.address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut times = Vec::with_capacity(args.rounds);
    for _ in 0..args.rounds.max(1) {
        let start = Instant::now();
        stream.write_all(&word)?;
        stream.read_exact(&mut word)?;
        times.push(start.elapsed());
    }
    speed::tell_latency(times);
    drop(stream);
    pair.part()?;
    Ok(ExitCode::SUCCESS)
}
