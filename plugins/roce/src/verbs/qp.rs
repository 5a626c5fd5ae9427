//! Reliable connected queue pairs: coming up, and posting.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use super::{CompletionQueue, Maker, Pd, checked, destroyed, last_error};
use crate::sys::abi::{self, qp_mask, qp_state, send_flag, wr};

/// Pieces of work that one call posts.
pub(crate) const POSTED_MAX: usize = 16;

/// A queue pair with its completion queue.
pub(crate) struct QueuePair {
    raw: NonNull<abi::Qp>,
    /// After the pair in the order of dropping.
    queue: CompletionQueue,
    pd: Arc<Pd>,
    post_send: abi::PostSend,
    post_recv: abi::PostRecv,
    inline_max: u32,
    requests: Box<[abi::SendWr; POSTED_MAX]>,
    pieces: Box<[abi::Sge; POSTED_MAX]>,
    maker: Maker,
}

// SAFETY: verbs objects may be used from any thread, and `&mut` serialises the use.
unsafe impl Send for QueuePair {}

/// How much a queue pair holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Posted sends and writes.
    pub(crate) sends: u32,
    /// Posted receives.
    pub(crate) receives: u32,
    /// Bytes of one inline write that are wanted; devices give what they can.
    pub(crate) inline: u32,
}

/// The way to the peer's queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) port: u8,
    /// As an `ibv_mtu`.
    pub(crate) mtu: u8,
    pub(crate) peer_number: u32,
    /// Where the peer's packet numbers start, and ours.
    pub(crate) peer_start: u32,
    pub(crate) own_start: u32,
    pub(crate) peer_gid: abi::Gid,
    pub(crate) peer_lid: u16,
    pub(crate) gid_index: u8,
    /// Whether packets carry the global header: always on Ethernet.
    pub(crate) global: bool,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    pub(crate) service_level: u8,
    /// 4.096 µs times two to this.
    pub(crate) timeout: u8,
    pub(crate) retries: u8,
    pub(crate) receiver_retries: u8,
}

/// What a piece of work does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    /// Writes the peer's memory; the peer is not told.
    Write { remote: u64, key: u32 },
    /// Writes, and takes one of the peer's receives for the number.
    WriteImmediate {
        remote: u64,
        key: u32,
        immediate: u32,
    },
    /// Goes to the peer's next receive.
    Send,
}

/// One piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Comes back with its completion.
    pub(crate) id: u64,
    pub(crate) opcode: Opcode,
    pub(crate) address: u64,
    pub(crate) bytes: u32,
    pub(crate) local_key: u32,
    /// The bytes are taken at once.
    pub(crate) inline: bool,
    /// It completes by itself; else with the next that does.
    pub(crate) signalled: bool,
}

const NO_REQUEST: abi::SendWr = abi::SendWr {
    wr_id: 0,
    next: null_mut(),
    sg_list: null_mut(),
    num_sge: 0,
    opcode: 0,
    send_flags: 0,
    imm_data: 0,
    remote_addr: 0,
    rkey: 0,
    wr_rest: [0; 5],
    tail: [0; 7],
};

impl QueuePair {
    /// A new pair that can receive, not yet connected.
    pub(crate) fn new(pd: &Arc<Pd>, port: u8, capacity: Capacity) -> io::Result<Self> {
        let context = pd.context();
        let unsupported = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        let operations = context.operations();
        let post_send = operations.post_send.ok_or_else(unsupported)?;
        let post_recv = operations.post_recv.ok_or_else(unsupported)?;
        let queue = CompletionQueue::new(context, capacity.sends + capacity.receives)?;
        let library = context.library();
        let create = |inline: u32| {
            let mut init = abi::QpInitAttr {
                qp_context: null_mut(),
                send_cq: queue.raw(),
                recv_cq: queue.raw(),
                srq: null_mut(),
                cap: abi::QpCap {
                    max_send_wr: capacity.sends,
                    max_recv_wr: capacity.receives,
                    max_send_sge: 1,
                    max_recv_sge: 1,
                    max_inline_data: inline,
                },
                qp_type: abi::QPT_RC,
                sq_sig_all: 0,
            };
            // SAFETY: the domain and the queue live longer than the pair.
            let raw = unsafe { (library.create_qp)(pd.raw(), &raw mut init) };
            NonNull::new(raw)
                .map(|raw| (raw, init.cap.max_inline_data.min(inline)))
                .ok_or_else(last_error)
        };
        // A device that cannot write as much inline refuses: it is asked for less.
        let (raw, inline_max) = match create(capacity.inline) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) && capacity.inline > 0 => {
                create(capacity.inline / 4).or_else(|_| create(0))?
            }
            other => other?,
        };
        let mut pair = Self {
            raw,
            queue,
            pd: Arc::clone(pd),
            post_send,
            post_recv,
            inline_max,
            requests: Box::new([NO_REQUEST; POSTED_MAX]),
            pieces: Box::new([abi::Sge::default(); POSTED_MAX]),
            maker: Maker::here(),
        };
        pair.initialise(port)?;
        Ok(pair)
    }

    /// Its number on its device.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the pair lives as long as `self`.
        unsafe { (*self.raw.as_ptr()).qp_num }
    }

    /// The longest inline write, in bytes.
    pub(crate) const fn inline_max(&self) -> u32 {
        self.inline_max
    }

    pub(crate) const fn queue(&mut self) -> &mut CompletionQueue {
        &mut self.queue
    }

    fn initialise(&mut self, port: u8) -> io::Result<()> {
        let attr = abi::QpAttr {
            qp_state: qp_state::INIT,
            port_num: port,
            qp_access_flags: abi::access::REMOTE_WRITE.cast_unsigned(),
            ..no_attributes()
        };
        self.modify(
            attr,
            qp_mask::STATE | qp_mask::PKEY_INDEX | qp_mask::PORT | qp_mask::ACCESS_FLAGS,
        )
    }

    /// Connects to the peer's pair: receives from now on, and sends.
    pub(crate) fn connect(&mut self, path: &Path) -> io::Result<()> {
        let mut address = no_attributes().ah_attr;
        address.dlid = path.peer_lid;
        address.sl = path.service_level;
        address.port_num = path.port;
        address.is_global = u8::from(path.global);
        if path.global {
            address.grh = abi::GlobalRoute {
                dgid: abi::GidUnion(path.peer_gid),
                flow_label: 0,
                sgid_index: path.gid_index,
                hop_limit: path.hop_limit,
                traffic_class: path.traffic_class,
            };
        }
        let receive = abi::QpAttr {
            qp_state: qp_state::RTR,
            path_mtu: i32::from(path.mtu),
            dest_qp_num: path.peer_number,
            rq_psn: path.peer_start,
            max_dest_rd_atomic: 1,
            // 0.64 ms: credits see to it that it is never needed.
            min_rnr_timer: 12,
            ah_attr: address,
            ..no_attributes()
        };
        self.modify(
            receive,
            qp_mask::STATE
                | qp_mask::AV
                | qp_mask::PATH_MTU
                | qp_mask::DEST_QPN
                | qp_mask::RQ_PSN
                | qp_mask::MAX_DEST_RD_ATOMIC
                | qp_mask::MIN_RNR_TIMER,
        )?;
        let send = abi::QpAttr {
            qp_state: qp_state::RTS,
            sq_psn: path.own_start,
            timeout: path.timeout,
            retry_cnt: path.retries,
            rnr_retry: path.receiver_retries,
            max_rd_atomic: 1,
            ..no_attributes()
        };
        self.modify(
            send,
            qp_mask::STATE
                | qp_mask::TIMEOUT
                | qp_mask::RETRY_CNT
                | qp_mask::RNR_RETRY
                | qp_mask::SQ_PSN
                | qp_mask::MAX_QP_RD_ATOMIC,
        )
    }

    fn modify(&mut self, mut attr: abi::QpAttr, mask: i32) -> io::Result<()> {
        let modify = self.pd.context().library().modify_qp;
        // SAFETY: the pair lives, and the attributes through the call.
        checked(unsafe { modify(self.raw.as_ptr(), &raw mut attr, mask) })
    }

    /// Posts a receive of `bytes` at `address`.
    ///
    /// # Safety
    /// The memory is registered under the key, and nobody else uses it until the receive completes
    /// or the pair is dropped.
    pub(crate) unsafe fn receive(
        &mut self,
        id: u64,
        address: u64,
        bytes: u32,
        local_key: u32,
    ) -> io::Result<()> {
        let mut piece = abi::Sge {
            addr: address,
            length: bytes,
            lkey: local_key,
        };
        let mut request = abi::RecvWr {
            wr_id: id,
            next: null_mut(),
            sg_list: &raw mut piece,
            num_sge: i32::from(bytes > 0),
        };
        let mut bad = null_mut();
        // SAFETY: the request lives through the call; the rest by the caller's promise.
        checked(unsafe { (self.post_recv)(self.raw.as_ptr(), &raw mut request, &raw mut bad) })
    }

    /// Posts work in order, at most [`POSTED_MAX`] pieces, with one call.
    ///
    /// # Safety
    /// The memory of pieces that are not inline is registered under their keys, and stays as it is
    /// until they complete or the pair is dropped; that of inline pieces is readable now.
    pub(crate) unsafe fn post(&mut self, work: impl Iterator<Item = Work>) -> io::Result<()> {
        let first: *mut abi::SendWr = self.requests.as_mut_ptr();
        let mut last: Option<*mut abi::SendWr> = None;
        for (index, work) in work.take(POSTED_MAX).enumerate() {
            self.pieces[index] = abi::Sge {
                addr: work.address,
                length: work.bytes,
                lkey: work.local_key,
            };
            let piece = &raw mut self.pieces[index];
            // SAFETY: within the array.
            let request = unsafe { first.add(index) };
            // SAFETY: within the array, which nothing else borrows.
            fill(unsafe { &mut *request }, &work, piece, null_mut());
            if let Some(last) = last.replace(request) {
                // SAFETY: the one before it, as above.
                unsafe { (*last).next = request };
            }
        }
        if last.is_none() {
            return Ok(());
        }
        let mut bad = null_mut();
        // SAFETY: the list ends at NULL and lives through the call; the rest by the caller's
        // promise.
        let answer = unsafe { (self.post_send)(self.raw.as_ptr(), first, &raw mut bad) };
        // Part of it may have been taken: the pair is of no more use then.
        checked(answer)
    }

    /// Puts the pair in error.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        let attr = abi::QpAttr {
            qp_state: qp_state::ERR,
            ..no_attributes()
        };
        self.modify(attr, qp_mask::STATE)
    }
}

fn fill(request: &mut abi::SendWr, work: &Work, piece: *mut abi::Sge, next: *mut abi::SendWr) {
    let (opcode, remote, key, immediate) = match work.opcode {
        Opcode::Write { remote, key } => (wr::RDMA_WRITE, remote, key, 0),
        Opcode::WriteImmediate {
            remote,
            key,
            immediate,
        } => (wr::RDMA_WRITE_WITH_IMM, remote, key, immediate),
        Opcode::Send => (wr::SEND, 0, 0, 0),
    };
    let mut flags = 0;
    if work.signalled {
        flags |= send_flag::SIGNALED;
    }
    if work.inline && work.bytes > 0 {
        flags |= send_flag::INLINE;
    }
    request.wr_id = work.id;
    request.next = next;
    request.sg_list = piece;
    request.num_sge = i32::from(work.bytes > 0);
    request.opcode = opcode;
    request.send_flags = flags;
    request.imm_data = immediate.to_be();
    request.remote_addr = remote;
    request.rkey = key;
}

fn no_attributes() -> abi::QpAttr {
    // SAFETY: a plain C struct of integers, valid when zero.
    unsafe { std::mem::zeroed() }
}

impl AsFd for QueuePair {
    /// The descriptor of its completion queue.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if self.maker.is_here() {
            let destroy = self.pd.context().library().destroy_qp;
            // SAFETY: made once, destroyed once; its queue is dropped after it.
            destroyed(unsafe { destroy(self.raw.as_ptr()) });
        }
    }
}

impl std::fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueuePair")
            .field("number", &self.number())
            .finish_non_exhaustive()
    }
}
