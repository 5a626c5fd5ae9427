//! How two sides of a fresh connection learn that both belong to the job, and which ranks they are.
//!
//! Three messages of fixed length: the client's hello, the server's hello, the client's finish. Both nonces go into
//! everything that follows them; the keyed hash shows knowledge of the job's secret, the signature (between ranks
//! that know each other's keys) which rank it is. No bytes, no length and no order of them can do more than fail.

use crate::error::Result;
use crate::identity::{self, Prover};
use crate::report::StrayKind;
use crate::secret::{Secret, fill_random};

use super::codec::{Reader, Writer};

/// The version of everything that this crate says on a wire.
pub(crate) const PROTOCOL: u16 = 1;
/// The rank that a root or a node's leader gives itself in a handshake.
pub(crate) const NO_RANK: u32 = u32::MAX;

const MAGIC: &[u8; 8] = b"unisono\x01";
const CLIENT_HELLO: usize = 8 + 2 + 1 + 4 + 4 + 16 + 32;
const SERVER_HEAD: usize = 8 + 2 + 1 + 4 + 32;
const PROOF: usize = 32 + 64;
const NO_SIGNATURE: [u8; 64] = [0; 64];

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// First contact with a leader or the root: the secret alone counts, for no keys are known yet.
    Meet = 1,
    /// A neighbour in the overlay, which watches and is watched.
    Overlay = 2,
    /// Messages from rank to rank.
    Direct = 3,
}

impl Purpose {
    fn from_byte(byte: u8) -> Option<Purpose> {
        [Purpose::Meet, Purpose::Overlay, Purpose::Direct]
            .into_iter()
            .find(|purpose| *purpose as u8 == byte)
    }
}

/// What this side shows.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) secret: Secret,
    pub(crate) rank: u32,
    pub(crate) prover: Prover,
}

/// Finds a rank's public key, if it is known by now.
pub(crate) type Keys<'a> = &'a dyn Fn(u32) -> Option<[u8; 32]>;

/// What to do after a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this and read on.
    Continue(Vec<u8>),
    /// Send this; the connection is open.
    Done {
        send: Vec<u8>,
        purpose: Purpose,
        rank: u32,
    },
    /// Send this and close.
    Refuse {
        send: Vec<u8>,
        kind: StrayKind,
        why: String,
    },
    /// Send this and close: this side does not know the other's key yet, the other may try again.
    Later { send: Vec<u8> },
}

enum Stage {
    /// The client sent `hello` and waits for the server's.
    Client {
        hello: Vec<u8>,
        purpose: Purpose,
        target: u32,
    },
    /// The server waits for a hello.
    Server,
    /// The server answered and waits for the finish.
    Finish {
        transcript: Vec<u8>,
        purpose: Purpose,
        rank: u32,
        key: Option<[u8; 32]>,
    },
}

/// One side of a handshake. It does no input or output itself.
pub(crate) struct Handshake(Stage);

impl Handshake {
    /// The side that connected, and its first message. `target` is the rank that it wants to reach.
    pub(crate) fn client(
        me: &Credentials,
        purpose: Purpose,
        target: u32,
    ) -> Result<(Handshake, Vec<u8>)> {
        let mut nonce = [0; 32];
        fill_random(&mut nonce)?;
        let hello = Writer::new()
            .raw(MAGIC)
            .u16(PROTOCOL)
            .u8(purpose as u8)
            .u32(me.rank)
            .u32(target);
        let hello = hello.raw(&me.secret.job_id()).raw(&nonce).finish();
        Ok((
            Handshake(Stage::Client {
                hello: hello.clone(),
                purpose,
                target,
            }),
            hello,
        ))
    }

    /// The side that was connected to.
    pub(crate) fn server() -> Handshake {
        Handshake(Stage::Server)
    }

    /// How many bytes the next message has.
    pub(crate) fn wanted(&self) -> usize {
        match self.0 {
            Stage::Client { .. } => SERVER_HEAD + PROOF,
            Stage::Server => CLIENT_HELLO,
            Stage::Finish { .. } => PROOF,
        }
    }

    /// Whether the first bytes of a message show already that it is none.
    pub(crate) fn is_garbage(&self, start: &[u8]) -> bool {
        let checked = start.len().min(MAGIC.len());
        !matches!(self.0, Stage::Finish { .. }) && start[..checked] != MAGIC[..checked]
    }

    /// Takes a whole message, [`Handshake::wanted`] bytes.
    pub(crate) fn advance(
        &mut self,
        message: &[u8],
        me: &Credentials,
        keys: Keys<'_>,
    ) -> Result<Step> {
        match std::mem::replace(&mut self.0, Stage::Server) {
            Stage::Server => self.answer(message, me, keys),
            Stage::Client {
                hello,
                purpose,
                target,
            } => Ok(finish(message, &hello, purpose, target, me, keys)),
            Stage::Finish {
                transcript,
                purpose,
                rank,
                key,
            } => Ok(conclude(message, &transcript, purpose, rank, key, me)),
        }
    }

    fn answer(&mut self, message: &[u8], me: &Credentials, keys: Keys<'_>) -> Result<Step> {
        let Some((protocol, hello)) = parse_client_hello(message) else {
            return Ok(refuse(
                StrayKind::Garbage,
                "its first bytes are not this protocol",
            ));
        };
        let Some(hello) = hello else {
            let why = format!("it speaks version {protocol} of the protocol, this rank {PROTOCOL}");
            return Ok(Step::Refuse {
                send: silent_server_hello(me, OTHER_VERSION),
                kind: StrayKind::WrongVersion,
                why,
            });
        };
        if hello.job_id != me.secret.job_id() {
            return Ok(refuse(StrayKind::WrongSecret, "it names another job"));
        }
        if hello.purpose == Purpose::Meet && me.rank != NO_RANK
            || hello.purpose != Purpose::Meet && hello.target != me.rank
        {
            return Ok(refuse(
                StrayKind::WrongRank,
                &format!("it wants rank {}", hello.target),
            ));
        }
        let key = match hello.purpose {
            Purpose::Meet => None,
            _ => match keys(hello.rank) {
                Some(key) => Some(key),
                None => {
                    return Ok(Step::Later {
                        send: silent_server_hello(me, TRY_LATER),
                    });
                }
            },
        };
        let mut nonce = [0; 32];
        fill_random(&mut nonce)?;
        let head = server_head(me, GOOD, &nonce);
        let transcript = [message, &head].concat();
        let mac = me.secret.mac("server", &[&transcript]);
        let signature = if key.is_some() {
            me.prover.sign("server", &transcript)
        } else {
            NO_SIGNATURE
        };
        let send = [&head[..], &mac, &signature].concat();
        self.0 = Stage::Finish {
            transcript,
            purpose: hello.purpose,
            rank: hello.rank,
            key,
        };
        Ok(Step::Continue(send))
    }
}

const GOOD: u8 = 0;
const TRY_LATER: u8 = 1;
const OTHER_VERSION: u8 = 2;

struct ClientHello {
    purpose: Purpose,
    rank: u32,
    target: u32,
    job_id: [u8; 16],
}

/// `None` for garbage; without a hello if it is of another version, which this one cannot read further.
fn parse_client_hello(message: &[u8]) -> Option<(u16, Option<ClientHello>)> {
    let mut reader = Reader::new(message);
    if &reader.array::<8>()? != MAGIC {
        return None;
    }
    let protocol = reader.u16()?;
    if protocol != PROTOCOL {
        return Some((protocol, None));
    }
    let purpose = Purpose::from_byte(reader.u8()?)?;
    let hello = ClientHello {
        purpose,
        rank: reader.u32()?,
        target: reader.u32()?,
        job_id: reader.array()?,
    };
    Some((protocol, Some(hello)))
}

fn server_head(me: &Credentials, status: u8, nonce: &[u8; 32]) -> Vec<u8> {
    Writer::new()
        .raw(MAGIC)
        .u16(PROTOCOL)
        .u8(status)
        .u32(me.rank)
        .raw(nonce)
        .finish()
}

/// A server's hello that proves nothing: it only says why the connection ends.
fn silent_server_hello(me: &Credentials, status: u8) -> Vec<u8> {
    [&server_head(me, status, &[0; 32])[..], &[0; PROOF]].concat()
}

fn finish(
    message: &[u8],
    hello: &[u8],
    purpose: Purpose,
    target: u32,
    me: &Credentials,
    keys: Keys<'_>,
) -> Step {
    let (head, proof) = message.split_at(SERVER_HEAD.min(message.len()));
    let mut reader = Reader::new(head);
    if reader.array::<8>().as_ref() != Some(MAGIC) {
        return refuse(StrayKind::Garbage, "its answer is not this protocol");
    }
    let (Some(protocol), Some(status), Some(rank)) = (reader.u16(), reader.u8(), reader.u32())
    else {
        return refuse(StrayKind::Garbage, "its answer is too short");
    };
    if protocol != PROTOCOL || status == OTHER_VERSION {
        let why = format!("it speaks version {protocol} of the protocol, this rank {PROTOCOL}");
        return refuse(StrayKind::WrongVersion, &why);
    }
    if status == TRY_LATER {
        return Step::Later { send: Vec::new() };
    }
    let transcript = [hello, head].concat();
    let Some((mac, signature)) = proof.split_at_checked(32) else {
        return refuse(StrayKind::Garbage, "its answer is too short");
    };
    if status != GOOD || !me.secret.verify_mac("server", &[&transcript], mac) {
        return refuse(StrayKind::WrongSecret, "it does not know the job's secret");
    }
    let signed = match purpose {
        Purpose::Meet => NO_SIGNATURE,
        _ => {
            let proven = keys(target)
                .is_some_and(|key| identity::verify(&key, "server", &transcript, signature));
            if rank != target || !proven {
                return refuse(
                    StrayKind::WrongRank,
                    &format!("it does not prove that it is rank {target}"),
                );
            }
            me.prover.sign("client", &transcript)
        }
    };
    let mac = me.secret.mac("client", &[&transcript]);
    Step::Done {
        send: [&mac[..], &signed].concat(),
        purpose,
        rank,
    }
}

fn conclude(
    message: &[u8],
    transcript: &[u8],
    purpose: Purpose,
    rank: u32,
    key: Option<[u8; 32]>,
    me: &Credentials,
) -> Step {
    let Some((mac, signature)) = message.split_at_checked(32) else {
        return refuse(StrayKind::Garbage, "its proof is too short");
    };
    if !me.secret.verify_mac("client", &[transcript], mac) {
        return refuse(StrayKind::WrongSecret, "it does not know the job's secret");
    }
    if key.is_some_and(|key| !identity::verify(&key, "client", transcript, signature)) {
        return refuse(
            StrayKind::WrongRank,
            &format!("it does not prove that it is rank {rank}"),
        );
    }
    Step::Done {
        send: Vec::new(),
        purpose,
        rank,
    }
}

fn refuse(kind: StrayKind, why: &str) -> Step {
    Step::Refuse {
        send: Vec::new(),
        kind,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests;
