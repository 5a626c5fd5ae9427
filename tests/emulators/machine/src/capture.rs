//! Recording: what streams are given becomes nodes of a graph, and does not run.
//!
//! A recording begins on one stream, and ends there. An event that is recorded on a stream of it stands for
//! what that stream is behind, and whichever stream waits for that event takes part from then on: so a
//! recording forks, and is joined. What breaks a rule spoils it, as the vendors' manuals say: it then ends
//! with an error, on the stream where it began.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Broken, Event, Op, Stream};

/// A recording, of which streams have parts.
#[derive(Debug)]
struct Capture {
    /// A number that no other has.
    id: u64,
    /// The stream where it began.
    origin: u64,
    /// Of one device.
    device: u32,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    phase: Phase,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// A rule was broken.
    Spoilt,
    Over,
}

/// What one operation of a graph is behind.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// The nodes that must have ended, all of smaller numbers.
    pub after: Vec<usize>,
}

/// A stream's part in a recording.
#[derive(Debug)]
pub(crate) struct Part {
    capture: Arc<Capture>,
    /// What its next node is behind.
    after: Vec<usize>,
}

/// A point of a recording, for which an event stands.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    capture: Arc<Capture>,
    after: Vec<usize>,
}

/// Whether a stream records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capturing {
    /// No.
    No,
    /// Yes, and which recording.
    Active(u64),
    /// A recording that was spoilt, and has not ended.
    Invalid,
}

/// Why a call is refused that has to do with recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The device is broken.
    Broken(Broken),
    /// A stream that records begins to, or one that does not ends it.
    State,
    /// A stream that records cannot do it.
    Unsupported,
    /// The recording was spoilt before.
    Invalidated,
    /// Two recordings would become one.
    Merge,
    /// It began on another stream.
    Unmatched,
    /// What it forked was not joined.
    Unjoined,
    /// It would wait for what is not part of it.
    Isolation,
    /// The event stands for a point of a recording.
    CapturedEvent,
}

impl From<Broken> for Refused {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl Capture {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.book().phase == Phase::Over
    }

    fn spoil(&self) {
        let mut book = self.book();
        if book.phase == Phase::Open {
            book.phase = Phase::Spoilt;
        }
    }

    /// Spoils it, and says why.
    fn refuse(&self, why: Refused) -> Refused {
        self.spoil();
        why
    }

    fn is_sound(&self) -> Result<(), Refused> {
        match self.book().phase {
            Phase::Open => Ok(()),
            Phase::Spoilt | Phase::Over => Err(Refused::Invalidated),
        }
    }

    /// Ends it, on a stream behind these nodes.
    fn end(&self, after: &[usize]) -> Result<Vec<Node>, Refused> {
        let mut book = self.book();
        let phase = std::mem::replace(&mut book.phase, Phase::Over);
        let nodes = std::mem::take(&mut book.nodes);
        if phase != Phase::Open {
            return Err(Refused::Invalidated);
        }
        let mut joined = vec![false; nodes.len()];
        let mut next = after.to_vec();
        while let Some(node) = next.pop() {
            if !std::mem::replace(&mut joined[node], true) {
                next.extend(&nodes[node].after);
            }
        }
        if joined.contains(&false) {
            return Err(Refused::Unjoined);
        }
        Ok(nodes)
    }
}

impl Part {
    pub(crate) fn is_over(&self) -> bool {
        self.capture.is_over()
    }

    /// Records an operation. One that was spoilt records nothing any more.
    pub(crate) fn add(&mut self, op: Op) {
        let mut book = self.capture.book();
        if book.phase == Phase::Open {
            let after = std::mem::replace(&mut self.after, vec![book.nodes.len()]);
            book.nodes.push(Node { op, after });
        }
    }

    /// What comes next is behind a point, too.
    fn join(&mut self, point: &Point) {
        self.after.extend(&point.after);
        self.after.sort_unstable();
        self.after.dedup();
    }
}

impl Stream {
    /// Begins a recording, which no other has the number of.
    ///
    /// # Errors
    /// If it records.
    pub fn begin_capture(&self, id: u64) -> Result<(), Refused> {
        let mut part = self.part();
        if part.is_some() {
            return Err(Refused::State);
        }
        *part = Some(Part {
            capture: Arc::new(Capture {
                id,
                origin: self.id,
                device: self.device.index,
                book: Mutex::default(),
            }),
            after: Vec::new(),
        });
        Ok(())
    }

    /// Ends it; what was recorded.
    ///
    /// # Errors
    /// If nothing began here, or something was not as it must be.
    pub fn end_capture(&self) -> Result<Vec<Node>, Refused> {
        let mut slot = self.part();
        let part = slot.take().ok_or(Refused::State)?;
        if part.capture.origin != self.id {
            let why = part.capture.refuse(Refused::Unmatched);
            *slot = Some(part);
            return Err(why);
        }
        part.capture.end(&part.after)
    }

    /// Whether it records.
    #[must_use]
    pub fn capturing(&self) -> Capturing {
        match &*self.part() {
            None => Capturing::No,
            Some(part) => match part.capture.is_sound() {
                Ok(()) => Capturing::Active(part.capture.id),
                Err(_) => Capturing::Invalid,
            },
        }
    }

    /// Somebody called what no thread may while it records.
    pub fn spoil_capture(&self) {
        if let Some(part) = &*self.part() {
            part.capture.spoil();
        }
    }

    /// What a stream that records cannot be asked; it spoils the recording.
    ///
    /// # Errors
    /// If it records.
    pub fn not_capturing(&self) -> Result<(), Refused> {
        match &*self.part() {
            None => Ok(()),
            Some(part) => Err(part.capture.refuse(Refused::Unsupported)),
        }
    }

    /// Records an event: a point of the recording, if there is one.
    ///
    /// # Errors
    /// If the device is broken, or the recording spoilt.
    pub fn record_event(self: &Arc<Self>, event: &Arc<Event>) -> Result<(), Refused> {
        if let Some(part) = &*self.part() {
            part.capture.is_sound()?;
            event.capture_at(Point {
                capture: Arc::clone(&part.capture),
                after: part.after.clone(),
            });
            return Ok(());
        }
        let number = event.record();
        Ok(self.run(Op::Record(Arc::clone(event), number))?)
    }

    /// Waits for an event. For a point of a recording: takes part in it from then on.
    ///
    /// # Errors
    /// If the device is broken, or a recording's rule is. So if a graph would wait for what is not part of it,
    /// unless `external` says that its runs are to.
    pub fn wait_event(self: &Arc<Self>, event: &Arc<Event>, external: bool) -> Result<(), Refused> {
        let mut slot = self.part();
        match (&mut *slot, event.point()) {
            (Some(part), _) if external => {
                part.capture.is_sound()?;
                // The recording that is the last one when it runs.
                part.add(Op::Await(Arc::clone(event), 0));
                Ok(())
            }
            (Some(part), None) => {
                part.capture.is_sound()?;
                Err(part.capture.refuse(Refused::Isolation))
            }
            (Some(part), Some(point)) if Arc::ptr_eq(&part.capture, &point.capture) => {
                part.capture.is_sound()?;
                part.join(&point);
                Ok(())
            }
            (Some(part), Some(point)) => {
                part.capture.is_sound()?;
                point.capture.spoil();
                Err(part.capture.refuse(Refused::Merge))
            }
            (None, Some(point)) if point.capture.is_over() => Err(Refused::CapturedEvent),
            (None, Some(point)) => {
                point.capture.is_sound()?;
                // A recording of several devices: nobody here has one.
                if point.capture.device != self.device.index {
                    return Err(point.capture.refuse(Refused::Unsupported));
                }
                *slot = Some(Part {
                    capture: point.capture,
                    after: point.after,
                });
                Ok(())
            }
            (None, None) => {
                drop(slot);
                Ok(self.run(Op::Await(Arc::clone(event), event.last()))?)
            }
        }
    }
}

impl Event {
    /// What an event cannot be asked that stands for a point of a recording; it spoils that.
    ///
    /// # Errors
    /// If it does.
    pub fn not_captured(&self) -> Result<(), Refused> {
        match self.point() {
            None => Ok(()),
            Some(point) => Err(point.capture.refuse(Refused::CapturedEvent)),
        }
    }
}
