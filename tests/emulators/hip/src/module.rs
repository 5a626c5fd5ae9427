//! Images of code: a bundle with code objects for several architectures, or one code object.

use std::collections::HashMap;
use std::ffi::c_void;

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol};
use unisono_emulator_cuda::answer::Answer;
use unisono_emulator_cuda::code;

const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// `hipErrorNoBinaryForGpu`.
const NO_BINARY: u32 = 209;
/// Where a kernel's descriptor says how many bytes its arguments are.
const ARGUMENT_BYTES: usize = 8;
/// An ELF file's machine: AMD's.
const EM_AMDGPU: u16 = 224;
/// Numbers of architectures in an ELF file's flags.
const ARCHITECTURES: [(u32, &str); 3] = [(0x3f, "gfx90a"), (0x4c, "gfx942"), (0x41, "gfx1100")];

/// Kernels by name, with the bytes of their arguments, hidden ones included.
pub type Kernels = HashMap<String, usize>;

/// Reads from an image whose size nobody says.
struct Image(*const u8);

impl Image {
    /// # Safety
    /// The image has so many bytes there.
    unsafe fn bytes<'a>(&self, at: usize, length: usize) -> &'a [u8] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.add(at), length) }
    }

    /// # Safety
    /// As above.
    unsafe fn number(&self, at: usize) -> usize {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.bytes(at, 8) };
        bytes.try_into().map_or(0, u64::from_le_bytes) as usize
    }

    /// The code object for an architecture.
    ///
    /// # Safety
    /// The image is a bundle.
    unsafe fn of<'a>(&self, architecture: &str) -> Answer<&'a [u8]> {
        // SAFETY: the caller's promise.
        unsafe {
            let count = self.number(BUNDLE.len());
            let mut at = BUNDLE.len() + 8;
            for _ in 0..count.min(64) {
                let (offset, size, length) =
                    (self.number(at), self.number(at + 8), self.number(at + 16));
                let target = String::from_utf8_lossy(self.bytes(at + 24, length));
                if target == format!("hipv4-amdgcn-amd-amdhsa--{architecture}") {
                    if offset % 4096 != 0 {
                        return Err(code::INVALID_IMAGE);
                    }
                    return Ok(self.bytes(offset, size));
                }
                at += 24 + length;
            }
        }
        Err(NO_BINARY)
    }
}

/// The kernels that an image has for an architecture.
///
/// # Safety
/// The image is as long as its own tables say.
pub unsafe fn kernels(image: *const c_void, architecture: &str) -> Answer<Kernels> {
    if image.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let image = Image(image.cast());
    // SAFETY: the caller's promise; the first bytes say what it is.
    unsafe {
        if image.bytes(0, 4) != b"__CL" || image.bytes(0, BUNDLE.len()) != BUNDLE {
            return Err(code::INVALID_IMAGE);
        }
        read(image.of(architecture)?, architecture)
    }
}

/// The kernels of a code object.
fn read(code_object: &[u8], architecture: &str) -> Answer<Kernels> {
    let wrong = |_| code::INVALID_IMAGE;
    let file = ElfFile64::<object::LittleEndian>::parse(code_object).map_err(wrong)?;
    let header = file.elf_header();
    let endian = file.endian();
    let built_for = header.e_flags(endian).0 & 0xff;
    let known = ARCHITECTURES
        .iter()
        .any(|(n, name)| *n == built_for && *name == architecture);
    if header.e_machine(endian).0 != EM_AMDGPU || !known {
        return Err(NO_BINARY);
    }
    let mut kernels = Kernels::new();
    for symbol in file.dynamic_symbols() {
        let Some(name) = symbol.name().ok().and_then(|name| name.strip_suffix(".kd")) else {
            continue;
        };
        let section = symbol
            .section_index()
            .and_then(|i| file.section_by_index(i).ok());
        let bytes = section.and_then(|section| {
            let at = (symbol.address() - section.address()) as usize + ARGUMENT_BYTES;
            let bytes = section.data().ok()?.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes) as usize)
        });
        kernels.insert(name.to_owned(), bytes.ok_or(code::INVALID_IMAGE)?);
    }
    Ok(kernels)
}
