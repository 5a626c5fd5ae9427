//! The control channel as plugins see it: bound to one communicator, in its own ranks.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use unisono_bootstrap::{Control, Directory, Prover, Tag};
use unisono_hal::{Channel, Received, Status};

/// Tags of plugins' messages, apart from the communicator's own.
const PLUGIN_TAGS: u64 = 1 << 63;

pub(super) struct ControlChannel {
    pub control: Control,
    pub prover: Prover,
    pub table: Directory,
    pub id: u64,
    pub rank: u32,
    pub members: Vec<u32>,
    /// Messages that did not fit the buffer they were asked into.
    pub kept: Mutex<HashMap<(u32, u64), Vec<u8>>>,
}

impl ControlChannel {
    fn member(&self, rank: u32) -> Result<u32, Status> {
        self.members
            .get(rank as usize)
            .copied()
            .ok_or(Status::Invalid)
    }

    fn tag(&self, tag: u64) -> Tag {
        Tag {
            communicator: self.id,
            sequence: PLUGIN_TAGS | tag,
        }
    }
}

impl Channel for ControlChannel {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.members.len() as u32
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn prove(&self, transcript: &[u8]) -> Result<[u8; 64], Status> {
        Ok(self.prover.prove(transcript))
    }

    fn verify(&self, rank: u32, transcript: &[u8], signature: &[u8; 64]) -> Result<(), Status> {
        let member = self.member(rank)?;
        if self.table.verify(member, transcript, signature) {
            Ok(())
        } else {
            Err(Status::Auth)
        }
    }

    fn send(&self, rank: u32, tag: u64, data: &[u8]) -> Result<(), Status> {
        if data.len() > 64 << 10 {
            return Err(Status::Invalid);
        }
        let member = self.member(rank)?;
        self.control
            .send(member, self.tag(tag), data)
            .map_err(|_| Status::Peer)
    }

    fn recv(&self, rank: u32, tag: u64, buffer: &mut [u8]) -> Result<Received, Status> {
        let member = self.member(rank)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let message = match kept.remove(&(rank, tag)) {
            Some(message) => message,
            None => match self.control.try_recv(member, self.tag(tag)) {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(Received::Nothing),
                Err(_) => return Err(Status::Peer),
            },
        };
        let length = message.len();
        match buffer.get_mut(..length) {
            Some(target) => {
                target.copy_from_slice(&message);
                Ok(Received::Message(length))
            }
            None => {
                kept.insert((rank, tag), message);
                Ok(Received::TooLong(length))
            }
        }
    }
}
