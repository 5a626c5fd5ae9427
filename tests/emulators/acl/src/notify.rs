//! Notifies: each opens one wait of one stream, and resets itself.
//!
//! One that is opened twice before anybody waited would lose an opening on the real device: here the
//! device is broken, so that a program that relies on it is found out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use unisono_emulator::space::Kind;
use unisono_emulator::{Backing, Broken, Compare, Internal, Op};
use unisono_emulator_cuda::handle::Table;

use crate::answer::{Answer, MEMORY_ALLOCATION, NO_NOTIFY_RESOURCE, PARAM_INVALID, give, runtime};
use crate::context::{current, machine};
use crate::stream;

/// `ACL_NOTIFY_DEVICE_USE_ONLY`.
const DEVICE_ONLY: u64 = 1;

/// A device's notifies: words that its streams see.
struct Words {
    base: u64,
    backing: Arc<Backing>,
    free: Vec<usize>,
}

/// One notify.
pub struct Notify {
    device: u32,
    number: usize,
    address: u64,
    backing: Arc<Backing>,
}

static NOTIFY: Table<Notify> = Table::new();
static WORDS: [Mutex<Option<Words>>; 64] = [const { Mutex::new(None) }; 64];

impl Notify {
    fn word(&self) -> &AtomicU64 {
        // SAFETY: one of the words of the backing, which this keeps.
        unsafe { AtomicU64::from_ptr(self.backing.at().cast::<u64>().add(self.number)) }
    }
}

impl Words {
    fn make(device: u32) -> Answer<Self> {
        let machine = machine()?;
        let notifies = machine.facts.notifies;
        let bytes = (notifies * 8) as u64;
        let backing = Arc::new(Backing::new(device, bytes).map_err(|_| MEMORY_ALLOCATION)?);
        let space = &machine.space;
        let base = space.take(bytes, 4096).ok_or(MEMORY_ALLOCATION)?;
        let access = 1 << device;
        space.put(base, bytes, Kind::Own(Arc::clone(&backing)), access);
        let free = (0..notifies).rev().collect();
        Ok(Self {
            base,
            backing,
            free,
        })
    }
}

runtime! {
    fn aclrtCreateNotify(handle: *mut u64, flags: u64) {
        let device = current()?.index;
        if flags & !DEVICE_ONLY != 0 {
            return Err(PARAM_INVALID);
        }
        let mut words = WORDS[device as usize % 64].lock().unwrap_or_else(PoisonError::into_inner);
        let words = match &mut *words {
            Some(words) => words,
            none => none.insert(Words::make(device)?),
        };
        let number = words.free.pop().ok_or(NO_NOTIFY_RESOURCE)?;
        let address = words.base + number as u64 * 8;
        let backing = Arc::clone(&words.backing);
        let notify = Notify { device, number, address, backing };
        notify.word().store(0, Ordering::SeqCst);
        let made = NOTIFY.add(Arc::new(notify))?;
        // SAFETY: the caller's.
        unsafe { give(handle, made) }
    }

    fn aclrtDestroyNotify(handle: u64) {
        let notify = NOTIFY.remove(handle)?;
        let mut words = WORDS[notify.device as usize % 64].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(words) = &mut *words {
            words.free.push(notify.number);
        }
        Ok(())
    }

    fn aclrtRecordNotify(handle: u64, stream: u64) {
        let (notify, stream) = (NOTIFY.get(handle)?, stream::of(stream)?);
        let device = Arc::clone(&stream.device);
        let open = Internal(Arc::new(move || {
            if notify.word().swap(1, Ordering::SeqCst) != 0 {
                eprintln!("emulator: notify {} is opened twice", notify.number);
                device.break_down(Broken::Launch);
            }
        }));
        stream::submit(&stream, Op::Do(open))
    }

    /// With a timeout of 0, for ever; others are not emulated.
    fn aclrtWaitAndResetNotify(handle: u64, stream: u64, timeout: u32) {
        let (notify, stream) = (NOTIFY.get(handle)?, stream::of(stream)?);
        if notify.device != stream.device.index || timeout != 0 {
            return Err(PARAM_INVALID);
        }
        let address = notify.address;
        let compare = Compare::Equal;
        stream::submit(&stream, Op::Wait { address, value: 1, compare, wide: true })?;
        stream::submit(&stream, Op::Write { address, value: 0, wide: true })
    }
}
