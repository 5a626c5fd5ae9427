//! Reads a plugin's static data without trusting its addresses.
//!
//! The kernel copies the bytes into a pipe and answers "bad address" where there is nothing to
//! read, so that a wild pointer becomes an error and no fault.

use std::ffi::c_void;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

use unisono_abi as abi;

use super::Refusal;

/// The smallest page of any system: a read never crosses a multiple of it.
const PAGE: u64 = 4096;

pub(super) struct Reader {
    from: io::PipeReader,
    to: io::PipeWriter,
}

impl Reader {
    pub(super) fn new() -> Result<Self, Refusal> {
        let (from, to) = io::pipe().map_err(|e| Refusal::Host(format!("no pipe: {e}")))?;
        Ok(Self { from, to })
    }

    /// Copies `out.len()` bytes from an address.
    fn copy(&mut self, address: u64, out: &mut [u8], what: &str) -> Result<(), Refusal> {
        let mut done = 0;
        while done < out.len() {
            let at = address.wrapping_add(done as u64);
            let n = (out.len() - done).min((PAGE - at % PAGE) as usize);
            // SAFETY: the address is only handed to the kernel, which answers EFAULT for what is
            // not mapped; this process never dereferences it. The pipe has room for a page.
            let wrote = unsafe { libc::write(self.to.as_raw_fd(), at as *const c_void, n) };
            let n = match usize::try_from(wrote) {
                Ok(n) if n > 0 => n,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
                _ => {
                    return Err(Refusal::Address {
                        what: what.to_owned(),
                        address: at,
                    });
                }
            };
            let piece = &mut out[done..done + n];
            let read = self.from.read_exact(piece);
            read.map_err(|e| Refusal::Host(format!("reading a pipe: {e}")))?;
            done += n;
        }
        Ok(())
    }

    pub(super) fn words<const N: usize>(
        &mut self,
        address: u64,
        what: &str,
    ) -> Result<[u64; N], Refusal> {
        let mut out = [0u64; N];
        self.part(address, N * 8, &mut out, what)?;
        Ok(out)
    }

    /// Copies the first `len` bytes of a struct, or the whole if it has fewer. The rest of `out`
    /// is left as it was.
    pub(super) fn part<T: Plain>(
        &mut self,
        address: u64,
        len: usize,
        out: &mut T,
        what: &str,
    ) -> Result<(), Refusal> {
        if !address.is_multiple_of(8) {
            return Err(Refusal::Address {
                what: format!("{what} (misaligned)"),
                address,
            });
        }
        let len = len.min(size_of::<T>());
        let mut bytes = vec![0; len];
        self.copy(address, &mut bytes, what)?;
        // SAFETY: `len` bytes fit, and every bit pattern is a valid `T`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut *out).cast(), len) };
        Ok(())
    }

    /// A borrowed string.
    pub(super) fn text(
        &mut self,
        text: abi::Str,
        what: &str,
        most: u64,
    ) -> Result<String, Refusal> {
        if text.len > most {
            return Err(Refusal::Count {
                what: format!("the length of {what}"),
                found: text.len,
                most,
            });
        }
        let mut bytes = vec![0; text.len as usize];
        self.copy(text.ptr as u64, &mut bytes, what)?;
        String::from_utf8(bytes).map_err(|_| Refusal::Text { what: what.into() })
    }

    /// A NUL-terminated string of at most `most` bytes.
    pub(super) fn c_text(&mut self, at: u64, what: &str, most: usize) -> Result<String, Refusal> {
        let mut bytes = Vec::new();
        while bytes.len() < most {
            let next = at.wrapping_add(bytes.len() as u64);
            // Never past the page that holds what is known to be part of the string.
            let mut piece = vec![0; (PAGE - next % PAGE).min(64) as usize];
            self.copy(next, &mut piece, what)?;
            if let Some(end) = piece.iter().position(|&b| b == 0) {
                bytes.extend_from_slice(&piece[..end]);
                return String::from_utf8(bytes).map_err(|_| Refusal::Text { what: what.into() });
            }
            bytes.extend_from_slice(&piece);
        }
        Err(Refusal::Count {
            what: format!("the length of {what}"),
            found: bytes.len() as u64,
            most: most as u64,
        })
    }
}

/// Types of which every bit pattern is valid.
///
/// # Safety
/// The type has only integers, raw pointers and optional function pointers.
pub(super) unsafe trait Plain {}

macro_rules! plain {
    ($($name:ty),+) => {$(
        // SAFETY: a plain struct of the contract.
        unsafe impl Plain for $name {}
    )+};
}
plain!(
    abi::Plugin,
    abi::Param,
    abi::LayoutEntry,
    abi::InstanceTable,
    abi::DeviceTable,
    abi::MemoryTable,
    abi::StreamTable,
    abi::EventTable,
    abi::LinkTable
);
// SAFETY: integers.
unsafe impl<const N: usize> Plain for [u64; N] {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_addresses_are_errors() {
        let here = 0u64;
        let reader_address = (&raw const here) as u64;
        let mut reader = Reader::new().unwrap();
        for address in [0, 8, 0xdead_beef_0000, u64::MAX - 7] {
            let read = reader.words::<2>(address, "x");
            assert!(matches!(read, Err(Refusal::Address { .. })), "{address:#x}");
        }
        assert!(matches!(
            reader.words::<1>(reader_address + 1, "x"),
            Err(Refusal::Address { .. })
        ));
    }

    #[test]
    fn large_and_small_things_arrive_whole() {
        let mut reader = Reader::new().unwrap();
        let data: Vec<u8> = (0..20_000u32).map(|i| (i % 251) as u8 + 1).collect();
        let mut out = vec![0; data.len()];
        reader.copy(data.as_ptr() as u64, &mut out, "x").unwrap();
        assert_eq!(out, data);
        let text = c"hello";
        assert_eq!(
            reader.c_text(text.as_ptr() as u64, "x", 64).unwrap(),
            "hello"
        );
        let endless = reader.c_text(data.as_ptr() as u64, "x", 128);
        assert!(matches!(
            endless,
            Err(Refusal::Count { .. } | Refusal::Text { .. })
        ));
        let long = abi::Str {
            ptr: data.as_ptr().cast(),
            len: u64::MAX,
        };
        assert!(matches!(
            reader.text(long, "x", 4096),
            Err(Refusal::Count { .. })
        ));
    }
}
