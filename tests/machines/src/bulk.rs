//! Bandwidth of a plain TCP socket: sends that are copied beside such that are not, and buffers of a
//! size that is asked for beside the system's own.
#![allow(
    unsafe_code,
    reason = "notices of MSG_ZEROCOPY come as control messages that no safe wrapper reads"
)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::net::sockopt;

use crate::pair::PairArgs;

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of linux/errqueue.h.
/// Bytes of one send, and of one receive.
const CHUNK: usize = 1 << 20;
/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of `linux/errqueue.h`, which the libc crate lacks.
const ORIGIN_ZEROCOPY: u8 = 5;
const CODE_COPIED: u8 = 1;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pair: PairArgs,
    /// Where the other process listens.
    #[arg(long, value_name = "ADDRESS:PORT")]
    address: SocketAddr,
    /// Bytes of a message; the buffer is used again when the system is done with it.
    #[arg(long, value_name = "N", default_value_t = 64 << 20)]
    bytes: usize,
    /// Messages that are measured.
    #[arg(long, value_name = "N", default_value_t = 16)]
    rounds: u32,
    /// Send with MSG_ZEROCOPY.
    #[arg(long)]
    zerocopy: bool,
    /// Ask for buffers of this size; 0 leaves them to the system.
    #[arg(long, value_name = "N", default_value_t = 0)]
    buffer: usize,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut pair = args.pair.meet()?;
    if pair.role == 1 {
        let listener = TcpListener::bind(args.address).context("listening")?;
        pair.socket.write_all(&[1])?;
        let (mut stream, _) = listener.accept()?;
        set_up(&stream, args)?;
        let mut buffer = vec![0; CHUNK];
        // Until the other end is closed.
        loop {
            let mut left = args.bytes;
            while left > 0 {
                let most = left.min(CHUNK);
                match stream.read(&mut buffer[..most])? {
                    0 => return Ok(ExitCode::SUCCESS),
                    got => left -= got,
                }
            }
            stream.write_all(&[1])?;
        }
    }
    pair.socket.read_exact(&mut [0]).context("the other end")?;
    let mut stream = TcpStream::connect(args.address)?;
    set_up(&stream, args)?;
    let message = vec![7; args.bytes];
    let mut sender = Sender {
        zerocopy: args.zerocopy,
        ..Sender::default()
    };
    sender.message(&mut stream, &message)?;
    sender.copied = 0;
    sender.given = 0;
    let (start, used) = (Instant::now(), cpu());
    for _ in 0..args.rounds {
        sender.message(&mut stream, &message)?;
    }
    let (took, used) = (start.elapsed(), cpu().saturating_sub(used));
    let bytes = args.bytes as f64 * f64::from(args.rounds);
    println!(
        "bulk {:.0} MiB/s, {:.0} ms of CPU a GiB at the sender, {} of {} sends copied all the same, send buffer {}",
        bytes / took.as_secs_f64() / f64::from(1 << 20),
        used.as_secs_f64() * 1e3 / (bytes / f64::from(1 << 30)),
        sender.copied,
        sender.given,
        sockopt::socket_send_buffer_size(&stream)?,
    );
    drop(stream);
    pair.part()?;
    Ok(ExitCode::SUCCESS)
}

fn set_up(stream: &TcpStream, args: &Args) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    if args.buffer > 0 {
        sockopt::set_socket_send_buffer_size(stream, args.buffer)?;
        sockopt::set_socket_recv_buffer_size(stream, args.buffer)?;
    }
    if args.zerocopy {
        let on: libc::c_int = 1;
        // SAFETY: the option's value is an int that lives through the call.
        let code = unsafe {
            libc::setsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ZEROCOPY,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as u32,
            )
        };
        if code != 0 {
            return Err(io::Error::last_os_error()).context("SO_ZEROCOPY");
        }
    }
    Ok(())
}

/// Time that this process has had of a core.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Sends messages, and what became of it.
#[derive(Default)]
struct Sender {
    zerocopy: bool,
    /// Sends that were made, those that the system is done with, and those of them that it copied.
    given: u64,
    done: u64,
    all: u64,
    copied: u64,
}

impl Sender {
    /// A message, until the peer has it and its buffer is free again.
    fn message(&mut self, stream: &mut TcpStream, mut bytes: &[u8]) -> Result<()> {
        let flags = if self.zerocopy { libc::MSG_ZEROCOPY } else { 0 };
        while !bytes.is_empty() {
            let most = bytes.len().min(CHUNK);
            // SAFETY: the bytes live until the system says that it is done with them, below.
            let sent = unsafe {
                libc::send(
                    stream.as_raw_fd(),
                    bytes.as_ptr().cast(),
                    most,
                    flags | libc::MSG_NOSIGNAL,
                )
            };
            if let Ok(sent) = usize::try_from(sent) {
                bytes = &bytes[sent..];
                self.given += 1;
                self.all += 1;
                continue;
            }
            let error = io::Error::last_os_error();
            // Too much is pinned: notices make room.
            if error.raw_os_error() != Some(libc::ENOBUFS) {
                return Err(error).context("sending");
            }
            self.notices(stream)?;
        }
        stream.read_exact(&mut [0]).context("the other end")?;
        while self.zerocopy && self.done < self.all {
            self.notices(stream)?;
        }
        Ok(())
    }

    /// Takes notices of sends that the system is done with, if there are any.
    fn notices(&mut self, stream: &TcpStream) -> Result<()> {
        let mut control = [0_u64; 16];
        // SAFETY: a message without buffers is plain zeros.
        let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
        head.msg_control = control.as_mut_ptr().cast();
        head.msg_controllen = size_of_val(&control) as _;
        let wait = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the control buffer lives through the call, and its length is given.
        if unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut head, wait) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::WouldBlock {
                std::thread::yield_now();
                return Ok(());
            }
            return Err(error).context("notices");
        }
        // SAFETY: the system has filled the buffer with whole control messages.
        unsafe {
            let mut at = libc::CMSG_FIRSTHDR(&raw const head);
            while !at.is_null() {
                let notice = libc::CMSG_DATA(at).cast::<libc::sock_extended_err>();
                let notice = notice.read_unaligned();
                if notice.ee_origin == ORIGIN_ZEROCOPY {
                    let count = u64::from(notice.ee_data - notice.ee_info) + 1;
                    self.done += count;
                    if notice.ee_code == CODE_COPIED {
                        self.copied += count;
                    }
                }
                at = libc::CMSG_NXTHDR(&raw const head, at);
            }
        }
        Ok(())
    }
}
