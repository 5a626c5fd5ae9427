//! Devices of the stand-in for libibverbs: folders, as in sysfs. One set for each test process.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder of devices; gone with it.
pub struct Devices {
    folder: TempDir,
}

/// A device's facts.
#[derive(Clone, Copy)]
pub struct Facts {
    pub name: &'static str,
    pub layer: &'static str,
    pub rate: &'static str,
    /// Last part of its address: 10.7.0.x.
    pub host: u8,
}

/// The stand-in, built beside this test.
pub fn library() -> String {
    let mut at = std::env::current_exe().expect("a test has a path");
    at.pop();
    let file = "libunisono_fake_verbs.so";
    let beside = [at.join(file), at.join("..").join(file)];
    let newest = beside.iter().filter_map(|path| {
        let changed = path.metadata().and_then(|data| data.modified()).ok()?;
        Some((changed, path))
    });
    match newest.max() {
        Some((_, path)) => path.to_string_lossy().into_owned(),
        None => panic!(
            "{file} is not in {}: build the workspace first",
            at.display()
        ),
    }
}

impl Devices {
    /// Ethernet devices "fake0", "fake1" and so on, in a process that has no others.
    pub fn ethernet(count: u8) -> Self {
        Self::none().with(count)
    }

    /// The same, for other processes, which are told of [`path`](Self::path)`("")` in their environment.
    pub fn apart(count: u8) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }.with(count)
    }

    fn with(self, count: u8) -> Self {
        let names = ["fake0", "fake1", "fake2", "fake3"];
        let devices = self;
        for host in 0..count {
            devices.add(Facts {
                name: names[usize::from(host)],
                layer: "Ethernet",
                rate: "100 Gb/sec (4X EDR)",
                host: host + 1,
            });
        }
        devices
    }

    #[allow(unsafe_code, reason = "sets the process's environment")]
    pub fn none() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // SAFETY: each test is a process of its own, or the only test of its file, and no other
        // thread runs yet.
        unsafe { std::env::set_var("UNISONO_FAKE_VERBS", folder.path()) };
        Self { folder }
    }

    pub fn add(&self, facts: Facts) {
        let at = self.path(facts.name);
        let port = at.join("ports/1");
        write(&port.join("link_layer"), facts.layer);
        write(&port.join("state"), "4: ACTIVE");
        write(&port.join("rate"), facts.rate);
        write(&port.join("lid"), &facts.host.to_string());
        write(&at.join("device/numa_node"), "1");
        let gid = format!("0000:0000:0000:0000:0000:ffff:0a07:{:04x}", facts.host);
        write(&port.join("gids/0"), &gid);
        write(&port.join("gid_attrs/types/0"), "RoCE v2");
    }

    pub fn path(&self, device: &str) -> PathBuf {
        self.folder.path().join(device)
    }

    /// No packet leaves or reaches the device from now on.
    pub fn cut(&self, device: &str) {
        write(&self.path(device).join("cut"), "");
    }

    /// Packets go again.
    pub fn mend(&self, device: &str) {
        let _ = std::fs::remove_file(self.path(device).join("cut"));
    }

    /// Bytes that have left each device since they were first asked for, of both ends of a pair.
    pub fn count_sent(&self, devices: &[&str]) -> Vec<u64> {
        let count = |device: &&str| {
            let at = self.path(device).join("sent");
            let lines = std::fs::read_to_string(&at);
            let Ok(lines) = lines else {
                write(&at, "");
                return 0;
            };
            lines
                .lines()
                .filter_map(|line| line.parse::<u64>().ok())
                .sum()
        };
        devices.iter().map(count).collect()
    }

    pub fn set(&self, device: &str, file: &str, text: &str) {
        write(&self.path(device).join(file), text);
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}
