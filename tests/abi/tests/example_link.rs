//! The example plugin's posted link: two ends, in two instances of one process.
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

mod loaded;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loaded::{Lines, channel, error, instance, load, message, no_error, ok, until};
use unisono_abi::{self as abi, queue_state, sleep, status};
use unisono_plugin::Pack;

const PARAMS: [i64; 2] = [20_000, 64];
static RIGHT: u8 = 7;
static WRONG: u8 = 8;

/// One end of a link, in an instance of its own.
struct End {
    plugin: &'static abi::Plugin,
    instance: abi::Instance,
    link: abi::Link,
    /// The number of its channel.
    channel: u64,
}

impl End {
    fn table(&self) -> &'static abi::LinkTable {
        // SAFETY: static data.
        unsafe { &*self.plugin.link }
    }

    fn poll(&self, budget: u64) -> (i32, abi::QueueState, String) {
        let (mut state, mut e) = (abi::QueueState::zeroed(), error());
        // SAFETY: the link is alive.
        let status =
            unsafe { self.table().poll.unwrap()(self.link, budget, &raw mut state, &raw mut e) };
        (status, state, message(&e))
    }

    fn good_poll(&self) -> abi::QueueState {
        let (status, state, words) = self.poll(1 << 20);
        assert_eq!(status, status::OK, "{words}");
        state
    }

    fn submit(&self, pack: &Pack) -> Result<u32, i32> {
        let (mut accepted, at) = (0, pack.words().as_ptr().cast());
        let bytes = pack.words().len() as u64 * 8;
        // SAFETY: the link is alive.
        let status = unsafe {
            let submit = self.table().submit.unwrap();
            submit(
                self.link,
                at,
                bytes,
                pack.count(),
                &raw mut accepted,
                no_error(),
            )
        };
        if status == status::OK {
            Ok(accepted)
        } else {
            Err(status)
        }
    }

    /// Exports a window here and imports it at the other end.
    fn window(&self, id: u32, address: u64, bytes: u64, other: &End) {
        let (mut token, mut len, mut e) = ([0u8; 256], 0, error());
        // SAFETY: living links, good pointers.
        unsafe {
            let export = self.table().export_window.unwrap();
            let to = token.as_mut_ptr().cast();
            ok(
                export(
                    self.link,
                    id,
                    address,
                    bytes,
                    to,
                    256,
                    &raw mut len,
                    &raw mut e,
                ),
                &e,
            );
            let import = other.table().import_window.unwrap();
            ok(
                import(other.link, id, token.as_ptr().cast(), len, &raw mut e),
                &e,
            );
        }
    }

    fn statistics(&self) -> abi::LinkStatistics {
        let mut out = abi::LinkStatistics::zeroed();
        // SAFETY: the link is alive.
        let status = unsafe { self.table().statistics.unwrap()(self.link, &raw mut out) };
        assert_eq!(status, status::OK);
        out
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // SAFETY: given back once, the link first.
        unsafe {
            self.table().destroy.unwrap()(self.link);
            (*self.plugin.instance).destroy.unwrap()(self.instance);
        }
    }
}

/// Two ends, not yet connected; the keys say who can prove what.
fn pair(keys: [&'static u8; 2]) -> [End; 2] {
    let plugin = load(&unisono_abi_tests::example());
    static ID: AtomicU64 = AtomicU64::new(1);
    let id = ID.fetch_add(1, Ordering::Relaxed);
    // SAFETY: static data.
    let table = unsafe { &*plugin.link };
    let instances = [0, 1].map(|_| instance(plugin, &PARAMS));
    let addresses = instances.map(|instance| {
        let (mut out, mut len, mut e) = ([0u8; 256], 0, error());
        let to = out.as_mut_ptr().cast();
        // SAFETY: good pointers.
        let status = unsafe { table.address.unwrap()(instance, to, 256, &raw mut len, &raw mut e) };
        ok(status, &e);
        out[..len as usize].to_vec()
    });
    [0, 1].map(|rank| {
        let channel = channel(id, rank as u32, keys[rank]);
        let mut request = abi::LinkRequest::zeroed();
        request.struct_size = size_of::<abi::LinkRequest>() as u32;
        request.peer = 1 - rank as u32;
        request.channel = &raw const channel;
        request.peer_address = addresses[1 - rank].as_ptr().cast();
        request.peer_address_len = addresses[1 - rank].len() as u64;
        let (mut link, mut e) = (abi::Link::NULL, error());
        // SAFETY: good pointers for the call.
        let status = unsafe {
            table.create.unwrap()(
                instances[rank],
                &raw const request,
                &raw mut link,
                &raw mut e,
            )
        };
        ok(status, &e);
        End {
            plugin,
            instance: instances[rank],
            link,
            channel: id,
        }
    })
}

fn connected() -> [End; 2] {
    let ends = pair([&RIGHT, &RIGHT]);
    until("connecting", || {
        ends.each_ref().map(|end| end.good_poll().state) == [queue_state::IDLE; 2]
    });
    ends
}

fn put(src: &[u8], window: u32, offset: u64, signal: u64) -> abi::CommandPut {
    let mut c = abi::CommandPut::zeroed();
    (c.src, c.bytes, c.repeat) = (src.as_ptr() as u64, src.len() as u64, 1);
    (c.dst_window, c.dst_offset) = (window, offset);
    (c.signal_window, c.signal_offset, c.words) = (2, signal, [1, 2, 3]);
    c
}

#[test]
fn puts_land_in_order_with_their_signal_and_push_back() {
    let [a, b] = connected();
    let (lines, doorbell) = (Lines::new(), Lines::new());
    let mut memory = vec![0u8; 8 << 20];
    b.window(1, memory.as_mut_ptr() as u64, memory.len() as u64, &a);
    b.window(2, lines.at(0), 512, &a);
    let source: Vec<u8> = (0..memory.len()).map(|i| ((i * 7) >> 3) as u8).collect();
    let mut pack = Pack::new();
    // A doorbell first; then the large one; then two pieces gathered from every other KiB.
    let wait = abi::CommandWait {
        flag: doorbell.at(0),
        counter: doorbell.at(1),
        ..abi::CommandWait::zeroed()
    };
    let mut large = put(&source, 1, 0, 64);
    (large.done_flag, large.done_counter) = (doorbell.at(2), doorbell.at(3));
    let mut pieces = put(&source[..1024], 1, 0, 64);
    (pieces.repeat, pieces.src_stride) = (2, 2048);
    pack.wait(0, wait).put(abi::CMD_WORDS, large).put(0, pieces);
    assert_eq!(a.submit(&pack), Ok(3));
    for _ in 0..10 {
        assert_eq!(a.good_poll().completed, 0, "it waits for the doorbell");
    }
    doorbell.value(0).store(1, Ordering::Release);
    for _ in 0..20 {
        a.good_poll();
    }
    let state = a.good_poll();
    assert_eq!(
        (state.state, state.completed),
        (queue_state::WAITING, 1),
        "nobody reads: it waits"
    );
    assert_eq!(
        doorbell.value(2).load(Ordering::Acquire),
        0,
        "the source is still in use"
    );
    until("the transfer", || {
        a.good_poll();
        b.good_poll();
        lines.value(1).load(Ordering::Acquire) == 2
    });
    assert_eq!(memory[..1024], source[..1024]);
    assert_eq!(memory[1024..2048], source[2048..3072]);
    assert!(memory[2048..] == source[2048..]);
    // SAFETY: nobody writes the line any more.
    let words = unsafe { *((lines.at(1) + 8) as *const [u64; 3]) };
    assert_eq!(words, [1, 2, 3]);
    assert_eq!(doorbell.value(2).load(Ordering::Acquire), 1);
    assert_eq!(a.good_poll().state, queue_state::IDLE);
    let (sent, received) = (a.statistics(), b.statistics());
    assert_eq!((sent.puts_sent, sent.bytes_sent), (2, (8 << 20) + 2048));
    assert_eq!((received.puts_received, received.connections), (2, 1));
}

#[test]
fn puts_outside_the_windows_are_refused() {
    let [a, b] = connected();
    let lines = Lines::new();
    b.window(2, lines.at(0), 512, &a);
    let source = [0u8; 64];
    for (window, offset, signal) in [(9, 0, 0), (2, 449, 0), (2, u64::MAX, 0), (2, 0, 512)] {
        let mut pack = Pack::new();
        pack.put(0, put(&source, window, offset, signal));
        assert_eq!(
            a.submit(&pack),
            Err(status::INVALID),
            "{window} {offset} {signal}"
        );
    }
    // SAFETY: the link is alive.
    let status = unsafe { b.table().close_window.unwrap()(b.link, 2, no_error()) };
    assert_eq!(status, status::OK);
    let mut pack = Pack::new();
    pack.put(0, put(&source, 2, 0, 64));
    assert_eq!(a.submit(&pack), Ok(1), "the sender does not know yet");
    until("the refusal", || {
        a.poll(1 << 20);
        b.poll(1 << 20).0 == status::LINK
    });
}

#[test]
fn sleepers_wake_for_data_and_for_a_lost_peer() {
    let [a, b] = connected();
    let lines = Lines::new();
    b.window(2, lines.at(0), 512, &a);
    // Whether the link can be slept on, and then whether its descriptor says that there is more.
    let arm = |end: &End| {
        let mut sleep = abi::Sleep::zeroed();
        // SAFETY: the link is alive.
        let status = unsafe {
            let arm = end.table().arm.unwrap();
            arm(
                end.link,
                sleep::FD | sleep::WAKER,
                std::ptr::null(),
                &raw mut sleep,
                no_error(),
            )
        };
        assert_eq!(status, status::OK);
        (sleep.how == sleep::FD).then_some(sleep)
    };
    let is_ready = |sleep: &abi::Sleep, wait: Duration| {
        // SAFETY: the link is alive, and with it its descriptor.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(sleep.fd) };
        let events = rustix::event::PollFlags::from_bits_truncate(sleep.fd_events as u16);
        let mut polled = [rustix::event::PollFd::from_borrowed_fd(fd, events)];
        let wait = rustix::event::Timespec::try_from(wait).unwrap();
        rustix::event::poll(&mut polled, Some(&wait)).unwrap() > 0
    };
    let (soon, late) = (Duration::from_millis(5), Duration::from_secs(5));

    b.good_poll();
    let sleep = arm(&b).expect("nothing to do");
    assert!(!is_ready(&sleep, soon), "nothing happened yet");
    let mut pack = Pack::new();
    pack.put(0, put(&[], 0, 0, 0));
    assert_eq!(a.submit(&pack), Ok(1));
    assert!(arm(&a).is_none(), "there is a put to be sent");
    a.good_poll();
    assert!(is_ready(&sleep, late));
    b.good_poll();
    assert_eq!(lines.value(0).load(Ordering::Acquire), 1);

    // A doorbell is the host's to wake for, but one that has rung lets nobody sleep.
    let bell = Lines::new();
    pack.clear();
    let wait = abi::CommandWait {
        flag: bell.at(0),
        counter: bell.at(1),
        ..abi::CommandWait::zeroed()
    };
    pack.wait(0, wait);
    assert_eq!(a.submit(&pack), Ok(1));
    a.good_poll();
    assert!(arm(&a).is_some());
    bell.value(0).store(1, Ordering::Release);
    assert!(arm(&a).is_none());
    assert_eq!(a.good_poll().state, queue_state::IDLE);

    // A peer that leaves in order is no news until there is more to say.
    let sleep = arm(&b).expect("nothing to do");
    drop(a);
    assert!(is_ready(&sleep, late));
    assert_eq!(b.good_poll().state, queue_state::IDLE);
    let sleep = arm(&b).expect("nothing to do");
    assert!(!is_ready(&sleep, soon));
    assert_eq!(b.submit(&pack), Ok(1));
    assert_eq!(b.poll(1).0, status::PEER);
    assert_eq!(b.poll(1).1.state, queue_state::FAILED);

    // One that is lost is.
    let [a, b] = connected();
    let sleep = arm(&b).expect("nothing to do");
    // SAFETY: the link is alive.
    unsafe { a.table().abort.unwrap()(a.link) };
    assert_eq!(a.poll(1).0, status::ABORTED);
    assert!(is_ready(&sleep, late));
    assert_eq!(b.poll(1).0, status::PEER);
}

#[test]
fn nobody_can_pose_as_a_rank() {
    let [a, b] = pair([&RIGHT, &WRONG]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        let state = a.good_poll();
        assert_eq!(state.state, queue_state::CONNECTING);
        b.poll(1 << 20);
    }
    assert!(a.statistics().refused > 0);
}

#[test]
fn strangers_cost_nothing() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
    let ends = pair([&RIGHT, &RIGHT]);
    let mut address = ([0u8; 256], 0);
    // SAFETY: good pointers.
    unsafe {
        let call = ends[1].table().address.unwrap();
        let out = address.0.as_mut_ptr().cast();
        ok(
            call(ends[1].instance, out, 256, &raw mut address.1, no_error()),
            &error(),
        );
    }
    let words: [u64; 2] =
        [0, 8].map(|at| u64::from_ne_bytes(address.0[at..at + 8].try_into().unwrap()));
    let name = format!(
        "unisono-example-{:016x}{:016x}-{:x}-0-1",
        words[0], words[1], ends[1].channel
    );
    let call = || {
        let kind = SocketType::SEQPACKET;
        let socket = rustix::net::socket(AddressFamily::UNIX, kind, None).unwrap();
        rustix::net::connect(
            &socket,
            &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap(),
        )
        .unwrap();
        socket
    };
    let callers: Vec<_> = (0..100).map(|_| call()).collect();
    until("connecting past the strangers", || {
        ends.each_ref().map(|end| end.good_poll().state) == [queue_state::IDLE; 2]
    });
    assert!(ends[1].statistics().refused > 0);
    drop(callers);
}

#[test]
fn an_abort_ends_it() {
    let [a, b] = connected();
    // SAFETY: the link is alive.
    unsafe { a.table().abort.unwrap()(a.link) };
    assert_eq!(a.poll(1).0, status::ABORTED);
    assert_eq!(a.submit(&Pack::new()), Err(status::ABORTED));
    drop(a);
    until("the peer", || b.poll(1).0 == status::PEER);
}
