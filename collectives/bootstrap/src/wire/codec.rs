//! Little-endian integers and counted byte strings, written and read.
//!
//! Reading is total: whatever the bytes are, it gives a value or `None`, and allocates no more than it was given.

/// Appends values to a buffer.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    pub(crate) fn u8(mut self, value: u8) -> Writer {
        self.0.push(value);
        self
    }

    pub(crate) fn u16(self, value: u16) -> Writer {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Writer {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Writer {
        self.raw(&value.to_le_bytes())
    }

    /// Bytes of a length that the reader knows.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Bytes after their count.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Writer {
        self.u32(bytes.len() as u32).raw(bytes)
    }

    /// A list after its count.
    pub(crate) fn list<T>(self, items: &[T], write: impl Fn(Writer, &T) -> Writer) -> Writer {
        items.iter().fold(self.u32(items.len() as u32), write)
    }

    pub(crate) fn ranks(self, ranks: &[u32]) -> Writer {
        self.list(ranks, |writer, &rank| writer.u32(rank))
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Takes values off the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()? as usize;
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    /// UTF-8 text after its count.
    pub(crate) fn text(&mut self) -> Option<String> {
        self.bytes()
            .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
    }

    /// A list after its count, each item at least one byte long.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Reader<'a>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }

    pub(crate) fn ranks(&mut self) -> Option<Vec<u32>> {
        self.list(Reader::u32)
    }

    /// What is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// `value`, if nothing is left.
    pub(crate) fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = Writer::new()
            .u8(1)
            .u16(2)
            .u32(3)
            .u64(4)
            .bytes(b"five")
            .ranks(&[6, 7])
            .raw(&[8; 2])
            .finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(
            (reader.u8(), reader.u16(), reader.u32(), reader.u64()),
            (Some(1), Some(2), Some(3), Some(4))
        );
        assert_eq!(
            (reader.text().as_deref(), reader.ranks()),
            (Some("five"), Some(vec![6, 7]))
        );
        assert_eq!(reader.array(), Some([8; 2]));
        assert_eq!(reader.end(()), Some(()));
    }

    #[test]
    fn short_input_gives_nothing_and_allocates_nothing() {
        let huge = u32::MAX.to_le_bytes();
        assert_eq!(Reader::new(&huge).bytes(), None);
        assert_eq!(Reader::new(&huge).ranks(), None);
        assert_eq!(Reader::new(&[1, 2, 3]).u32(), None);
        assert_eq!(Reader::new(&[1]).end(()), None);
    }
}
