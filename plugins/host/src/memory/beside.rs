//! Reads by way of memory of this thread's own, for destinations to which the kernel copies slowly ([`unisono_copy`]): it
//! copies to where it is fast, and from there this thread does, out of its cache.
#![allow(unsafe_code, reason = "copies to the caller's addresses")]

use std::cell::RefCell;

use unisono_plugin::Result;

/// Bytes that are read at once, and those that the second cache holds with their copy.
const PART: usize = 64 << 10;
/// For less, one more copy takes as long as it saves.
const WORTH: usize = 1 << 10;
const PAGE: usize = 4096;

thread_local! {
    /// Room for a part that begins anywhere in a page.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Whether so many bytes are better read so.
pub(super) fn is_worth(dst: *mut u8, from: u64, bytes: usize) -> bool {
    bytes >= WORTH && unisono_copy::is_slow(dst as usize, from as usize)
}

/// Reads `bytes` bytes at an address, part by part: `fetch` brings one, to where it says from where it says.
///
/// # Safety
/// `dst` is good for so many bytes, and nobody else uses them.
pub(super) unsafe fn read(
    dst: *mut u8,
    from: u64,
    bytes: usize,
    mut fetch: impl FnMut(*mut u8, u64, usize) -> Result<()>,
) -> Result<()> {
    ROOM.with_borrow_mut(|room| {
        room.resize(PART + PAGE, 0);
        // As far from a page's start as the source.
        let room = room.as_mut_ptr();
        let room = room.wrapping_add((from as usize).wrapping_sub(room as usize) % PAGE);
        for done in (0..bytes).step_by(PART) {
            let part = PART.min(bytes - done);
            fetch(room, from + done as u64, part)?;
            // SAFETY: the caller's promise; the room has a part behind any offset in a page.
            unsafe { unisono_copy::copy(dst.add(done), room, part) };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_come_by_way_of_where_the_kernel_is_fast() {
        for bytes in [WORTH, PART - 1, PART, 2 * PART + 17] {
            let source: Vec<u8> = (0..bytes).map(|i| (i % 253) as u8).collect();
            for offset in [0, 1, 16] {
                let mut target = vec![255; offset + bytes];
                let from = source.as_ptr() as u64;
                let fetch = |to: *mut u8, from: u64, part| {
                    assert!(part <= PART);
                    assert_eq!(to as usize % PAGE, from as usize % PAGE);
                    // SAFETY: a part of the source, and room for it.
                    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to, part) };
                    Ok(())
                };
                // SAFETY: it has room for so many bytes there.
                unsafe { read(target[offset..].as_mut_ptr(), from, bytes, fetch) }.unwrap();
                assert_eq!(target[offset..], source, "{bytes} at {offset}");
                assert!(target[..offset].iter().all(|byte| *byte == 255));
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let mut target = vec![0; PART];
        let fails = |_, _, _| Err(unisono_plugin::Error::invalid("gone"));
        // SAFETY: it has room for so many bytes.
        let read = unsafe { read(target.as_mut_ptr(), 4096, PART, fails) };
        assert!(read.unwrap_err().message().contains("gone"));
    }
}
