//! Devices are folders.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A device's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(pub PathBuf);

/// All devices, by name.
pub fn all() -> Vec<(String, Folder)> {
    let Some(root) = std::env::var_os("UNISONO_FAKE_VERBS") else {
        return Vec::new();
    };
    let Ok(entries) = std::fs::read_dir(Path::new(&root)) else {
        return Vec::new();
    };
    let mut all: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().join("ports").is_dir())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, Folder(entry.path()))
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

impl Folder {
    pub fn is_cut(&self) -> bool {
        self.0.join("cut").exists()
    }

    /// Counts the bytes of a packet that leaves the device, where there is a file for that.
    pub fn count(&self, bytes: usize) {
        let mut options = std::fs::OpenOptions::new();
        if let Ok(mut file) = options.append(true).open(self.0.join("sent")) {
            // One short line a packet: appended whole, also by two processes.
            let _ = writeln!(file, "{bytes}");
        }
    }

    /// Packets lost of a thousand.
    pub fn loss(&self) -> u32 {
        self.number("loss").unwrap_or(0)
    }

    /// How long a queue pair looks for its neighbour where there is none.
    pub fn patience(&self) -> Option<Duration> {
        let milliseconds = self.number("patience")?;
        Some(Duration::from_millis(milliseconds.into()))
    }

    pub fn takes_dmabufs(&self) -> bool {
        !self.0.join("no_dmabuf").exists()
    }

    pub fn inline_max(&self) -> u32 {
        self.number("inline").unwrap_or(256)
    }

    /// Keeps a line for whoever looks at what a queue pair was told; one that cannot be kept is missed.
    pub fn note(&self, line: &str) {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.0.join("told"));
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }

    pub fn is_active(&self) -> bool {
        let state = std::fs::read_to_string(self.0.join("ports/1/state"));
        state.is_ok_and(|text| text.trim_end().ends_with("ACTIVE"))
    }

    pub fn is_infiniband(&self) -> bool {
        let layer = std::fs::read_to_string(self.0.join("ports/1/link_layer"));
        layer.is_ok_and(|text| text.trim_end() == "InfiniBand")
    }

    pub fn lid(&self) -> u16 {
        self.number("ports/1/lid").unwrap_or(0) as u16
    }

    /// Entry of the address table, as 16 bytes.
    pub fn gid(&self, index: u8) -> Option<[u8; 16]> {
        let at = self.0.join("ports/1/gids").join(index.to_string());
        let text = std::fs::read_to_string(at).ok()?;
        let address: std::net::Ipv6Addr = text.trim().parse().ok()?;
        Some(address.octets())
    }

    fn has_gid(&self, gid: &[u8; 16]) -> bool {
        (0..16).any(|index| self.gid(index).as_ref() == Some(gid))
    }

    fn number(&self, file: &str) -> Option<u32> {
        std::fs::read_to_string(self.0.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

/// The device that has an address, on Ethernet by its GID, on InfiniBand by its LID.
pub fn find(gid: Option<&[u8; 16]>, lid: u16) -> Option<Folder> {
    all()
        .into_iter()
        .map(|(_, folder)| folder)
        .find(|folder| match gid {
            Some(gid) => folder.has_gid(gid),
            None => folder.lid() == lid,
        })
}
