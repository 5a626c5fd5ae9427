//! Posted links when something is wrong at the other end.

use std::time::Duration;

use unisono_hal::{Queue, State, Status};

use super::share_gone::{die, wait_for_death};
use crate::case::Case;
use crate::check::Check;
use crate::ends::{Ends, link, link_over, posted};
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::peer::CheckChannel;
use crate::queue;

const G: &str = "fault";

pub(super) const CHECKS: &[Check] = &[
    Check::two(
        G,
        "peer_killed",
        "A killed peer is an error of the link, soon and with words.",
        killed,
    ),
    Check::two(
        G,
        "peer_leaves",
        "A peer that leaves in order is no error until more is put, which fails with words.",
        leaves,
    ),
    Check::two(
        G,
        "impostor",
        "Who cannot prove its rank gets no link.",
        impostor,
    ),
    Check::two(
        G,
        "abort",
        "An aborted link fails, takes nothing more, and writes nothing more.",
        abort,
    ),
    Check::two(
        G,
        "abort_connecting",
        "A link may be aborted while it connects.",
        abort_connecting,
    ),
    Check::one(
        G,
        "bad_address",
        "An address that nobody gave is refused, or never comes up.",
        bad_address,
    ),
];

/// The link fails by itself.
fn gone(ends: &mut Ends<'_>) -> Checked {
    let error = queue::failure("noticing that the peer is gone", &mut ends.link)?;
    let expected = matches!(error.status, Status::Peer | Status::Link);
    ensure!(expected, "it fails as {}: {error}", error.status);
    refused("a poll after a failure", ends.link.poll(queue::BUDGET), &[])?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    refused("a put after a failure", ends.link.submit(&mut batch), &[])?;
    let state = ends.link.state()?.state;
    ensure!(state == State::Failed, "a link that failed is {state:?}");
    Ok(())
}

fn killed(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    ends.put_one(1)?;
    case.peer()?.meet(1)?;
    if ends.role() == 1 {
        die();
    }
    case.expect_death();
    wait_for_death(case.peer()?);
    gone(&mut ends)
}

fn leaves(case: &Case) -> Checked {
    let mut ends = Ends::connect(case, 1)?;
    ends.put_one(1)?;
    case.peer()?.meet(1)?;
    if ends.role() == 1 {
        let mut batch = queue::batch();
        batch.put(&ends.put(0, 10_000, 0, 0));
        ends.submit(&mut batch)?;
        queue::until("the last put", || {
            Ok(ends.link.poll(queue::BUDGET)?.state == State::Idle)
        })?;
        drop(ends);
        case.peer()?.meet(2)?;
        return case.peer()?.meet(3);
    }
    case.peer()?.meet(2)?;
    // Its last put is here, and nothing is wrong, however often one looks.
    ends.await_flag(0, 2)?;
    let end = std::time::Instant::now() + Duration::from_millis(200);
    while std::time::Instant::now() < end {
        let state = ends.link.poll(queue::BUDGET)?.state;
        ensure!(
            state == State::Idle,
            "a link whose peer has left is {state:?}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    queue::until("noticing that the peer has left", || {
        let mut batch = queue::batch();
        batch.put(&ends.put(0, 8, 0, 0));
        let answer = ends
            .link
            .submit(&mut batch)
            .and_then(|_| ends.link.poll(queue::BUDGET));
        let Err(error) = answer else {
            return Ok(false);
        };
        ensure!(
            error.status == Status::Peer && !error.message.is_empty(),
            "it fails as {}: {error}",
            error.status
        );
        Ok(true)
    })?;
    case.peer()?.meet(3)
}

fn impostor(case: &Case) -> Checked {
    let (instance, peer) = (posted(case)?, case.peer()?);
    let channel = match case.role() {
        0 => CheckChannel::new(peer, 1),
        _ => CheckChannel::impostor(peer, 1),
    };
    let mut link = link_over(case, &instance, 1, channel)?;
    let end = std::time::Instant::now() + Duration::from_millis(1500);
    while std::time::Instant::now() < end {
        match link.poll(queue::BUDGET) {
            Ok(state) => {
                let state = state.state;
                ensure!(
                    state == State::Connecting,
                    "a link to an impostor is {state:?}"
                );
            }
            Err(error) => {
                let fits = matches!(error.status, Status::Auth | Status::Peer | Status::Link);
                ensure!(fits && !error.message.is_empty(), "it fails so: {error}");
                break;
            }
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    peer.meet(1)
}

fn abort(case: &Case) -> Checked {
    let (mut ends, peer) = (Ends::connect(case, 1)?, case.peer()?);
    ends.put_one(1)?;
    // The peer polls until it has heard that this end has its bytes, too.
    peer.meet(1)?;
    let mut batch = queue::batch();
    batch.put(&ends.put(0, 8, 0, 0));
    if ends.role() == 0 {
        ends.link.aborter().abort();
        let error = queue::failure("an aborted link", &mut ends.link)?;
        ensure!(
            error.status == Status::Aborted,
            "it fails as {}: {error}",
            error.status
        );
        refused("a put after an abort", ends.link.submit(&mut batch), &[])?;
        peer.meet(2)?;
        // Now the peer writes; nothing may land any more.
        peer.meet(3)?;
        let _ = ends.link.poll(queue::BUDGET);
        let value = ends.flags.value(0);
        ensure!(value == 1, "after the abort flag 0 went to {value}");
        return peer.meet(4);
    }
    peer.meet(2)?;
    // It may have noticed already.
    let _ = ends.link.submit(&mut batch);
    let _ = ends.link.poll(queue::BUDGET);
    peer.meet(3)?;
    peer.meet(4)
}

fn abort_connecting(case: &Case) -> Checked {
    let instance = posted(case)?;
    let mut own = link(case, &instance, 1)?;
    if case.role() == 0 {
        // The other end never polls.
        let _ = own.poll(queue::BUDGET);
        own.aborter().abort();
        let error = queue::failure("an aborted link", &mut own)?;
        ensure!(
            error.status == Status::Aborted,
            "it fails as {}: {error}",
            error.status
        );
    }
    case.peer()?.meet(1)?;
    drop(own);
    // What went wrong with one link is no harm to the next.
    let mut ends = Ends::of(case, &instance, 2, 4096)?;
    ends.put_one(9)?;
    ends.part()
}

fn bad_address(case: &Case) -> Checked {
    use std::sync::Arc;
    let instance = posted(case)?;
    let address = instance
        .address()?
        .ok_or_else(|| Stop::unsupported("it has no address"))?;
    let (socket, _other) = std::os::unix::net::UnixStream::pair()?;
    let peer = crate::peer::Peer::new(socket, 0)?;
    let half = address[..address.len() / 2].to_vec();
    for bad in [Vec::new(), vec![0; address.len()], vec![0xff; 256], half] {
        let made = instance.connect(unisono_hal::LinkRequest {
            peer: 1,
            device: [0; 16],
            channel: Arc::new(CheckChannel::new(&peer, 1)),
            peer_address: &bad,
        });
        match made {
            Err(error) => ensure!(!error.message.is_empty(), "it is refused without a message"),
            Ok(mut link) => {
                // Polls must neither crash nor bring it up.
                for _ in 0..50 {
                    match link.poll(queue::BUDGET) {
                        Ok(state) => {
                            let state = state.state;
                            ensure!(state == State::Connecting, "a link to nobody is {state:?}");
                        }
                        Err(error) => {
                            ensure!(!error.message.is_empty(), "it fails without a message");
                            break;
                        }
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
    Ok(())
}
