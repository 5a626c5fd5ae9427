//! Who touched each cell last, so that accesses which nothing orders are found.

/// A queue and how many steps it had done.
pub(super) type Moment = (u16, u32);

/// The last accesses of all cells.
pub(super) struct Traces {
    /// The last write; at step 0, none.
    writes: Vec<Moment>,
    /// Reads since then: the last of each queue.
    reads: Vec<Vec<Moment>>,
}

impl Traces {
    pub(super) fn new(cells: usize) -> Self {
        Self {
            writes: vec![(0, 0); cells],
            reads: vec![Vec::new(); cells],
        }
    }

    /// Notes a read, or gives the queue whose write it races with.
    pub(super) fn read(&mut self, cell: u32, queue: usize, clock: &[u32]) -> Result<(), usize> {
        let cell = cell as usize;
        ordered(self.writes[cell], clock)?;
        let reads = &mut self.reads[cell];
        reads.retain(|(reader, _)| usize::from(*reader) != queue);
        reads.push((queue as u16, clock[queue]));
        Ok(())
    }

    /// Notes a write, or gives the queue whose access it races with.
    pub(super) fn write(&mut self, cell: u32, queue: usize, clock: &[u32]) -> Result<(), usize> {
        let cell = cell as usize;
        ordered(self.writes[cell], clock)?;
        for read in self.reads[cell].drain(..) {
            ordered(read, clock)?;
        }
        self.writes[cell] = (queue as u16, clock[queue]);
        Ok(())
    }
}

/// Whether who knows so much knows of a moment; else gives that moment's queue.
pub(super) fn ordered((queue, step): Moment, clock: &[u32]) -> Result<(), usize> {
    let queue = usize::from(queue);
    if clock[queue] >= step {
        Ok(())
    } else {
        Err(queue)
    }
}
