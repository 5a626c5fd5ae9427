//! The child's half: asks the plugin, and tells the host each step.

#![allow(unsafe_code, reason = "moves file descriptors and sets limits")]

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use log::LevelFilter;

use super::report::{DeviceSummary, Line, Stage, Summary};
use crate::{Loader, LogSink, Plugin, PluginRecord, SearchPath, Status};

/// Asks the plugin in a file and tells the host, which is at the other end of standard output.
/// Gives the code to exit with. To be called by a helper program, at once and from its only thread.
#[must_use]
pub fn child_main(path: &Path) -> i32 {
    quiet_end();
    let Some(mut to) = take_standard_output() else {
        eprintln!("standard output cannot be moved");
        return 2;
    };
    let mut tell = |line: &Line| {
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            // If the host is gone there is nobody to tell.
            let _ = to.write_all(&text);
        }
    };
    let last = match ask(path, &mut |stage| tell(&Line::Stage(stage))) {
        Ok(summary) => Line::Sound(Box::new(summary)),
        Err(reason) => Line::Refused(reason),
    };
    tell(&last);
    tell(&Line::Stage(Stage::End));
    0
}

fn ask(path: &Path, enter: &mut dyn FnMut(Stage)) -> Result<Summary, String> {
    enter(Stage::Load);
    let loader = Loader::new(SearchPath::empty());
    let plugin = loader.load_path(path).map_err(|e| match e.refusal() {
        Some(refusal) => refusal.to_string(),
        None => e.to_string(),
    })?;
    let mut summary = facts(&plugin);
    enter(Stage::Create);
    let told = Arc::new(Told::default());
    let made = plugin.instantiate_with_log(&[], Arc::<Told>::clone(&told));
    summary.told = told.lines();
    let instance = match made {
        Ok(instance) => instance,
        Err(error) if error.status == Status::NoDriver => {
            summary.no_driver = Some(error.to_string());
            return Ok(summary);
        }
        Err(error) => return Err(error.to_string()),
    };
    enter(Stage::Devices);
    let devices = instance.devices().map_err(|e| e.to_string())?;
    summary.devices = devices
        .into_iter()
        .map(|device| DeviceSummary {
            name: device.name,
            kind: device.kind.to_string(),
            pci: device.pci,
            memory_bytes: device.memory_bytes,
        })
        .collect();
    enter(Stage::Links);
    let links = instance.link_report().map_err(|e| e.to_string())?;
    summary.links = links.into_iter().map(|link| link.kind).collect();
    summary.links.sort();
    summary.links.dedup();
    enter(Stage::Destroy);
    drop(instance);
    Ok(summary)
}

/// The first lines of a plugin's log.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

/// More than a plugin should say at once.
const LINES: usize = 16;

impl Told {
    fn lines(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl LogSink for Told {
    fn level(&self) -> LevelFilter {
        LevelFilter::Info
    }

    fn log(&self, record: &PluginRecord<'_>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < LINES && record.level <= LevelFilter::Info {
            lines.push(record.message.to_owned());
        }
    }
}

fn facts(plugin: &Plugin) -> Summary {
    let facts = plugin.facts();
    let missing = facts.functions.iter().filter(|f| !f.present);
    Summary {
        name: plugin.name().to_owned(),
        version: facts.version.clone(),
        vendor: facts.vendor.clone(),
        build_id: facts.build_id.clone(),
        abi: (facts.abi_major, facts.abi_minor),
        unsupported: missing.map(|f| format!("{}.{}", f.table, f.name)).collect(),
        params: plugin.params().iter().map(|p| p.name.clone()).collect(),
        ..Summary::default()
    }
}

/// No core dump of a crash that is expected, and no life without the host.
fn quiet_end() {
    let none = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain system calls. If they fail the child only ends less quietly.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

/// Standard output for this module alone: what the plugin prints goes to standard error.
fn take_standard_output() -> Option<File> {
    // SAFETY: the descriptor is new, so it is owned by the answer alone; 1 and 2 are open.
    unsafe {
        let ours = libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 3);
        if ours < 0 || libc::dup2(2, 1) < 0 {
            return None;
        }
        Some(File::from_raw_fd(ours))
    }
}
