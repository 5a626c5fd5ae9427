//! A cable between two network namespaces that can be cut, slow, and out of order.
//!
//! Each end is a tap device. A frame that is under way when the cable is cut still arrives, late: what
//! was sent by a rail that counts as dead must do no harm.
#![allow(
    unsafe_code,
    reason = "a tap device is made by ioctl, a namespace entered by setns"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The two ends: a namespace of /run/netns, and the device to make there.
    #[arg(long, value_name = "NAMESPACE:DEVICE", num_args = 2, required = true)]
    ends: Vec<String>,
}

/// A frame that is under way: when it arrives, its number, the end, its bytes.
type Frame = Reverse<(Instant, u64, usize, Vec<u8>)>;

/// How the cable is; said on the standard input, a line each.
#[derive(Clone, Copy, Default)]
struct State {
    /// `cut`, until `whole`.
    cut: bool,
    /// `delay MS`: each frame takes between half of it and all of it, so that they pass each other.
    delay: Duration,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut ends: Vec<File> = args
        .ends
        .iter()
        .map(|end| tap(end))
        .collect::<Result<_>>()?;
    println!("the cable is there");
    let (mut state, mut told) = (State::default(), Vec::new());
    let mut under_way: BinaryHeap<Frame> = BinaryHeap::new();
    let (mut number, mut bytes) = (0_u64, vec![0; 1 << 16]);
    loop {
        let now = Instant::now();
        while let Some(Reverse((when, ..))) = under_way.peek()
            && *when <= now
        {
            if let Some(Reverse((_, _, end, frame))) = under_way.pop() {
                // A device that is down takes nothing: the frame is lost.
                let _ = ends[end].write(&frame);
            }
        }
        let next = under_way.peek().map(|Reverse((when, ..))| *when - now);
        let input = std::io::stdin();
        let mut polled = [
            PollFd::new(&ends[0], PollFlags::IN),
            PollFd::new(&ends[1], PollFlags::IN),
            PollFd::new(&input, PollFlags::IN),
        ];
        let next = next.map(Timespec::try_from).transpose()?;
        rustix::event::poll(&mut polled, next.as_ref())?;
        if !polled[2].revents().is_empty() {
            let mut some = [0; 256];
            let got = rustix::io::read(&input, &mut some)?;
            if got == 0 {
                return Ok(ExitCode::SUCCESS);
            }
            told.extend_from_slice(&some[..got]);
            while let Some(end) = told.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = told.drain(..=end).collect();
                obey(&mut state, String::from_utf8_lossy(&line).trim())?;
            }
        }
        for (from, end) in ends.iter_mut().enumerate() {
            // A few, so that the others have their turn.
            for _ in 0..64 {
                let length = match end.read(&mut bytes) {
                    Ok(length) => length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => bail!("{}: {error}", args.ends[from]),
                };
                if state.cut {
                    continue;
                }
                number += 1;
                let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let late =
                    state.delay / 2 + state.delay.mul_f64(scattered as f64 / f64::from(1 << 25));
                let frame = bytes[..length].to_vec();
                under_way.push(Reverse((Instant::now() + late, number, 1 - from, frame)));
            }
        }
    }
}

fn obey(state: &mut State, line: &str) -> Result<()> {
    match line.split_once(' ') {
        None if line == "cut" => state.cut = true,
        None if line == "whole" => state.cut = false,
        Some(("delay", milliseconds)) => state.delay = Duration::from_millis(milliseconds.parse()?),
        _ => bail!("a cable does not know `{line}`"),
    }
    Ok(())
}

/// Makes a tap device in a namespace; it is there for as long as the file is open.
fn tap(end: &str) -> Result<File> {
    let (namespace, name) = end.split_once(':').context("write NAMESPACE:DEVICE")?;
    let path = format!("/run/netns/{namespace}");
    let there = File::open(&path).with_context(|| format!("opening {path}"))?;
    // SAFETY: it changes the network of this thread alone, the only one.
    if unsafe { libc::setns(there.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
        return Err(std::io::Error::last_os_error()).with_context(|| format!("entering {path}"));
    }
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")
        .context("opening /dev/net/tun")?;
    // SAFETY: all zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        bail!("{name} is too long for a device's name");
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request lives through the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } != 0 {
        return Err(std::io::Error::last_os_error()).with_context(|| format!("making {end}"));
    }
    Ok(device)
}
