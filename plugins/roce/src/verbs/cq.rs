//! Completion queues, each with the descriptor that says when something came.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::{Context, Maker, checked, destroyed, last_error};
use crate::sys::abi;

/// Completions that one call takes.
const TAKEN_MAX: usize = 16;

/// A completion queue and its channel.
pub(crate) struct CompletionQueue {
    context: Arc<Context>,
    channel: NonNull<abi::CompChannel>,
    raw: NonNull<abi::Cq>,
    poll: abi::PollCq,
    notify: abi::ReqNotifyCq,
    taken: Box<[abi::Wc; TAKEN_MAX]>,
    maker: Maker,
}

// SAFETY: verbs objects may be used from any thread, and `&mut` serialises the use.
unsafe impl Send for CompletionQueue {}

/// A piece of work that is done, or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) id: u64,
    /// `IBV_WC_*`: 0 is success. Else only `id` and `vendor_code` mean anything.
    pub(crate) status: i32,
    pub(crate) vendor_code: u32,
    /// Whether it is a receive.
    pub(crate) received: bool,
    /// Bytes that came.
    pub(crate) bytes: u32,
    /// Immediate data, if it came with any.
    pub(crate) immediate: Option<u32>,
}

impl CompletionQueue {
    /// A queue with room for `entries`.
    pub(crate) fn new(context: &Arc<Context>, entries: u32) -> io::Result<Self> {
        let library = context.library();
        let unsupported = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        let operations = context.operations();
        let poll = operations.poll_cq.ok_or_else(unsupported)?;
        let notify = operations.req_notify_cq.ok_or_else(unsupported)?;
        // SAFETY: the context is open.
        let channel = unsafe { (library.create_comp_channel)(context.raw()) };
        let channel = NonNull::new(channel).ok_or_else(last_error)?;
        let entries = i32::try_from(entries).unwrap_or(i32::MAX);
        // SAFETY: context and channel are there.
        let raw =
            unsafe { (library.create_cq)(context.raw(), entries, null_mut(), channel.as_ptr(), 0) };
        let Some(raw) = NonNull::new(raw) else {
            let error = last_error();
            // SAFETY: nothing uses the channel.
            destroyed(unsafe { (library.destroy_comp_channel)(channel.as_ptr()) });
            return Err(error);
        };
        let queue = Self {
            context: Arc::clone(context),
            channel,
            raw,
            poll,
            notify,
            taken: Box::new([abi::Wc::default(); TAKEN_MAX]),
            maker: Maker::here(),
        };
        let flags = rustix::fs::fcntl_getfl(&queue)?;
        rustix::fs::fcntl_setfl(&queue, flags | OFlags::NONBLOCK)?;
        Ok(queue)
    }

    pub(super) const fn raw(&self) -> *mut abi::Cq {
        self.raw.as_ptr()
    }

    /// Takes what has come, a few at a time; `None` if nothing has.
    ///
    /// # Errors
    /// The queue is broken.
    pub(crate) fn take(&mut self) -> io::Result<Option<impl Iterator<Item = Completion> + '_>> {
        // SAFETY: the queue lives, and the array has room for as many.
        let count = unsafe { (self.poll)(self.raw(), TAKEN_MAX as i32, self.taken.as_mut_ptr()) };
        match usize::try_from(count) {
            Ok(0) => Ok(None),
            Ok(count) => Ok(Some(
                self.taken[..count.min(TAKEN_MAX)]
                    .iter()
                    .map(Completion::of),
            )),
            Err(_) => Err(io::Error::other("the completion queue cannot be polled")),
        }
    }

    /// Makes the next completion show on the descriptor. What came before must be taken after this.
    pub(crate) fn request_notice(&mut self) -> io::Result<()> {
        // SAFETY: the queue lives.
        checked(unsafe { (self.notify)(self.raw(), 0) })
    }

    /// Takes notices off the descriptor; never blocks.
    pub(crate) fn clear_notices(&mut self) {
        let library = self.context.library();
        let (mut queue, mut context) = (null_mut(), null_mut());
        let mut count = 0;
        // SAFETY: the channel lives, and does not block; only this queue notifies by it.
        unsafe {
            while (library.get_cq_event)(self.channel.as_ptr(), &raw mut queue, &raw mut context)
                == 0
            {
                count += 1;
            }
            if count > 0 {
                (library.ack_cq_events)(self.raw(), count);
            }
        }
    }
}

impl Completion {
    fn of(raw: &abi::Wc) -> Self {
        let success = raw.status == abi::wc_status::SUCCESS;
        let immediate = success && raw.wc_flags & abi::WC_WITH_IMM != 0;
        Self {
            id: raw.wr_id,
            status: raw.status,
            vendor_code: raw.vendor_err,
            received: success && raw.opcode & abi::wc_opcode::RECV != 0,
            bytes: raw.byte_len,
            immediate: immediate.then_some(u32::from_be(raw.imm_data)),
        }
    }
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as the channel.
        unsafe { BorrowedFd::borrow_raw((*self.channel.as_ptr()).fd) }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        if !self.maker.is_here() {
            return;
        }
        self.clear_notices();
        let library = self.context.library();
        // SAFETY: the queue pair that used it is gone; all notices are acknowledged.
        unsafe {
            destroyed((library.destroy_cq)(self.raw()));
            let channel = self.channel.as_ptr();
            destroyed((library.destroy_comp_channel)(channel));
        }
    }
}

impl std::fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CompletionQueue")
    }
}
