//! Packets between queue pairs: numbered, acknowledged, sent again.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use unisono_plugin_roce::sys::abi::{WC_WITH_IMM, Wc, access, qp_state, wc_opcode, wc_status, wr};

use crate::broken;
use crate::device::Folder;
use crate::packet::{Head, Kind, PAYLOAD};
use crate::queue::{Bell, Entry};
use crate::state::{Pair, Source, State, Work, print, state};

/// Packets under way at once.
const WINDOW: u32 = 16;
/// Packets that one look at a queue pair takes.
const TAKEN_MAX: usize = 64;
/// A receiver that was not ready is asked again after this.
const NOT_READY: Duration = Duration::from_millis(1);

/// The thread of one open device.
pub struct Engine {
    wake: Arc<Bell>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    pub fn start(context: usize) -> Self {
        let (wake, stop) = (Arc::new(Bell::new()), Arc::new(AtomicBool::new(false)));
        let (hears, ends) = (wake.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("fake verbs".to_owned())
            .spawn(move || run(context, &hears, &ends));
        Self {
            wake,
            stop,
            thread: thread.ok(),
        }
    }

    pub fn wake(&self) {
        self.wake.ring();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(context: usize, wake: &Bell, stop: &AtomicBool) {
    let mut weather = Weather::default();
    while !stop.load(Ordering::Relaxed) {
        let mut fds = vec![libc::pollfd {
            fd: wake.fd(),
            events: libc::POLLIN,
            revents: 0,
        }];
        let mut soonest = Instant::now() + Duration::from_millis(100);
        {
            let state = state();
            for pair in state.pairs.values().filter(|p| p.context == context) {
                fds.push(libc::pollfd {
                    fd: pair.socket.fd(),
                    events: libc::POLLIN,
                    revents: 0,
                });
                let requester = &pair.requester;
                for at in [requester.deadline, requester.pause].into_iter().flatten() {
                    soonest = soonest.min(at);
                }
            }
        }
        let rest = soonest.saturating_duration_since(Instant::now());
        let millis = i32::try_from(rest.as_micros().div_ceil(1000)).unwrap_or(100);
        // SAFETY: the array lives through the call. A socket that is closed meanwhile only shows
        // as an error.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, millis) };
        if fds[0].revents != 0 {
            wake.hear();
        }
        let mut state = state();
        let numbers: Vec<u32> = state
            .pairs
            .iter()
            .filter(|(_, pair)| pair.context == context)
            .map(|(number, _)| *number)
            .collect();
        for number in numbers {
            // Out of the map, so that it and the rest can be used at once.
            if let Some(mut pair) = state.pairs.remove(&number) {
                turn(&mut pair, number, &mut state, &mut weather);
                state.pairs.insert(number, pair);
            }
        }
    }
}

/// What the device's folders say of losses, read now and then.
#[derive(Default)]
pub struct Weather {
    known: HashMap<PathBuf, (Instant, bool, u32)>,
}

impl Weather {
    fn of(&mut self, folder: &Folder) -> (bool, u32) {
        let now = Instant::now();
        match self.known.get(&folder.0) {
            Some((at, cut, loss)) if now - *at < Duration::from_millis(1) => (*cut, *loss),
            _ => {
                let (cut, loss) = (folder.is_cut(), folder.loss());
                self.known.insert(folder.0.clone(), (now, cut, loss));
                (cut, loss)
            }
        }
    }
}

/// Receives, sends, and sends again.
pub fn turn(pair: &mut Pair, number: u32, state: &mut State, weather: &mut Weather) {
    for _ in 0..TAKEN_MAX {
        let Some((head, payload)) = pair.socket.receive() else {
            break;
        };
        if pair.state != qp_state::RTR && pair.state != qp_state::RTS {
            continue;
        }
        let payload = payload.to_vec();
        match head.kind {
            Kind::Write | Kind::Send => respond(pair, number, head, &payload, state, weather),
            Kind::Ack => acknowledged(pair, number, head.number.wrapping_add(1), state),
            Kind::Again => {
                acknowledged(pair, number, head.number, state);
                rewind(pair, head.number);
            }
            Kind::NotReady => not_ready(pair, number, head.number, state),
            Kind::Access => {
                acknowledged(pair, number, head.number, state);
                fail(pair, number, wc_status::REM_ACCESS_ERR, state);
            }
            Kind::Invalid => {
                acknowledged(pair, number, head.number, state);
                fail(pair, number, wc_status::REM_INV_REQ_ERR, state);
            }
        }
    }
    let now = Instant::now();
    if pair.requester.pause.is_some_and(|at| now >= at) {
        pair.requester.pause = None;
    }
    if pair.requester.deadline.is_some_and(|at| now >= at) {
        pair.requester.retries += 1;
        if pair.requester.retries > pair.retries_max {
            fail(pair, number, wc_status::RETRY_EXC_ERR, state);
        } else {
            let oldest = pair.requester.oldest;
            rewind(pair, oldest);
            pair.requester.deadline = None;
        }
    }
    request(pair, number, state, weather);
}

/// Sends what may be sent.
pub fn request(pair: &mut Pair, number: u32, state: &mut State, weather: &mut Weather) {
    if pair.state != qp_state::RTS || pair.requester.pause.is_some() {
        return;
    }
    while pair.requester.at < pair.requester.work.len()
        && pair.requester.next.wrapping_sub(pair.requester.oldest) < WINDOW
    {
        let requester = &mut pair.requester;
        let next = requester.next;
        let sent = requester.bytes;
        let work = &mut requester.work[requester.at];
        if sent == 0 {
            work.first = next;
        }
        let total = work.source.len();
        let length = (total - sent).min(PAYLOAD as u32);
        let payload = match &work.source {
            Source::Inline(bytes) => bytes[sent as usize..(sent + length) as usize].to_vec(),
            Source::Memory {
                address,
                bytes,
                key,
                print: before,
            } => {
                let found = state.find(*key, pair.domain, *address, u64::from(*bytes), 0);
                let Some(source) = found else {
                    fail(pair, number, wc_status::LOC_PROT_ERR, state);
                    return;
                };
                // Once it is at the peer it may change, though this end may not know yet.
                let resent = work.end != 0 || requester.retries > 0;
                if !resent && print(source, *bytes) != *before {
                    broken("a source has changed before it was sent");
                }
                // SAFETY: registered memory is mapped.
                unsafe { std::slice::from_raw_parts(source.add(sent as usize), length as usize) }
                    .to_vec()
            }
        };
        let last = sent + length == total;
        let head = Head {
            last,
            immediate: work.immediate.filter(|_| last),
            remote: work.remote,
            key: work.key,
            before: sent,
            ..Head::new(
                if work.opcode == wr::SEND {
                    Kind::Send
                } else {
                    Kind::Write
                },
                number,
                next,
            )
        };
        if !transmit(pair, &head, &payload, state, weather) {
            // The peer's socket is full: soon again.
            let soon = Instant::now() + Duration::from_millis(1);
            pair.requester.pause = Some(soon);
            return;
        }
        let requester = &mut pair.requester;
        requester.next = next.wrapping_add(1);
        if last {
            requester.work[requester.at].end = requester.next;
            requester.at += 1;
            requester.bytes = 0;
        } else {
            requester.bytes = sent + length;
        }
        let wait = Duration::from_nanos(4096 << pair.timeout);
        requester
            .deadline
            .get_or_insert_with(|| Instant::now() + wait);
    }
}

fn transmit(
    pair: &mut Pair,
    head: &Head,
    payload: &[u8],
    state: &mut State,
    weather: &mut Weather,
) -> bool {
    let Some((address, peer)) = &pair.peer else {
        return true;
    };
    let (cut, loss) = weather.of(&pair.folder);
    let (peer_cut, _) = weather.of(peer);
    if cut || peer_cut || state.roll(loss) {
        return true; // lost
    }
    pair.folder.count(payload.len());
    pair.socket.send(address, head, payload)
}

/// All packets before `upto` have arrived.
fn acknowledged(pair: &mut Pair, number: u32, upto: u32, state: &mut State) {
    let requester = &mut pair.requester;
    let ahead = upto.wrapping_sub(requester.oldest);
    if ahead == 0 || ahead > requester.next.wrapping_sub(requester.oldest) {
        return;
    }
    requester.oldest = upto;
    requester.retries = 0;
    requester.receiver_retries = 0;
    requester.deadline = (requester.next != requester.oldest)
        .then(|| Instant::now() + Duration::from_nanos(4096 << pair.timeout));
    while pair.requester.at > 0 {
        let end = pair.requester.work[0].end;
        if upto.wrapping_sub(end).cast_signed() < 0 {
            break;
        }
        pair.requester.at -= 1;
        if let Some(work) = pair.requester.work.pop_front() {
            complete_send(pair, number, &work, wc_status::SUCCESS, state);
        }
    }
}

/// Goes on from this packet.
fn rewind(pair: &mut Pair, to: u32) {
    let requester = &mut pair.requester;
    for (at, work) in requester.work.iter().enumerate() {
        let begun = at < requester.at || (at == requester.at && requester.bytes > 0);
        if !begun {
            break;
        }
        let ends_before = at < requester.at && to.wrapping_sub(work.end).cast_signed() >= 0;
        if !ends_before {
            requester.bytes = to.wrapping_sub(work.first) * PAYLOAD as u32;
            requester.at = at;
            requester.next = to;
            return;
        }
    }
}

fn not_ready(pair: &mut Pair, number: u32, at: u32, state: &mut State) {
    acknowledged(pair, number, at, state);
    pair.requester.receiver_retries += 1;
    if pair.requester.receiver_retries > pair.receiver_retries_max {
        fail(pair, number, wc_status::RNR_RETRY_EXC_ERR, state);
        return;
    }
    rewind(pair, at);
    pair.requester.deadline = None;
    pair.requester.pause = Some(Instant::now() + NOT_READY);
}

/// The oldest work fails, and with it the queue pair.
fn fail(pair: &mut Pair, number: u32, status: i32, state: &mut State) {
    if let Some(work) = pair.requester.work.pop_front() {
        complete_send(pair, number, &work, status, state);
    }
    flush(pair, number, state);
}

/// Puts a queue pair in error: all that is posted comes back.
pub fn flush(pair: &mut Pair, number: u32, state: &mut State) {
    pair.state = qp_state::ERR;
    for work in std::mem::take(&mut pair.requester.work) {
        complete_send(pair, number, &work, wc_status::WR_FLUSH_ERR, state);
    }
    pair.requester = crate::state::Requester::default();
    for receive in std::mem::take(&mut pair.responder.receives) {
        let wc = Wc {
            wr_id: receive.id,
            status: wc_status::WR_FLUSH_ERR,
            ..Wc::default()
        };
        push(pair, number, wc, 0, 1, state);
    }
}

fn complete_send(pair: &mut Pair, number: u32, work: &Work, status: i32, state: &mut State) {
    if status == wc_status::SUCCESS && !work.signalled {
        pair.unsignalled += 1;
        return;
    }
    let wc = Wc {
        wr_id: work.id,
        status,
        opcode: if work.opcode == wr::SEND {
            wc_opcode::SEND
        } else {
            wc_opcode::RDMA_WRITE
        },
        vendor_err: if status == wc_status::SUCCESS {
            0
        } else {
            0x81
        },
        ..Wc::default()
    };
    let frees = 1 + std::mem::take(&mut pair.unsignalled);
    push(pair, number, wc, frees, 0, state);
}

fn push(pair: &Pair, number: u32, wc: Wc, sends: u32, receives: u32, state: &mut State) {
    let entry = Entry {
        wc: Wc {
            qp_num: number,
            ..wc
        },
        pair: number,
        sends,
        receives,
    };
    if let Some(queue) = state.queues.get_mut(&pair.queue) {
        queue.push(entry);
    }
}

/// A packet of the peer's work.
fn respond(
    pair: &mut Pair,
    number: u32,
    head: Head,
    payload: &[u8],
    state: &mut State,
    weather: &mut Weather,
) {
    let ahead = head
        .number
        .wrapping_sub(pair.responder.expected)
        .cast_signed();
    let reply = |kind, about| Head::new(kind, number, about);
    if ahead < 0 {
        let seen = pair.responder.expected.wrapping_sub(1);
        transmit(pair, &reply(Kind::Ack, seen), &[], state, weather);
        return;
    }
    if ahead > 0 {
        if !std::mem::replace(&mut pair.responder.complained, true) {
            let wanted = pair.responder.expected;
            transmit(pair, &reply(Kind::Again, wanted), &[], state, weather);
        }
        return;
    }
    let answer = match head.kind {
        Kind::Send => deliver(pair, number, head, payload, state),
        _ => write(pair, number, head, payload, state),
    };
    if answer == Kind::Ack {
        pair.responder.expected = pair.responder.expected.wrapping_add(1);
        pair.responder.complained = false;
    }
    transmit(pair, &reply(answer, head.number), &[], state, weather);
    if matches!(answer, Kind::Access | Kind::Invalid) {
        flush(pair, number, state);
    }
}

fn write(pair: &mut Pair, number: u32, head: Head, payload: &[u8], state: &mut State) -> Kind {
    let at = head.remote.wrapping_add(u64::from(head.before));
    let mut to = std::ptr::null_mut();
    if !payload.is_empty() {
        let right = access::REMOTE_WRITE;
        let found = state.find(head.key, pair.domain, at, payload.len() as u64, right);
        match found.filter(|_| pair.access & right != 0) {
            Some(found) => to = found,
            None => return Kind::Access,
        }
    }
    if head.immediate.is_some() && pair.responder.receives.is_empty() {
        return Kind::NotReady;
    }
    if !payload.is_empty() {
        // SAFETY: the memory is registered for the peer to write.
        unsafe { std::ptr::copy_nonoverlapping(payload.as_ptr(), to, payload.len()) };
    }
    if let Some(immediate) = head.immediate
        && let Some(receive) = pair.responder.receives.pop_front()
    {
        let wc = Wc {
            wr_id: receive.id,
            opcode: wc_opcode::RECV_RDMA_WITH_IMM,
            byte_len: head.before + payload.len() as u32,
            imm_data: immediate,
            wc_flags: WC_WITH_IMM,
            ..Wc::default()
        };
        push(pair, number, wc, 0, 1, state);
    }
    Kind::Ack
}

fn deliver(pair: &mut Pair, number: u32, head: Head, payload: &[u8], state: &mut State) -> Kind {
    let Some(receive) = pair.responder.receives.front().copied() else {
        return Kind::NotReady;
    };
    let end = u64::from(head.before) + payload.len() as u64;
    let address = receive.address + u64::from(head.before);
    if end > u64::from(receive.bytes) {
        return Kind::Invalid;
    }
    let bytes = payload.len() as u64;
    if bytes > 0
        && state
            .find(
                receive.key,
                pair.domain,
                address,
                bytes,
                access::LOCAL_WRITE,
            )
            .is_none()
    {
        return Kind::Invalid;
    }
    // SAFETY: the memory is registered for the device to write, and posted for this.
    unsafe { std::ptr::copy_nonoverlapping(payload.as_ptr(), address as *mut u8, payload.len()) };
    if head.last {
        pair.responder.receives.pop_front();
        let wc = Wc {
            wr_id: receive.id,
            opcode: wc_opcode::RECV,
            byte_len: end as u32,
            ..Wc::default()
        };
        push(pair, number, wc, 0, 1, state);
    }
    Kind::Ack
}
