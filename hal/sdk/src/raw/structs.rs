//! Structs of the boundary: read and written within their `struct_size`, whatever minor the host is.

use core::ffi::c_char;
use std::ffi::c_void;

use unisono_abi as abi;

use crate::{Error, Result};

/// A struct that begins with its `struct_size`.
///
/// # Safety
/// `repr(C)`, its first field is `struct_size: u32`, and all bytes zero are a value of it.
pub unsafe trait Versioned: Copy {}

macro_rules! versioned {
    ($($ty:ident),+ $(,)?) => {$(
        // SAFETY: so declared in unisono-abi, where `zeroed` says why zeros are a value.
        unsafe impl Versioned for abi::$ty {}
    )+};
}
versioned!(
    Channel,
    DeviceInfo,
    Dmabuf,
    Error,
    Host,
    InstanceInfo,
    LinkInfo,
    LinkRequest,
    LinkStatistics,
    MemoryRequest,
    MemoryView,
    QueueState,
    Sleep,
    StreamRequest,
    SupportQuery,
);

/// Reads a struct of the host's: what an older host does not give is zero.
///
/// # Safety
/// `from` is NULL or points to as many readable bytes as its `struct_size` says.
pub unsafe fn read<T: Versioned>(from: *const T, what: &'static str) -> Result<T> {
    if from.is_null() {
        return Err(Error::invalid(format!("{what} is NULL")));
    }
    // SAFETY: not NULL; a Versioned struct begins with its size.
    let size = unsafe { from.cast::<u32>().read() } as usize;
    if size < 8 {
        return Err(Error::invalid(format!(
            "{what}: struct_size {size} is too small"
        )));
    }
    // SAFETY: the bytes are there by the caller's promise; zeros are a value for the rest.
    unsafe {
        let mut value = core::mem::zeroed::<T>();
        from.cast::<u8>()
            .copy_to_nonoverlapping((&raw mut value).cast(), size.min(size_of::<T>()));
        Ok(value)
    }
}

/// Writes a struct to the host: no more of it than its `struct_size` covers (all of it if that is
/// 0), which stays as it was.
///
/// # Safety
/// `to` points to as many writable bytes as its `struct_size` says, or to all of `T` if that is 0.
#[inline]
pub unsafe fn write<T: Versioned>(to: *mut T, value: &T) {
    let all = size_of::<T>();
    // SAFETY: a Versioned struct begins with its size, 4 bytes; the rest by the caller's promise.
    unsafe {
        let size = to.cast::<u32>().read() as usize;
        let from = (&raw const *value).cast::<u8>().add(4);
        let to = to.cast::<u8>().add(4);
        if size == 0 || size >= all {
            from.copy_to_nonoverlapping(to, all - 4);
        } else if size > 4 {
            from.copy_to_nonoverlapping(to, size - 4);
        }
    }
}

/// Writes an array to the host: its entries lie as far apart as the first one's `struct_size` says.
///
/// # Safety
/// `to` is NULL or has room for `cap` entries, each as for [`write`]; `count` is NULL or writable.
pub unsafe fn write_array<T: Versioned>(
    to: *mut T,
    cap: u32,
    count: *mut u32,
    values: &[T],
) -> Result<()> {
    if count.is_null() || (to.is_null() && cap != 0) {
        return Err(Error::invalid("the array or its count is NULL"));
    }
    // SAFETY: checked above and promised by the caller.
    unsafe {
        count.write(u32::try_from(values.len()).unwrap_or(u32::MAX));
        if cap == 0 {
            return Ok(());
        }
        let stride = match to.cast::<u32>().read() as usize {
            0 => size_of::<T>(),
            size => size,
        };
        for (i, value) in values.iter().take(cap as usize).enumerate() {
            let entry = to.byte_add(i * stride);
            entry.cast::<u32>().write(stride as u32);
            write(entry, value);
        }
    }
    Ok(())
}

/// Writes bytes of at most [`abi::EXPORT_MAX`] to the host.
///
/// # Safety
/// `to` has room for `cap` bytes; `len` is NULL or writable.
pub unsafe fn write_bytes(to: *mut c_void, cap: u64, len: *mut u64, bytes: &[u8]) -> Result<()> {
    if len.is_null() || to.is_null() {
        return Err(Error::invalid("the buffer or its length is NULL"));
    }
    if bytes.len() > abi::EXPORT_MAX {
        return Err(Error::new(
            crate::Status::Internal,
            format!(
                "the plugin's description has {} bytes, more than 256",
                bytes.len()
            ),
        ));
    }
    // SAFETY: checked above and promised by the caller.
    unsafe {
        len.write(bytes.len() as u64);
        if cap < bytes.len() as u64 {
            return Err(Error::invalid(format!(
                "the buffer has {cap} bytes, the description {}",
                bytes.len()
            )));
        }
        to.cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
    Ok(())
}

/// Writes an error to the host's struct, if it gave one.
///
/// # Safety
/// `out` is NULL or as for [`write`].
pub unsafe fn write_error(out: *mut abi::Error, error: &Error) {
    if out.is_null() {
        return;
    }
    let mut raw = abi::Error::zeroed();
    raw.status = error.status().code();
    raw.vendor_code = error.vendor_code();
    raw.words = error.words();
    fill(&mut raw.message, error.message());
    // SAFETY: the caller's promise.
    unsafe { write(out, &raw) };
}

/// Fills a NUL-terminated field, cut at a character's edge.
pub fn fill(field: &mut [c_char], text: &str) {
    let Some(room) = field.len().checked_sub(1) else {
        return;
    };
    let text = &text[..text.floor_char_boundary(room)];
    for (to, from) in field.iter_mut().zip(text.bytes().chain(std::iter::once(0))) {
        *to = from.cast_signed() as c_char;
    }
}

/// A borrowed string for the host.
pub const fn text(text: &str) -> abi::Str {
    abi::Str {
        ptr: text.as_ptr().cast(),
        len: text.len() as u64,
    }
}

/// The bytes of a borrowed string.
///
/// # Safety
/// `len` is 0 or `ptr` points to that many readable bytes, unchanged as long as `'a`.
pub unsafe fn bytes<'a>(text: abi::Str) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { slice(text.ptr.cast(), text.len) }
}

/// A slice of the host's; empty if it is NULL.
///
/// # Safety
/// As for [`bytes`], with elements for bytes.
pub unsafe fn slice<'a, T>(ptr: *const T, len: u64) -> &'a [T] {
    if ptr.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(ptr, len as usize) }
}
