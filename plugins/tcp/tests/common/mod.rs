//! Two ends of a link in one process: memory, batches, and a channel whose proofs are a checksum.
#![allow(unsafe_code, reason = "the contract names memory by address")]
#![allow(dead_code, reason = "each test file uses a part")]

pub mod network;
pub mod raw;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::BorrowedFd;
use unisono_plugin::abi::{
    self, CMD_WORDS, Command, CommandPut, CommandWait, Counter, FlagLine, NO_WINDOW, ParamValue,
    command_kind, param_type,
};
use unisono_plugin::{
    Batch, Channel, Context, DeviceId, Error, HostRange, Instance, Kinds, Link, LinkRequest,
    NoEvent, Params, Plugin, QueuePhase, QueueState, Result, Sleep, SleepWays,
};
use unisono_plugin_tcp::{TcpInstance, TcpLink, TcpPlugin};

/// Every wait of a test ends by then.
pub const LIMIT: Duration = Duration::from_secs(20);
pub const DATA: u32 = 7;
pub const FLAGS: u32 = 3;

/// Zeroed memory, aligned for flag lines.
pub struct Memory {
    at: *mut u8,
    layout: Layout,
}

// SAFETY: it is only an allocation; the tests say who touches what when.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(64), 64).unwrap();
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc_zeroed(layout) };
        assert!(!at.is_null());
        Self { at, layout }
    }

    pub fn address(&self) -> u64 {
        self.at as u64
    }

    pub fn range(&self) -> HostRange {
        HostRange {
            address: self.address(),
            bytes: self.layout.size() as u64,
        }
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.layout.size());
        // SAFETY: within the allocation.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(offset), bytes.len());
        }
    }

    pub fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        assert!(offset + bytes <= self.layout.size());
        let mut out = vec![0; bytes];
        // SAFETY: within the allocation.
        unsafe { std::ptr::copy_nonoverlapping(self.at.add(offset), out.as_mut_ptr(), bytes) };
        out
    }

    /// The counter of the flag line at a place.
    pub fn flag(&self, index: usize) -> &AtomicU64 {
        assert!((index + 1) * 64 <= self.layout.size());
        // SAFETY: within the allocation, aligned, and only used as an atomic.
        unsafe {
            let line = self.at.cast::<FlagLine>().add(index);
            AtomicU64::from_ptr(&raw mut (*line).counter)
        }
    }

    pub fn words(&self, index: usize) -> [u64; 3] {
        let bytes = self.read(index * 64 + 8, 24);
        [0, 8, 16].map(|i| u64::from_le_bytes(bytes[i..i + 8].try_into().unwrap()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.at, self.layout) };
    }
}

/// A rank of a job, for a channel's context.
pub struct Identity {
    pub secret: u64,
    pub rank: u32,
}

fn checksum(secret: u64, rank: u32, transcript: &[u8]) -> [u8; 64] {
    let mut out = [0; 64];
    for (lane, chunk) in out.chunks_exact_mut(8).enumerate() {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ secret ^ u64::from(rank) << 32 ^ lane as u64;
        for byte in transcript {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        chunk.copy_from_slice(&hash.to_le_bytes());
    }
    out
}

unsafe extern "C" fn prove(
    context: *mut c_void,
    transcript: *const c_void,
    len: u64,
    signature: *mut u8,
) -> abi::Status {
    // SAFETY: the context is an `Identity`; the rest is the SDK's.
    unsafe {
        let identity = &*context.cast::<Identity>();
        let transcript = std::slice::from_raw_parts(transcript.cast(), len as usize);
        let proof = checksum(identity.secret, identity.rank, transcript);
        std::ptr::copy_nonoverlapping(proof.as_ptr(), signature, 64);
    }
    abi::status::OK
}

unsafe extern "C" fn verify(
    context: *mut c_void,
    rank: u32,
    transcript: *const c_void,
    len: u64,
    signature: *const u8,
) -> abi::Status {
    // SAFETY: as above.
    let (transcript, signature, identity) = unsafe {
        (
            std::slice::from_raw_parts(transcript.cast::<u8>(), len as usize),
            std::slice::from_raw_parts(signature, 64),
            &*context.cast::<Identity>(),
        )
    };
    if checksum(identity.secret, rank, transcript) == signature {
        abi::status::OK
    } else {
        abi::status::AUTH
    }
}

pub fn channel(identity: &Identity, size: u32, id: u64) -> Channel {
    let mut raw = abi::Channel::zeroed();
    raw.struct_size = size_of::<abi::Channel>() as u32;
    raw.rank = identity.rank;
    raw.size = size;
    raw.id = id;
    raw.context = (&raw const *identity).cast_mut().cast();
    raw.prove = Some(prove);
    raw.verify = Some(verify);
    // SAFETY: the tests keep the identity longer than the links.
    unsafe { Channel::from_raw(raw) }
}

/// An instance with parameters; those not named have the table's defaults.
pub fn instance(set: &[(&str, i64)], interfaces: &str) -> Result<TcpInstance> {
    let defaults: &[(&'static str, u32, i64)] = &[
        ("port", param_type::INT, 0),
        ("ports", param_type::INT, 64),
        ("connections", param_type::INT, 2),
        ("send_buffer", param_type::BYTES, 0),
        ("receive_buffer", param_type::BYTES, 0),
        ("stall_timeout", param_type::DURATION_NS, 120_000_000_000),
        ("keepalive", param_type::DURATION_NS, 15_000_000_000),
        ("connect_timeout", param_type::DURATION_NS, 60_000_000_000),
        ("rail_timeout", param_type::DURATION_NS, 2_000_000_000),
        ("recovery", param_type::DURATION_NS, 10_000_000_000),
        ("bandwidth", param_type::BYTES, 0),
        ("latency", param_type::DURATION_NS, 25_000),
        ("encrypt", param_type::BOOL, 0),
        ("recover_local", param_type::BOOL, 0),
    ];
    let text = |text: &str| abi::Str {
        ptr: text.as_ptr().cast(),
        len: text.len() as u64,
    };
    let mut values: Vec<ParamValue> = [("interfaces", interfaces), ("congestion", "auto")]
        .iter()
        .map(|(name, value)| ParamValue {
            name: text(name),
            text: text(value),
            number: 0,
            value_type: param_type::STRING,
            reserved: 0,
        })
        .collect();
    for (name, value_type, default) in defaults {
        let number = set.iter().find(|(n, _)| n == name);
        values.push(ParamValue {
            name: text(name),
            text: text(""),
            number: number.map_or(*default, |(_, number)| *number),
            value_type: *value_type,
            reserved: 0,
        });
    }
    for (name, _) in set {
        assert!(
            defaults.iter().any(|(n, ..)| n == name),
            "no parameter {name}"
        );
    }
    TcpPlugin::create(Context {
        // SAFETY: the strings live through the call.
        params: unsafe { Params::from_raw(&values) },
        host: unisono_plugin::Host::silent(),
    })
}

/// Commands one after another.
#[derive(Default, Clone)]
pub struct Commands {
    words: Vec<u64>,
    count: u32,
}

impl Commands {
    fn push<T: Copy>(mut self, command: T) -> Self {
        let words = size_of::<T>() / 8;
        let at = self.words.len();
        self.words.resize(at + words, 0);
        // SAFETY: there is room for it, and it is plain integers.
        unsafe { self.words.as_mut_ptr().add(at).cast::<T>().write(command) };
        self.count += 1;
        self
    }

    pub fn put(self, put: CommandPut) -> Self {
        self.push(put)
    }

    pub fn wait(self, flag: u64, counter: &Counter, words: Option<[u64; 3]>) -> Self {
        self.push(CommandWait {
            head: Command {
                kind: command_kind::WAIT,
                size: size_of::<CommandWait>() as u16,
                flags: words.map_or(0, |_| CMD_WORDS),
            },
            flag,
            counter: &raw const *counter as u64,
            words: words.unwrap_or_default(),
        })
    }

    pub fn submit(&self, link: &mut TcpLink) -> Result<u32> {
        // SAFETY: there are no events in it.
        let batch: Batch<'_, NoEvent> =
            unsafe { Batch::parse(&self.words, self.count, Kinds::LINK) }?;
        link.submit(&batch)
    }

    pub fn count(&self) -> u32 {
        self.count
    }
}

/// A put of bytes at an address to a place in the peer's data, raising a flag.
pub fn put(src: u64, bytes: usize, offset: usize, flag: Option<usize>) -> CommandPut {
    let mut put = CommandPut::zeroed();
    put.head = Command {
        kind: command_kind::PUT,
        size: size_of::<CommandPut>() as u16,
        flags: 0,
    };
    put.src = src;
    put.bytes = bytes as u64;
    put.repeat = 1;
    put.dst_window = DATA;
    put.dst_offset = offset as u64;
    put.signal_window = flag.map_or(NO_WINDOW, |_| FLAGS);
    put.signal_offset = flag.unwrap_or(0) as u64 * 64;
    put
}

/// One end: its instance, link and windows.
pub struct End {
    pub link: TcpLink,
    pub instance: Arc<TcpInstance>,
    peer_address: Vec<u8>,
    pub data: Memory,
    pub flags: Memory,
    /// Of the data and the flags.
    pub tokens: [Vec<u8>; 2],
    identity: Box<Identity>,
}

impl End {
    pub fn new(
        instance: impl Into<Arc<TcpInstance>>,
        identity: Identity,
        peer: (u32, &[u8]),
        bytes: usize,
    ) -> Self {
        let instance = instance.into();
        let identity = Box::new(identity);
        let mut link = instance
            .create_link(LinkRequest {
                peer: peer.0,
                device: DeviceId::default(),
                channel: channel(&identity, 2, 99),
                peer_address: peer.1,
            })
            .unwrap();
        let (data, flags) = (Memory::new(bytes), Memory::new(64 * 64));
        let tokens = [
            link.export_window(DATA, data.range()).unwrap(),
            link.export_window(FLAGS, flags.range()).unwrap(),
        ];
        Self {
            link,
            instance,
            peer_address: peer.1.to_vec(),
            data,
            flags,
            tokens,
            identity,
        }
    }

    /// Replaces the link by a new one to the same peer; the flags are down again.
    pub fn renew(&mut self) {
        let identity = Identity { ..*self.identity };
        let peer = self.peer_address.clone();
        let (there, bytes) = (1 - identity.rank, self.data.range().bytes as usize);
        *self = Self::new(Arc::clone(&self.instance), identity, (there, &peer), bytes);
    }

    pub fn raised(&self, flag: usize) -> u64 {
        self.flags.flag(flag).load(Ordering::Acquire)
    }

    /// Takes what the other end exports; both use the same ids.
    pub fn import(&mut self, [data, flags]: &[Vec<u8>; 2]) {
        self.link.import_window(DATA, data).unwrap();
        self.link.import_window(FLAGS, flags).unwrap();
    }

    /// Submits all of it, polling where the link is full.
    pub fn submit(&mut self, commands: &Commands) {
        assert_eq!(commands.submit(&mut self.link).unwrap(), commands.count());
    }
}

/// Two ends that have not connected yet.
pub fn strangers(set: &[(&str, i64)], bytes: usize, secrets: [u64; 2]) -> [End; 2] {
    strangers_of([set, set], bytes, secrets)
}

/// The same, each with parameters of its own.
pub fn strangers_of(sets: [&[(&str, i64)]; 2], bytes: usize, secrets: [u64; 2]) -> [End; 2] {
    let instances = sets.map(|set| instance(set, "").unwrap());
    let addresses = [0, 1].map(|i: usize| instances[i].address().unwrap());
    let mut rank = 0;
    let mut ends = instances.map(|instance| {
        let secret = secrets[rank as usize];
        let peer = 1 - rank;
        let end = End::new(
            instance,
            Identity { secret, rank },
            (peer, &addresses[peer as usize]),
            bytes,
        );
        rank += 1;
        end
    });
    let tokens = [ends[1].tokens.clone(), ends[0].tokens.clone()];
    for (end, tokens) in ends.iter_mut().zip(&tokens) {
        end.import(tokens);
    }
    ends
}

/// Two ends that are connected.
pub fn pair(set: &[(&str, i64)], bytes: usize) -> [End; 2] {
    let mut ends = strangers(set, bytes, [5, 5]);
    drive(&mut ends, |ends| {
        ends.iter()
            .all(|e| phase(&e.link) != QueuePhase::Connecting)
    });
    ends
}

pub fn phase(link: &TcpLink) -> QueuePhase {
    use unisono_plugin::QueueControl;
    link.control().query().phase
}

/// Polls both ends until something holds.
pub fn drive(ends: &mut [End; 2], mut until: impl FnMut(&mut [End; 2]) -> bool) {
    let start = Instant::now();
    while !until(ends) {
        assert!(start.elapsed() < LIMIT, "nothing happened in {LIMIT:?}");
        for end in ends.iter_mut() {
            end.link.poll(1 << 20).unwrap();
        }
    }
}

/// Polls one end until it fails.
pub fn failure(end: &mut End) -> Error {
    let start = Instant::now();
    loop {
        match end.link.poll(1 << 20) {
            Err(error) => return error,
            Ok(QueueState { .. }) => assert!(start.elapsed() < LIMIT, "no failure in {LIMIT:?}"),
        }
    }
}

/// Arms and sleeps; whether it was woken before `limit`.
pub fn doze(link: &mut TcpLink, limit: Duration) -> bool {
    let woken = match link
        .arm(SleepWays::from_bits(abi::sleep::FD), None)
        .unwrap()
    {
        Sleep::Ready => true,
        Sleep::Fd { fd, events } => {
            // SAFETY: the descriptor is the link's, which lives.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            let flags = PollFlags::from_bits_truncate(events as u16);
            let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
            let limit = Timespec::try_from(limit).unwrap();
            rustix::event::poll(&mut fds, Some(&limit)).unwrap() > 0
        }
        other => panic!("{other:?} was not allowed"),
    };
    link.disarm();
    woken
}

/// Numbers that look random and are the same for a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8))
            .flat_map(|_| self.next().to_le_bytes())
            .take(count)
            .collect()
    }
}
