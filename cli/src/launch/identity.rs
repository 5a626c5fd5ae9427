//! What tells a job's ranks from everyone else: its name and its secret.

#![allow(unsafe_code, reason = "makes a file in memory")]

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result};

/// A fresh job's name, and its secret in a file that only this user can read and that ends with
/// this process, however that ends.
pub struct Identity {
    pub job: String,
    secret: File,
}

impl Identity {
    pub fn fresh() -> Result<Self> {
        let mut random = [0; 40];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut random))
            .context("reading /dev/urandom for the job's secret")?;
        let (name, secret) = random.split_at(8);
        let mut file = memory_file().context("making a file in memory for the job's secret")?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(hex(secret).as_bytes())?;
        Ok(Self {
            job: format!("unisono-run-{}", hex(name)),
            secret: file,
        })
    }

    /// Where the ranks, and what they start, find the secret while this process lives.
    pub fn secret_path(&self) -> String {
        format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.secret.as_raw_fd()
        )
    }
}

fn memory_file() -> std::io::Result<File> {
    // SAFETY: a plain system call with a text that ends in 0.
    let fd = unsafe { libc::memfd_create(c"unisono-secret".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned by nobody else.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono::bootstrap::Secret;

    #[test]
    fn the_secret_is_private_fresh_and_readable_where_it_is_said_to_be() {
        let (one, two) = (Identity::fresh().unwrap(), Identity::fresh().unwrap());
        assert_ne!(one.job, two.job);
        Secret::from_file(one.secret_path().as_ref()).unwrap();
        let read = |identity: &Identity| std::fs::read(identity.secret_path()).unwrap();
        assert_eq!(read(&one).len(), 64);
        assert_ne!(read(&one), read(&two));
    }
}
