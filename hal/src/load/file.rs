//! What can be known of a library before any of its code runs.

use std::fs::File;
use std::io;
use std::path::Path;

use object::elf::{EM_386, EM_AARCH64, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64};
use object::elf::{ET_CORE, ET_DYN, ET_EXEC, ET_REL};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader};
use object::read::{FileKind, ReadCache};
use object::{Endianness, Object, ObjectSymbol, ReadRef};
use sha2::{Digest, Sha256};

use crate::Refusal;

#[cfg(target_pointer_width = "64")]
type Native = object::elf::FileHeader64<Endianness>;
#[cfg(target_pointer_width = "32")]
type Native = object::elf::FileHeader32<Endianness>;

/// What is known of a library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The libraries that it needs.
    pub(super) needed: Vec<String>,
}

/// Checks a file: a whole ELF shared library for this machine that exports the query.
pub(super) fn check(path: &Path) -> Result<Facts, Refusal> {
    let file = File::open(path).map_err(|e| Refusal::Unreadable(e.to_string()))?;
    let meta = file.metadata();
    let meta = meta.map_err(|e| Refusal::Unreadable(e.to_string()))?;
    if !meta.is_file() {
        return Err(Refusal::Unreadable("it is not a file".into()));
    }
    // Reads only the parts that are asked for: vendors' libraries can be large.
    let cache = ReadCache::new(file);
    check_data(&cache, meta.len())
}

fn check_data<'data, R: ReadRef<'data>>(data: R, len: u64) -> Result<Facts, Refusal> {
    let magic = data.read_bytes_at(0, 4.min(len)).unwrap_or_default();
    if magic != object::elf::ELFMAG {
        return Err(Refusal::NotElf);
    }
    if len < size_of::<Native>() as u64 {
        return Err(truncated("it ends within the ELF header"));
    }
    let kind = FileKind::parse(data).map_err(|e| truncated(&e.to_string()))?;
    let native = if cfg!(target_pointer_width = "64") {
        FileKind::Elf64
    } else {
        FileKind::Elf32
    };
    let bits = usize::BITS;
    if kind != native {
        return Err(Refusal::Machine {
            found: format!("a machine of {} bits", 96 - bits),
            wanted: std::env::consts::ARCH,
        });
    }
    let header = Native::parse(data).map_err(|e| truncated(&e.to_string()))?;
    let endian = header.endian().map_err(|e| truncated(&e.to_string()))?;
    machine(header.e_machine(endian), endian)?;
    match header.e_type(endian) {
        ET_DYN => {}
        ET_REL => return Err(Refusal::NotShared("object file".into())),
        ET_EXEC => return Err(Refusal::NotShared("program".into())),
        ET_CORE => return Err(Refusal::NotShared("core dump".into())),
        other => return Err(Refusal::NotShared(format!("file of type {other:?}"))),
    }
    whole(header, endian, data, len)?;
    content(data)
}

/// Refuses another processor or byte order.
fn machine(found: object::elf::Machine, endian: Endianness) -> Result<(), Refusal> {
    const NAMES: &[(object::elf::Machine, &str)] = &[
        (EM_X86_64, "x86_64"),
        (EM_386, "x86"),
        (EM_AARCH64, "aarch64"),
        (EM_RISCV, "riscv64"),
        (EM_PPC64, "powerpc64"),
        (EM_S390, "s390x"),
    ];
    let wanted = std::env::consts::ARCH;
    let name = NAMES.iter().find(|(machine, _)| *machine == found);
    // A machine that this list does not have is left to the system's loader.
    let known = NAMES.iter().any(|(_, name)| *name == wanted);
    let same = !known || name.is_some_and(|(_, name)| *name == wanted);
    if same && endian == Endianness::default() {
        return Ok(());
    }
    let found = match name {
        Some((_, name)) if endian == Endianness::default() => (*name).to_owned(),
        Some((_, name)) => format!("{name} of the other byte order"),
        None => format!("the unknown machine {found:?}"),
    };
    Err(Refusal::Machine { found, wanted })
}

/// Refuses a file that ends before what its headers promise.
fn whole<'data, R: ReadRef<'data>>(
    header: &Native,
    endian: Endianness,
    data: R,
    len: u64,
) -> Result<(), Refusal> {
    let segments = header.program_headers(endian, data);
    let segments = segments.map_err(|e| truncated(&e.to_string()))?;
    for (i, segment) in segments.iter().enumerate() {
        let (at, size) = segment.file_range(endian);
        if at.checked_add(size).is_none_or(|end| end > len) {
            return Err(truncated(&format!(
                "segment {i} ends at byte {}, the file has {len}",
                at.saturating_add(size)
            )));
        }
    }
    let sections = header.section_headers(endian, data);
    for (i, section) in sections
        .map_err(|e| truncated(&e.to_string()))?
        .iter()
        .enumerate()
    {
        let Some((at, size)) = section.file_range(endian) else {
            continue;
        };
        if at.checked_add(size).is_none_or(|end| end > len) {
            return Err(truncated(&format!(
                "section {i} ends at byte {}, the file has {len}",
                at.saturating_add(size)
            )));
        }
    }
    Ok(())
}

/// The libraries it needs, and whether it exports the query.
fn content<'data, R: ReadRef<'data>>(data: R) -> Result<Facts, Refusal> {
    let broken = |e: object::Error| truncated(&e.to_string());
    let elf = ElfFile::<Native, R>::parse(data).map_err(broken)?;
    let mut facts = Facts::default();
    let dynamic = elf.elf_dynamic_table().map_err(broken)?;
    for entry in dynamic.iter() {
        if entry.tag == object::elf::DT_NEEDED {
            let name = dynamic.string(entry).map_err(broken)?;
            facts
                .needed
                .push(String::from_utf8_lossy(name).into_owned());
        }
    }
    // Without section headers there is nothing to look in; the system's loader will tell.
    let stripped = elf.elf_section_table().is_empty();
    let exported = elf
        .dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.name() == Ok(unisono_abi::QUERY_SYMBOL));
    if !exported && !stripped {
        return Err(Refusal::NoSymbol);
    }
    Ok(facts)
}

/// The SHA-256 of a file, in hexadecimal.
pub(super) fn sha256(path: &Path) -> Result<String, Refusal> {
    let unreadable = |e: io::Error| Refusal::Unreadable(e.to_string());
    let mut file = File::open(path).map_err(unreadable)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n = io::Read::read(&mut file, &mut buffer).map_err(unreadable)?;
        if n == 0 {
            break;
        }
        hasher.update(&buffer[..n]);
    }
    let digest = hasher.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn truncated(what: &str) -> Refusal {
    Refusal::Truncated(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own program: a whole ELF file, without the query.
    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    fn check(bytes: &[u8]) -> Result<Facts, Refusal> {
        check_data(bytes, bytes.len() as u64)
    }

    #[test]
    fn random_bytes_in_the_headers_never_panic() {
        let mut bytes = own();
        assert_eq!(check(&bytes), Err(Refusal::NoSymbol));
        let header = Native::parse(&*bytes).unwrap();
        let sections = header.e_shoff(Endianness::default()) as usize;
        let mut state = 0x2545_f491_4f6c_dd1du64;
        for turn in 0..600 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let room = if turn % 2 == 0 {
                0..1024
            } else {
                sections..bytes.len()
            };
            let at = room.start + state as usize % room.len();
            let old = bytes[at];
            bytes[at] = (state >> 32) as u8;
            // Whatever it says, it says it without a panic.
            let _ = check(&bytes);
            bytes[at] = old;
        }
    }

    #[test]
    fn the_digest_of_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let digest = sha256(file.path()).unwrap();
        assert!(digest.starts_with("ba7816bf8f01cfea") && digest.len() == 64);
    }
}
