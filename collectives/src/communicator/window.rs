//! Windows: memory that the ranks of a communicator may reach in each other directly.
//!
//! Where links are mapped, a plan over windows reads and writes the peers' buffers without staging.
//! Buffers in a window are found by their address, so the calls are the same. The rule: if a call's
//! buffers lie in windows on one rank, they do on all, at the same offsets; a call that breaks it
//! fails with a mismatch that names both ranks. Of a reduce that goes for the inputs: the output is the
//! root's alone, which may have it in any window, or in none. And a message may go from a window to any memory, and to a
//! window from any: its sender says where it lies (`execute/pointed.rs`).

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use unisono_hal::{ExportKind, Memory, MemoryKind, MemoryRequest};
use unisono_plan::Op;

use super::asked::Ends;
use super::buffer::{self, bytes_of};
use super::shared::mix;
use super::{Communicator, Shared};
use crate::Element;
use crate::error::{Error, Result};
use crate::execute::{LONG_MESSAGE, Mapped, PeerBuffers, Windows};

/// Buffers of one call that lie in windows on every rank.
pub(super) struct Windowed {
    pub peers: Arc<[PeerBuffers]>,
    /// Windows and offsets, on which all ranks must agree, as one number.
    pub key: u64,
}

/// Which buffer of a call in place holds only this rank's block, and where it then lies.
#[derive(Clone, Copy)]
pub(super) enum InPlace<'a> {
    /// Both buffers are whole, or they are apart.
    No,
    /// The input is this rank's block of the output.
    InputInOutput(Starts<'a>),
    /// The output is this rank's block of the input.
    OutputInInput(Starts<'a>),
}

/// Where each rank's block starts.
#[derive(Clone, Copy)]
pub(super) enum Starts<'a> {
    /// Blocks of so many bytes.
    Equal(u64),
    /// Blocks of so many elements, of so many bytes each.
    Parts(&'a [u64], u64),
}

impl Starts<'_> {
    /// In bytes.
    pub(super) fn of(self, rank: u32) -> u64 {
        match self {
            Self::Equal(bytes) => u64::from(rank) * bytes,
            Self::Parts(counts, element) => {
                counts.iter().take(rank as usize).sum::<u64>() * element
            }
        }
    }
}

impl Windows {
    /// The peers' buffers, if those of a call lie in windows. An end of 0 takes no part.
    pub(super) fn find(&self, ends: Ends, in_place: InPlace<'_>) -> Option<Windowed> {
        if !self.has_any() {
            return None;
        }
        // A block of the other buffer lies at another offset on each rank; it follows from the
        // whole one.
        let whole = match in_place {
            InPlace::No => ends,
            InPlace::InputInOutput(_) => Ends { input: 0, ..ends },
            InPlace::OutputInInput(_) => Ends { output: 0, ..ends },
        };
        let all = self.all();
        let find = |address: u64| all.iter().find(|window| window.is_reached_at(address));
        let input = (whole.input != 0).then(|| find(whole.input));
        let output = (whole.output != 0).then(|| find(whole.output));
        let (input, output) = (flatten(input)?, flatten(output)?);
        let ranks = input.or(output)?.bases.len();
        let offset =
            |w: Option<&Arc<Mapped>>, address: u64| w.map_or(0, |w| address - w.memory.base());
        let [from, to] = [offset(input, whole.input), offset(output, whole.output)];
        let base = |w: Option<&Arc<Mapped>>, rank: usize, offset: u64| {
            w.map_or(0, |w| w.bases[rank] + offset)
        };
        let peers = (0..ranks).map(|rank| {
            let (input, output) = (base(input, rank, from), base(output, rank, to));
            match in_place {
                InPlace::No => PeerBuffers { input, output },
                InPlace::InputInOutput(starts) => PeerBuffers {
                    input: output + starts.of(rank as u32),
                    output,
                },
                InPlace::OutputInInput(starts) => PeerBuffers {
                    input,
                    output: input + starts.of(rank as u32),
                },
            }
        });
        let number = |w: Option<&Arc<Mapped>>| w.map_or(0, |w| w.number);
        let key = [number(input), from, number(output), to]
            .into_iter()
            .fold(0, |key, part| mix(key ^ part));
        Some(Windowed {
            peers: peers.collect(),
            key,
        })
    }
}

/// `None` if an end takes part and lies in no window.
fn flatten<T>(end: Option<Option<T>>) -> Option<Option<T>> {
    match end {
        Some(None) => None,
        Some(found) => Some(found),
        None => Some(None),
    }
}

/// A window's memory on this rank: a slice, where the CPU can reach it.
pub struct Window<T> {
    shared: Arc<Shared>,
    inner: Arc<Mapped>,
    len: usize,
    elements: PhantomData<T>,
}

/// Memory of the caller's that is registered for as long as this lives.
pub struct Registration {
    shared: Arc<Shared>,
    inner: Arc<Mapped>,
}

impl Communicator {
    /// Zeroed memory for `len` elements that the peers can reach directly where links are mapped.
    /// Every rank must call it with the same length, and keep it for as long as any rank uses it in calls. The root of a
    /// reduce does well to have its output there too, if the inputs are: else it reduces alone.
    ///
    /// # Errors
    /// If a device has not enough memory or cannot export it; [`Error::Invalid`] if lengths differ.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Window<T>> {
        let shared = &self.shared;
        shared.usable()?;
        let bytes = bytes_of::<T>("alloc", len)?;
        let request = MemoryRequest::new(MemoryKind::Data, bytes);
        let request = shared.world.shared(request.lazy().align(4096));
        let memory = self.device().alloc(&request)?;
        let export = memory.export(ExportKind::Process).unwrap_or_default();
        let mut mine = bytes.to_le_bytes().to_vec();
        mine.extend(export);
        let all = shared.exchange(&mine)?;
        if let Some(rank) = all
            .iter()
            .position(|b| !b.starts_with(&bytes.to_le_bytes()))
        {
            return Err(Error::invalid(
                "alloc",
                format!(
                    "rank {rank} asked for another length than rank {}",
                    self.rank()
                ),
            ));
        }
        let (bases, imports) = self.import_all(&memory, &all);
        // Plans over windows need all pairs: if one rank cannot map another, nobody uses them.
        let mapped = shared.exchange(&[u8::from(!bases.is_empty())])?;
        let inner = Arc::new(Mapped {
            number: shared.windows.next_number(),
            memory,
            bases: if mapped.iter().all(|m| m.as_slice() == [1]) {
                bases
            } else {
                Vec::new()
            },
            imports,
        });
        shared.windows.add(inner.clone());
        // Nobody sends from it before all know it: who receives need not be in this call.
        let window = Window {
            shared: shared.clone(),
            inner,
            len,
            elements: PhantomData,
        };
        shared.exchange(b"known")?;
        Ok(window)
    }

    /// Where this rank sees each rank's memory; empty if not all can be mapped.
    fn import_all(&self, own: &Memory, exports: &[Vec<u8>]) -> (Vec<u64>, Vec<Memory>) {
        let mut bases = Vec::with_capacity(exports.len());
        let mut imports = Vec::new();
        for (rank, export) in exports.iter().enumerate() {
            if rank as u32 == self.rank() {
                bases.push(own.base());
                continue;
            }
            let mapped = self.shared.is_mapped(rank as u32) && export.len() > 8;
            let imported = mapped.then(|| self.device().import(&export[8..]));
            let Some(Ok(memory)) = imported else {
                return (Vec::new(), Vec::new());
            };
            bases.push(memory.base());
            imports.push(memory);
        }
        (bases, imports)
    }

    /// Makes memory of the caller's fast to use: pinned and registered with the device, until the
    /// answer is dropped. Memory that peers cannot map is still staged; `explain` says what ran.
    /// Every rank must call it; it waits for what is pending, on all of them. [`Registration::end`] ends it.
    ///
    /// # Safety
    /// `[address, address + bytes)` stays mapped and is not freed until the answer is dropped.
    ///
    /// # Errors
    /// What the plugin says.
    #[allow(unsafe_code, reason = "takes memory by address")]
    pub unsafe fn register(&self, address: *mut u8, bytes: u64) -> Result<Registration> {
        let shared = &self.shared;
        shared.usable()?;
        shared.rest()?;
        // SAFETY: the caller promises what the plugin needs.
        let pinned = unsafe { self.device().register_host(address.cast(), bytes) };
        // Nobody makes another call before all have pinned.
        let all = shared.exchange(&[u8::from(pinned.is_ok())])?;
        let failed = all.iter().position(|pinned| pinned.as_slice() != [1]);
        let memory = match failed {
            None => pinned?,
            Some(rank) => {
                // Nor before all have let go again.
                let own = pinned.map(drop);
                shared.exchange(b"unpinned")?;
                own?;
                return Err(Error::Unsupported {
                    call: "register",
                    why: format!(
                        "rank {rank} could not register its memory; its own error says why"
                    ),
                });
            }
        };
        let inner = Arc::new(Mapped {
            number: self.shared.windows.next_number(),
            memory,
            bases: Vec::new(),
            imports: Vec::new(),
        });
        self.shared.windows.add(inner.clone());
        Ok(Registration {
            shared: self.shared.clone(),
            inner,
        })
    }
}

impl<T> Window<T> {
    /// The address, as this communicator's device sees it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.inner.memory.base()
    }

    /// Whether peers reach it directly.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        !self.inner.bases.is_empty()
    }

    /// Fills this rank's part. Blocks until the elements are there. Peers may read them in collectives
    /// that this rank calls later.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are more or fewer elements; what the plugin says.
    pub fn write(&mut self, from: &[T]) -> Result<()>
    where
        T: Element,
    {
        let transfer = self.shared.world.transfer.as_deref();
        buffer::write(&self.inner.memory, transfer, self.len, from)
    }

    /// What this rank's part holds. Blocks until the elements are here.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are more or fewer elements; what the plugin says.
    pub fn read(&self, to: &mut [T]) -> Result<()>
    where
        T: Element,
    {
        let transfer = self.shared.world.transfer.as_deref();
        buffer::read(&self.inner.memory, transfer, self.len, to)
    }
}

impl Registration {
    /// Ends it. Every rank must call it; it waits for what is pending, on all of them. Merely dropped, it
    /// waits for all that this process has under way on the device, which may be another rank's call that
    /// waits for this one.
    ///
    /// # Errors
    /// Why the communicator is broken; the registration has ended all the same.
    pub fn end(self) -> Result<()> {
        let shared = self.shared.clone();
        let rested = shared.rest();
        drop(self);
        rested?;
        shared.exchange(b"unpinned").map(|_| ())
    }
}

impl Shared {
    /// Whether an operation on a message of so many bytes may go over windows here.
    pub(super) fn goes_over_windows(&self, op: Op, bytes: u64) -> bool {
        match op {
            // Of a reduce the root tells where its output is.
            Op::Reduce { .. } => self.tells,
            // Of a message the sender says where it is, to a rank that listens.
            Op::Send { to } => bytes >= LONG_MESSAGE && self.lane.lock().may_point(to),
            // And which way it comes.
            Op::Recv { .. } => false,
            _ => true,
        }
    }

    /// Waits until no rank has anything under way, before something that waits for all that a device has
    /// under way: ranks may be threads on one device.
    fn rest(&self) -> Result<()> {
        self.flush(self.world.options.timeouts.op);
        self.usable()?;
        self.exchange(b"at rest").map(|_| ())
    }
}

impl<T> Drop for Window<T> {
    fn drop(&mut self) {
        self.shared.windows.remove(&self.inner);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.windows.remove(&self.inner);
    }
}

#[allow(unsafe_code, reason = "a slice of memory that the plugin allocated")]
impl<T: Element> Window<T> {
    /// The elements of this rank's part, where the CPU sees them; elsewhere they are read and written.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[T]> {
        let start = self.inner.memory.host_ptr()?.cast::<T>();
        // SAFETY: the memory holds `len` elements and was zeroed when made, which is valid for
        // every element type. Peers touch it only inside collectives that this rank is in too, for
        // which the slice is borrowed.
        Some(unsafe { std::slice::from_raw_parts(start, self.len) })
    }

    /// As [`as_slice`](Self::as_slice), to write.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        let start = self.inner.memory.host_ptr()?.cast::<T>();
        // SAFETY: as in `as_slice`; `&mut self` excludes other borrows.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.len) })
    }
}

impl<T: Element> Deref for Window<T> {
    type Target = [T];

    /// # Panics
    /// If the device's memory is not visible to the CPU.
    fn deref(&self) -> &[T] {
        self.as_slice().expect(buffer::UNSEEN)
    }
}

impl<T: Element> DerefMut for Window<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice().expect(buffer::UNSEEN)
    }
}

impl<T> std::fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Window({} elements)", self.len)
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Registration({} bytes)", self.inner.memory.len())
    }
}
