//! Accepted commands, packed as they came: a ring of words in which no command is torn.
//!
//! A batch is copied in by whole runs of words. Taking commands apart first would cost more than
//! most of them do.

/// Whole commands in order. A command's first word holds its size; see [`size`].
#[derive(Debug)]
pub(super) struct Ring {
    words: Box<[u64]>,
    head: usize,
    tail: usize,
    /// Where the upper part ends, while commands lie in `head..end` and then in `0..tail`.
    end: Option<usize>,
}

/// Words of the command that begins with `first`: 16 bits of its kind, then 16 of its size.
#[inline]
pub(super) const fn size(first: u64) -> usize {
    let b = first.to_ne_bytes();
    u16::from_ne_bytes([b[2], b[3]]) as usize / 8
}

/// The kind of the command that begins with `first`.
#[inline]
pub(super) const fn kind(first: u64) -> u16 {
    let b = first.to_ne_bytes();
    u16::from_ne_bytes([b[0], b[1]])
}

impl Ring {
    pub(super) fn new(words: usize) -> Self {
        Self {
            words: vec![0; words].into(),
            head: 0,
            tail: 0,
            end: None,
        }
    }

    /// The first command.
    #[inline]
    pub(super) fn front(&self) -> Option<&[u64]> {
        if self.head == self.tail && self.end.is_none() {
            return None;
        }
        let rest = &self.words[self.head..];
        Some(&rest[..size(rest[0])])
    }

    /// Drops the first command, if there is one.
    #[inline]
    pub(super) fn pop(&mut self) {
        let Some(length) = self.front().map(<[u64]>::len) else {
            return;
        };
        self.head += length;
        if self.end == Some(self.head) {
            (self.head, self.end) = (0, None);
        }
        if self.head == self.tail && self.end.is_none() {
            // Small queues stay in the same cache lines.
            (self.head, self.tail) = (0, 0);
        }
    }

    /// Copies in whole commands from the front of `commands`, as many as fit; how many, and where
    /// in the ring they lie (in two parts at most).
    #[inline]
    pub(super) fn push(&mut self, commands: &[u64]) -> u32 {
        let (taken, count) = self.push_run(commands);
        let rest = &commands[taken..];
        if rest.is_empty() {
            return count;
        }
        let first = size(rest[0]);
        if self.end.is_some() || first > self.head {
            return count;
        }
        // The rest begins again at the front, behind which the oldest command lies.
        if self.tail == self.head {
            (self.head, self.tail) = (0, 0);
        } else {
            self.end = Some(self.tail);
            self.tail = 0;
        }
        count + self.push_run(rest).1
    }

    /// As many commands as fit in one piece: their words and how many they are.
    #[inline]
    fn push_run(&mut self, commands: &[u64]) -> (usize, u32) {
        let limit = if self.end.is_some() {
            self.head
        } else {
            self.words.len()
        };
        let (mut taken, mut count) = (0, 0);
        while taken < commands.len() {
            let next = taken + size(commands[taken]);
            if next > limit - self.tail {
                break;
            }
            taken = next;
            count += 1;
        }
        self.words[self.tail..self.tail + taken].copy_from_slice(&commands[..taken]);
        self.tail += taken;
        (taken, count)
    }

    /// Calls `f` with each command of the last `count`.
    pub(super) fn for_last(&mut self, count: u32, mut f: impl FnMut(&mut [u64])) {
        let total = self
            .parts()
            .map(|part| commands_in(&self.words[part]))
            .into_iter()
            .sum::<u32>();
        let mut skip = total.saturating_sub(count);
        for part in self.parts() {
            let mut rest = &mut self.words[part];
            while let Some(&first) = rest.first() {
                let (command, behind) = rest.split_at_mut(size(first));
                if skip == 0 {
                    f(command);
                }
                skip = skip.saturating_sub(1);
                rest = behind;
            }
        }
    }

    fn parts(&self) -> [std::ops::Range<usize>; 2] {
        match self.end {
            Some(end) => [self.head..end, 0..self.tail],
            None => [self.head..self.tail, 0..0],
        }
    }
}

fn commands_in(mut words: &[u64]) -> u32 {
    let mut count = 0;
    while let Some(&first) = words.first() {
        words = &words[size(first)..];
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A command of some words, each holding a value but for the size in the first.
    fn command(length: u16, value: u32) -> Vec<u64> {
        let mut first = [0; 8];
        first[2..4].copy_from_slice(&(length * 8).to_ne_bytes());
        first[4..].copy_from_slice(&value.to_ne_bytes());
        let mut words = vec![u64::from(value); length.into()];
        words[0] = u64::from_ne_bytes(first);
        words
    }

    #[test]
    fn it_is_a_queue_of_bounded_size() {
        let mut random = 88_172_645_463_325_252_u64;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for capacity in [16, 23, 64] {
            let mut ring = Ring::new(capacity);
            let mut model: VecDeque<Vec<u64>> = VecDeque::new();
            let mut value = 0;
            for _ in 0..20_000 {
                let batch: Vec<_> = (0..next(5))
                    .map(|_| {
                        value += 1;
                        command(2 + next(9) as u16, value)
                    })
                    .collect();
                let taken = ring.push(&batch.concat()) as usize;
                let held = |queue: &VecDeque<Vec<u64>>| queue.iter().map(Vec::len).sum::<usize>();
                if model.is_empty() && !batch.is_empty() {
                    assert!(taken > 0, "an empty ring takes a command");
                }
                model.extend(batch.into_iter().take(taken));
                assert!(held(&model) <= capacity);
                let mut seen = Vec::new();
                ring.for_last(taken as u32, |command| seen.push(command.to_vec()));
                assert!(model.iter().rev().take(taken).rev().eq(&seen));
                for _ in 0..next(5) {
                    assert_eq!(ring.front(), model.front().map(Vec::as_slice));
                    ring.pop();
                    model.pop_front();
                }
            }
        }
    }
}
