//! All code objects in one file, of which the runtime takes what fits its device.
//!
//! The form is that of LLVM's offload bundles: a magic, the number of entries, for each its offset, size
//! and target, then the code objects. So the plugin need not know what architecture a device is: the
//! runtime's struct that says so has changed its layout between releases.

use crate::CODE_OBJECTS;

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// Code objects begin at pages.
const PAGE: usize = 4096;

/// The bundle of [`CODE_OBJECTS`].
#[must_use]
pub fn bundle() -> Vec<u8> {
    // The first entry is the host's, and empty.
    let host = ("host-x86_64-unknown-linux--".to_owned(), [].as_slice());
    let entries = std::iter::once(host)
        .chain(CODE_OBJECTS.map(|(architecture, code)| {
            (format!("hipv4-amdgcn-amd-amdhsa--{architecture}"), code)
        }));
    let entries: Vec<(String, &[u8])> = entries.collect();
    let table: usize = entries.iter().map(|(target, _)| 24 + target.len()).sum();
    let (mut out, mut code) = (MAGIC.to_vec(), Vec::new());
    let first = (MAGIC.len() + 8 + table).next_multiple_of(PAGE);
    out.extend((entries.len() as u64).to_le_bytes());
    for (target, object) in &entries {
        let numbers = [first + code.len(), object.len(), target.len()];
        out.extend(numbers.iter().flat_map(|n| (*n as u64).to_le_bytes()));
        out.extend(target.as_bytes());
        code.extend_from_slice(object);
        code.resize(code.len().next_multiple_of(PAGE), 0);
    }
    out.resize(first, 0);
    out.append(&mut code);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_object_is_where_the_table_says() {
        let all = bundle();
        let number = |at: usize| {
            let bytes = all[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes) as usize
        };
        let mut at = MAGIC.len() + 8;
        assert_eq!(number(MAGIC.len()), 1 + CODE_OBJECTS.len());
        for index in 0..=CODE_OBJECTS.len() {
            let (offset, size, length) = (number(at), number(at + 8), number(at + 16));
            let target = String::from_utf8_lossy(&all[at + 24..at + 24 + length]);
            at += 24 + length;
            let Some((architecture, code)) = index.checked_sub(1).map(|i| CODE_OBJECTS[i]) else {
                assert_eq!((size, &target[..5]), (0, "host-"));
                continue;
            };
            assert!(target.ends_with(&format!("--{architecture}")), "{target}");
            assert_eq!(offset % PAGE, 0);
            assert_eq!(&all[offset..offset + size], code);
            assert_eq!(&code[..4], b"\x7fELF");
        }
    }
}
