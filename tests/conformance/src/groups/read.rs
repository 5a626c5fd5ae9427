//! READ: the memory of another process, which a kind of memory stands for.

use unisono_abi::command_kind;
use unisono_hal::{Device, ExportKind, Memory, MemoryKind, MemoryRequest, Read};

use super::copy::pattern;
use super::share_gone::{die, wait_for_death};
use crate::case::{Case, supports};
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure, refused};
use crate::queue;
use crate::store::Store;

const G: &str = "read";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "own",
        "A process reads its own memory, from where it is told, when the command's turn comes.",
        own,
    ),
    Check::two(
        G,
        "peer",
        "A process reads another's memory, as that tells it where.",
        peer,
    ),
    Check::two(
        G,
        "gone",
        "A process that has ended is not read: its queue fails, or what told of it is refused.",
        gone,
    ),
];

/// A device that reads, and what stands for this process.
fn reading(case: &Case) -> Checked<(Device, Memory)> {
    let device = case.streams(command_kind::COPY)?;
    if !supports(&device, command_kind::READ) {
        return Err(Stop::unsupported("`supports` says no to READ"));
    }
    case.needs(&[("memory", "export_memory"), ("memory", "import_memory")])?;
    let process = device.alloc(&MemoryRequest::new(MemoryKind::Process, 64).exportable())?;
    Ok((device, process))
}

fn token(process: &Memory) -> Checked<Vec<u8>> {
    Ok(process.export(ExportKind::Process)?)
}

/// What is read and from where, for `bytes` bytes.
struct Place {
    told: Store,
    to: Store,
    bytes: u64,
}

impl Place {
    fn new(device: &Device, bytes: u64) -> Checked<Self> {
        Ok(Self {
            told: Store::new(device, 64)?,
            to: Store::new(device, bytes)?,
            bytes,
        })
    }

    /// A read of the process at `base`, `back` bytes behind where is told.
    fn read(&self, process: u64, back: u64) -> Read {
        Read {
            process,
            base: self.told.at(),
            offset: back.wrapping_neg(),
            dst: self.to.at(),
            bytes: self.bytes,
        }
    }
}

fn own(case: &Case) -> Checked {
    let (device, process) = reading(case)?;
    let mut stream = device.stream(0)?;
    for len in [1, 4095, 300_001] {
        let bytes = pattern(len as usize, 5);
        let (from, place) = (Store::new(&device, len)?, Place::new(&device, len)?);
        from.write(0, &bytes)?;
        // Where it is comes by a command before the read, in the same batch.
        let source = Store::new(&device, 64)?;
        source.write(0, &(from.at() + 4096).to_le_bytes())?;
        for by in [token(&process)?, Vec::new()] {
            let imported = match by.is_empty() {
                true => None,
                false => Some(device.import(&by)?),
            };
            let base = imported.as_ref().unwrap_or(&process).base();
            let mut batch = queue::batch();
            batch.copy(place.told.at(), source.at(), 8);
            batch.read(&place.read(base, 4096));
            queue::run(&mut stream, &mut batch)?;
            let right = place.to.read(0, len)? == bytes;
            ensure!(right, "{len} bytes of its own came out otherwise");
            place.to.write(0, &vec![0; len as usize])?;
            place.told.write(0, &[0; 8])?;
        }
    }
    Ok(())
}

fn peer(case: &Case) -> Checked {
    const LEN: u64 = 1 << 20;
    let ((device, process), peer) = (reading(case)?, case.peer()?);
    let theirs = device.import(&peer.exchange(1, &token(&process)?)?)?;
    let role = u64::from(case.role());
    let (from, place) = (Store::new(&device, LEN)?, Place::new(&device, LEN)?);
    for round in 0..4 {
        from.write(0, &pattern(LEN as usize, 2 * round + role))?;
        let told = peer.exchange(2 + 2 * round, &from.at().to_le_bytes())?;
        place.told.write(0, &told)?;
        let mut stream = device.stream(0)?;
        let mut batch = queue::batch();
        batch.read(&place.read(theirs.base(), 0));
        queue::run(&mut stream, &mut batch)?;
        let wanted = pattern(LEN as usize, 2 * round + 1 - role);
        let right = place.to.read(0, LEN)? == wanted;
        ensure!(right, "round {round}: other bytes than the peer has");
        peer.meet(3 + 2 * round)?;
    }
    Ok(())
}

fn gone(case: &Case) -> Checked {
    let ((device, process), peer) = (reading(case)?, case.peer()?);
    if case.role() == 1 {
        let from = Store::new(&device, 4096)?;
        peer.send(1, &token(&process)?)?;
        peer.send(2, &from.at().to_le_bytes())?;
        peer.recv(3)?;
        die();
    }
    case.expect_death();
    let description = peer.recv(1)?;
    let theirs = device.import(&description)?;
    let place = Place::new(&device, 4096)?;
    place.told.write(0, &peer.recv(2)?)?;
    peer.send(3, &[])?;
    wait_for_death(peer);
    refused("a process that is gone", device.import(&description), &[])?;
    let mut stream = device.stream(0)?;
    let mut batch = queue::batch();
    batch.read(&place.read(theirs.base(), 0));
    queue::submit(&mut stream, &mut batch)?;
    queue::failure("a read of a process that is gone", &mut stream)?;
    Ok(())
}
