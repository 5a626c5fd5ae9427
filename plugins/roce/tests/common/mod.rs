//! Two ends of a link in one process, over the stand-in for libibverbs: memory, batches, and a control
//! channel whose proofs are a checksum.
#![allow(unsafe_code, reason = "the contract names memory by address")]
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

pub mod devices;
pub mod traffic;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use unisono_plugin::abi::{
    self, CMD_WORDS, Command, CommandPut, CommandWait, Counter, FlagLine, NO_WINDOW, ParamValue,
    command_kind,
};
use unisono_plugin::{
    Batch, Channel, Context, DeviceId, Error, HostRange, Instance, Kinds, Link, LinkRequest,
    NoEvent, Params, Plugin, QueueControl, QueuePhase, Result,
};
use unisono_plugin_roce::{PARAMS, RoceInstance, RoceLink, RocePlugin};

pub use devices::Devices;
pub use traffic::traffic;

/// Every wait of a test ends by then.
pub const LIMIT: Duration = Duration::from_secs(30);
pub const DATA: u32 = 7;
pub const FLAGS: u32 = 3;

/// Zeroed memory, aligned for flag lines and pages.
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
        let layout = Layout::from_size_align(bytes.max(64), 4096).unwrap();
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

/// Messages on their way, by sender and tag.
pub type Mail = HashMap<(u32, u64), VecDeque<Vec<u8>>>;

/// A rank of a job, for a channel's context.
pub struct Identity {
    pub secret: u64,
    pub rank: u32,
    /// Shared by the two ranks.
    pub mail: Arc<Mutex<Mail>>,
    /// A kind of the link's messages that does not come, nor what is behind it; 0: all come.
    held: AtomicU8,
    /// It takes any proof: what comes may be what a peer says that has the secret and lies.
    trusting: AtomicBool,
}

/// The acceptor says that it has settled.
pub const SETTLED: u8 = 5;
/// Where a message of the link's says its kind.
const KIND: usize = 5;

impl Identity {
    /// Keeps messages of a kind from this rank, until [`release`](Self::release).
    pub fn hold(&self, kind: u8) {
        self.held.store(kind, Ordering::Relaxed);
    }

    pub fn release(&self) {
        self.hold(0);
    }

    /// Takes any proof from now on.
    pub fn trust(&self) {
        self.trusting.store(true, Ordering::Relaxed);
    }
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
    let trusting = identity.trusting.load(Ordering::Relaxed);
    if trusting || checksum(identity.secret, rank, transcript) == signature {
        abi::status::OK
    } else {
        abi::status::AUTH
    }
}

unsafe extern "C" fn send(
    context: *mut c_void,
    _to: u32,
    tag: u64,
    data: *const c_void,
    len: u64,
) -> abi::Status {
    // SAFETY: as above.
    let (identity, data) = unsafe {
        (
            &*context.cast::<Identity>(),
            std::slice::from_raw_parts(data.cast::<u8>(), len as usize),
        )
    };
    let mut mail = identity.mail.lock().unwrap();
    let box_of = mail.entry((identity.rank, tag)).or_default();
    box_of.push_back(data.to_vec());
    abi::status::OK
}

unsafe extern "C" fn recv(
    context: *mut c_void,
    from: u32,
    tag: u64,
    data: *mut c_void,
    cap: u64,
    len: *mut u64,
) -> abi::Status {
    // SAFETY: as above.
    let identity = unsafe { &*context.cast::<Identity>() };
    let mut mail = identity.mail.lock().unwrap();
    let held = identity.held.load(Ordering::Relaxed);
    let comes = |message: &Vec<u8>| held == 0 || message.get(KIND) != Some(&held);
    let message = mail
        .get_mut(&(from, tag))
        .filter(|box_of| box_of.front().is_some_and(comes))
        .and_then(VecDeque::pop_front);
    let Some(message) = message else {
        return abi::status::AGAIN;
    };
    assert!(message.len() as u64 <= cap);
    // SAFETY: it fits.
    unsafe {
        std::ptr::copy_nonoverlapping(message.as_ptr(), data.cast(), message.len());
        *len = message.len() as u64;
    }
    abi::status::OK
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
    raw.send = Some(send);
    raw.recv = Some(recv);
    // SAFETY: the tests keep the identity longer than the links.
    unsafe { Channel::from_raw(raw) }
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Number(i64),
    Text(&'static str),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

/// Times, in nanoseconds.
pub const fn ms(count: i64) -> i64 {
    count * 1_000_000
}

/// An instance with parameters; those not named have what suits tests.
pub fn instance(set: &[(&str, Value)]) -> Result<RoceInstance> {
    let library = devices::library();
    let defaults: &[(&'static str, Value)] = &[
        ("devices", "".into()),
        ("gid_index", (-1).into()),
        ("address_family", "auto".into()),
        ("mtu", 0.into()),
        ("service_level", 0.into()),
        ("traffic_class", 0.into()),
        ("hop_limit", 64.into()),
        ("queue_pairs", 2.into()),
        ("ack_timeout", ms(8).into()),
        ("retries", 6.into()),
        ("keepalive", ms(500).into()),
        ("recovery", ms(5000).into()),
        ("connect_timeout", ms(20_000).into()),
        ("credits", 32.into()),
        ("queue_depth", 128.into()),
        ("inline", 220.into()),
        ("copy_limit", (64 << 10).into()),
        ("staging", (256 << 10).into()),
        ("message", (1 << 20).into()),
        ("stripe", 0.into()),
        ("dmabuf", 1.into()),
        ("bandwidth", 0.into()),
        ("latency", 3000.into()),
    ];
    let text = |text: &str| abi::Str {
        ptr: text.as_ptr().cast(),
        len: text.len() as u64,
    };
    let given = set.iter().find(|(name, _)| *name == "library");
    let library = match given {
        Some((_, Value::Text(path))) => (*path).to_owned(),
        _ => library,
    };
    let mut values = vec![value(text("library"), text(&library), 0)];
    for (name, default) in defaults {
        let given = set.iter().find(|(n, _)| n == name);
        values.push(match given.map_or(*default, |(_, value)| *value) {
            Value::Number(number) => value(text(name), text(""), number),
            Value::Text(string) => value(text(name), text(string), 0),
        });
    }
    // Types are the table's own: `Params` asks for them.
    for entry in &mut values {
        entry.value_type = type_of(entry);
    }
    assert_eq!(values.len(), PARAMS.len(), "a parameter is missing here");
    for (name, _) in set {
        let known = defaults.iter().any(|(n, _)| n == name) || *name == "library";
        assert!(known, "no parameter {name}");
    }
    RocePlugin::create(Context {
        // SAFETY: the strings live through the call.
        params: unsafe { Params::from_raw(&values) },
        host: unisono_plugin::Host::silent(),
    })
}

fn value(name: abi::Str, text: abi::Str, number: i64) -> ParamValue {
    ParamValue {
        name,
        text,
        number,
        value_type: 0,
        reserved: 0,
    }
}

fn type_of(value: &ParamValue) -> u32 {
    // SAFETY: the strings are literals.
    let name =
        unsafe { std::slice::from_raw_parts(value.name.ptr.cast::<u8>(), value.name.len as usize) };
    let table = unisono_plugin_roce::query(u32::from(abi::ABI_MAJOR), u32::from(abi::ABI_MINOR));
    // SAFETY: static tables.
    unsafe {
        let params = std::slice::from_raw_parts((*table).params, (*table).param_count as usize);
        params
            .iter()
            .find(|p| {
                std::slice::from_raw_parts(p.name.ptr.cast::<u8>(), p.name.len as usize) == name
            })
            .expect("a parameter of the table")
            .value_type
    }
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

    pub fn submit(&self, link: &mut RoceLink) -> Result<u32> {
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

/// The same put with a local signal.
pub fn with_done(
    mut put: CommandPut,
    flags: &Memory,
    flag: usize,
    counter: &Counter,
) -> CommandPut {
    put.done_flag = flags.address() + flag as u64 * 64;
    put.done_counter = &raw const *counter as u64;
    put
}

/// One end: its instance, link and windows.
pub struct End {
    pub link: RoceLink,
    pub data: Memory,
    pub flags: Memory,
    /// Of the data and the flags.
    pub tokens: [Vec<u8>; 2],
    pub instance: Arc<RoceInstance>,
    pub identity: Box<Identity>,
}

impl End {
    pub fn new(
        instance: impl Into<Arc<RoceInstance>>,
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
        let (data, flags) = (Memory::new(bytes), Memory::new(1024 * 64));
        let tokens = [
            link.export_window(DATA, data.range()).unwrap(),
            link.export_window(FLAGS, flags.range()).unwrap(),
        ];
        Self {
            link,
            instance,
            data,
            flags,
            tokens,
            identity,
        }
    }

    pub fn raised(&self, flag: usize) -> u64 {
        self.flags.flag(flag).load(Ordering::Acquire)
    }

    /// Takes what the other end exports; both use the same ids.
    pub fn import(&mut self, [data, flags]: &[Vec<u8>; 2]) {
        self.link.import_window(DATA, data).unwrap();
        self.link.import_window(FLAGS, flags).unwrap();
    }

    /// Submits all of it at once.
    pub fn submit(&mut self, commands: &Commands) {
        assert_eq!(commands.submit(&mut self.link).unwrap(), commands.count());
    }

    pub fn phase(&self) -> QueuePhase {
        self.link.control().query().phase
    }
}

/// Two ends that have not connected yet; each with its own parameters.
pub fn strangers(sets: [&[(&str, Value)]; 2], bytes: usize, secrets: [u64; 2]) -> [End; 2] {
    let instances = sets.map(|set| instance(set).unwrap());
    let addresses = [0, 1].map(|i: usize| instances[i].address().unwrap());
    let mail = Arc::new(Mutex::new(Mail::new()));
    let mut rank = 0;
    let mut ends = instances.map(|instance| {
        let identity = Identity {
            secret: secrets[rank as usize],
            rank,
            mail: Arc::clone(&mail),
            held: AtomicU8::new(0),
            trusting: AtomicBool::new(false),
        };
        let peer = 1 - rank;
        let end = End::new(instance, identity, (peer, &addresses[peer as usize]), bytes);
        rank += 1;
        end
    });
    let tokens = [ends[1].tokens.clone(), ends[0].tokens.clone()];
    for (end, tokens) in ends.iter_mut().zip(&tokens) {
        end.import(tokens);
    }
    ends
}

/// Two ends that are connected, each with its own parameters.
pub fn pair_of(sets: [&[(&str, Value)]; 2], bytes: usize) -> [End; 2] {
    let mut ends = strangers(sets, bytes, [5, 5]);
    drive(&mut ends, |ends| {
        ends.iter().all(|e| e.phase() != QueuePhase::Connecting)
    });
    ends
}

/// Two ends that are connected.
pub fn pair(set: &[(&str, Value)], bytes: usize) -> [End; 2] {
    pair_of([set, set], bytes)
}

/// Polls both ends until something holds.
pub fn drive(ends: &mut [End; 2], mut until: impl FnMut(&mut [End; 2]) -> bool) {
    let start = Instant::now();
    while !until(ends) {
        assert!(start.elapsed() < LIMIT, "nothing happened in {LIMIT:?}");
        for end in ends.iter_mut() {
            if let Err(error) = end.link.poll(1 << 20) {
                panic!("a link failed: {error}");
            }
        }
        std::thread::yield_now();
    }
}

/// Polls one end until it fails.
pub fn failure(end: &mut End) -> Error {
    let start = Instant::now();
    loop {
        match end.link.poll(1 << 20) {
            Err(error) => return error,
            Ok(_) => assert!(start.elapsed() < LIMIT, "no failure in {LIMIT:?}"),
        }
        std::thread::yield_now();
    }
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

    /// A seed that varies, printed.
    pub fn seeded() -> Self {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let seed = std::env::var("UNISONO_SEED")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(now.as_nanos() as u64);
        println!("UNISONO_SEED={seed}");
        Self(seed)
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
