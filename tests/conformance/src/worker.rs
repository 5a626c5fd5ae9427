//! One process of one check.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Outcome, Stop};
use crate::peer::Peer;
use crate::suite::{how_it_died, wait, worker};

/// How long the second process may live on after the first has answered.
const LATE: Duration = Duration::from_secs(20);

/// Runs one role of a check in this process. `socket` is this process's standard input; the second
/// process has `peer_params` in place of those of `params` with the same names.
///
/// # Errors
/// If the answer cannot be written.
pub fn run(
    check: &Check,
    role: u32,
    plugin: PathBuf,
    params: Vec<(String, String)>,
    peer_params: &[(String, String)],
    mut socket: UnixStream,
) -> std::io::Result<()> {
    if role > 0 {
        let peer = Peer::new(socket, role)?;
        let outcome = guarded(check, &Case::new(plugin, params, role, Some(peer.clone())));
        peer.finish(&outcome);
        return Ok(());
    }
    let outcome = if check.processes > 1 {
        two(check, &plugin, &params, peer_params)
    } else {
        guarded(check, &Case::new(plugin, params, 0, None))
    };
    let text = serde_json::to_vec(&outcome).map_err(std::io::Error::other)?;
    socket.write_all(&text)
}

/// The first of two processes: starts the other and answers for both.
fn two(
    check: &Check,
    plugin: &Path,
    params: &[(String, String)],
    peer_params: &[(String, String)],
) -> Outcome {
    let mut theirs = params.to_vec();
    theirs.retain(|(name, _)| peer_params.iter().all(|(other, _)| other != name));
    theirs.extend_from_slice(peer_params);
    let started = (|| -> std::io::Result<_> {
        let (here, there) = UnixStream::pair()?;
        let runner = std::env::current_exe()?;
        let child = worker(&runner, plugin, check, 1, &theirs, there).spawn()?;
        Ok((child, Peer::new(here, 0)?))
    })();
    let (mut child, peer) = match started {
        Ok(started) => started,
        Err(error) => return Outcome::Fail(format!("cannot start a second process: {error}")),
    };
    let case = Case::new(plugin.to_owned(), params.to_vec(), 0, Some(peer.clone()));
    let ours = guarded(check, &case);
    peer.finish(&ours);
    let theirs = match wait(&mut child, LATE) {
        Ok(Some(status)) if status.success() => peer.outcome().unwrap_or(Outcome::Pass),
        Ok(Some(_)) if case.was_killed() => Outcome::Pass,
        Ok(Some(status)) => Outcome::Fail(how_it_died(status)),
        Ok(None) => Outcome::Fail(format!("its second process did not end within {LATE:?}")),
        Err(error) => Outcome::Fail(error.to_string()),
    };
    ours.worse(theirs)
}

/// A check that panics has failed.
fn guarded(check: &Check, case: &Case) -> Outcome {
    let run = catch_unwind(AssertUnwindSafe(|| (check.run)(case)));
    let checked: Checked = run.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Stop::failed(format!(
            "the check panicked: {}",
            text.unwrap_or("no message")
        )))
    });
    checked.into()
}
