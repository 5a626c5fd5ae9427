//! Whether a file is in the hands of those who may run code here.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::library;
use crate::Refusal;

const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Refuses a file that anybody could have written or put in its place.
pub(super) fn check(file: &Path) -> Result<(), Refusal> {
    let unreadable = |e: std::io::Error| Refusal::Unreadable(e.to_string());
    // Links are followed: what counts is the file that is loaded, and where that lies.
    let file = fs::canonicalize(file).map_err(unreadable)?;
    let meta = fs::metadata(&file).map_err(unreadable)?;
    if meta.mode() & OTHERS_WRITE != 0 {
        return Err(writable(&file, &meta));
    }
    let Some(folder) = file.parent() else {
        return Ok(());
    };
    let folder_meta = fs::metadata(folder).map_err(unreadable)?;
    // In a sticky folder everyone may add files, but not touch those of others.
    let ours = [0, library::effective_user()].contains(&meta.uid());
    let safe = folder_meta.mode() & STICKY != 0 && ours;
    if folder_meta.mode() & OTHERS_WRITE != 0 && !safe {
        return Err(writable(folder, &folder_meta));
    }
    Ok(())
}

fn writable(path: &Path, meta: &Metadata) -> Refusal {
    Refusal::Writable {
        path: path.to_owned(),
        mode: meta.mode() & 0o7777,
    }
}
