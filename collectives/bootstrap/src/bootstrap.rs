//! The way in.

mod place;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::time::Instant;

use crate::control::{Control, Tag};
use crate::cores::Cores;
use crate::directory::{Directory, RankEntry};
use crate::error::{BootstrapError, Result};
use crate::hex;
use crate::identity::{self, NodeId, Prover};
use crate::launcher;
use crate::options::Options;
use crate::rendezvous::root::Root;
use crate::rendezvous::{self, Node};
use crate::report::Report;
use crate::secret::Secret;
use crate::wire::acceptor::Listener;
use crate::wire::codec::{Reader, Writer};
use crate::wire::handshake::{Credentials, NO_RANK};
use crate::wire::hub::Hub;
use crate::wire::socket;
use place::Place;

/// The door to a job.
#[derive(Debug)]
pub struct Bootstrap;

/// A rank that met all others.
#[derive(Debug)]
pub struct Joined {
    /// Who and where all ranks are.
    pub table: Directory,
    /// What keeps them in touch. Some thread must call [`Control::turn`] from now on.
    pub control: Control,
    /// This rank's own key.
    pub prover: Prover,
    /// How it went.
    pub report: Report,
}

/// The exchange of the table. No user's communicator has this number.
const EXCHANGE: Tag = Tag {
    communicator: u64::MAX,
    sequence: 0,
};

impl Bootstrap {
    /// Meets all other ranks of the job; returns once this rank has the whole table. Blocks the calling thread, at
    /// most until the deadline of `options.wait`.
    ///
    /// # Errors
    /// If ranks are missing at the deadline, if two claim one rank, or if they disagree about the job's size or
    /// version, every rank that is present gets an error that names them.
    pub fn join(options: Options) -> Result<Joined> {
        let started = Instant::now();
        options.check()?;
        let options = launcher::resolve(options)?;
        let place = Place::find(&options)?;
        let prover = Prover::random()?;
        let node = options
            .node_id
            .unwrap_or_else(|| NodeId::discover(&|name| std::env::var(name).ok()));
        let listener = socket::listen(place.loopback, 0)?;
        let entry = describe(&options, &place, node, &listener, &prover)?;
        let root = place.open_root(&options)?;
        let met = if options.size > 1 {
            Some(meet(&options, &place, &entry, &prover)?)
        } else {
            None
        };
        let handed_out = met.as_ref().and_then(|met| met.secret.clone());
        let secret = handed_out.unwrap_or(place.secret);
        let mut hub = Hub::new(
            Credentials {
                secret,
                rank: options.rank,
                prover: prover.clone(),
            },
            "rank",
        )?;
        let control = {
            if options.size > 1 {
                hub.listen(Listener::Tcp(listener))?;
            }
            Control::start(hub, options.rank, options.size, options.heartbeat)?
        };
        let neighbours = met
            .as_ref()
            .map(|met| met.entries.clone())
            .unwrap_or_default();
        control.learn(neighbours.clone())?;
        let table = exchange(
            &control,
            RankEntry {
                payload: options.payload.clone(),
                ..entry
            },
            &neighbours,
            &options,
        )?;
        control.learn(table.entries().to_vec())?;
        control.settle()?;
        // It has given all its answers, else there would be no table.
        let root_strays = root.map(Root::finish);
        let (notes, exchange_messages) = control.notes();
        let mut strays = control.strays();
        strays.add(&root_strays.unwrap_or_default());
        let mut report = Report {
            rounds: options.size.next_power_of_two().trailing_zeros(),
            exchange_messages,
            elapsed: started.elapsed(),
            notes,
            strays,
            ..Report::default()
        };
        if let Some(met) = met {
            (report.root_messages, report.node_leader) = (met.root_messages, met.leader);
            report.strays.add(&met.strays);
        }
        Ok(Joined {
            table,
            control,
            prover,
            report,
        })
    }
}

/// What the others are told of this rank; the payload comes later.
fn describe(
    options: &Options,
    place: &Place,
    node: NodeId,
    listener: &TcpListener,
    prover: &Prover,
) -> Result<RankEntry> {
    let port = listener
        .local_addr()
        .map_err(|e| BootstrapError::io("asking for this rank's port", e))?
        .port();
    let addresses = match place.loopback {
        true => vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)],
        false => {
            let candidates = options.interfaces.candidates()?;
            candidates
                .iter()
                .map(|candidate| SocketAddr::new(candidate.address, port))
                .collect()
        }
    };
    let pid = std::process::id();
    Ok(RankEntry {
        rank: options.rank,
        node,
        pid,
        start_time: identity::start_time(pid).unwrap_or(0),
        process_scope: identity::process_scope(),
        cores: Cores::of_this_thread(),
        addresses,
        public_key: prover.public_key(),
        version: options.version.clone(),
        payload: Vec::new(),
    })
}

fn meet(
    options: &Options,
    place: &Place,
    entry: &RankEntry,
    prover: &Prover,
) -> Result<rendezvous::Met> {
    let user = rustix::process::geteuid().as_raw().to_le_bytes();
    let name = place.secret.mac(
        "node's meeting",
        &[&entry.node.0, place.job.as_bytes(), &user],
    );
    let hand_out = if place.same_user {
        Some(Secret::random()?)
    } else {
        None
    };
    rendezvous::meet(&Node {
        options,
        me: Credentials {
            secret: place.secret.clone(),
            rank: options.rank,
            prover: prover.clone(),
        },
        same_user: place.same_user,
        entry: entry.clone(),
        name: format!("unisono-{}", hex::print(&name[..16])),
        uplink: place.uplink.clone(),
        hand_out,
    })
}

/// Gathers everybody's entry, over the first connections.
fn exchange(
    control: &Control,
    mine: RankEntry,
    neighbours: &[RankEntry],
    options: &Options,
) -> Result<Directory> {
    let members: Vec<u32> = (0..options.size).collect();
    let bytes = rendezvous::write_entry(Writer::new(), &mine).finish();
    let gathered = control.all_gather(&members, EXCHANGE, &bytes, &options.wait);
    let gathered = gathered.map_err(|error| explain(control, error))?;
    let mut entries = Vec::with_capacity(gathered.len());
    for (rank, bytes) in members.iter().zip(&gathered) {
        let mut reader = Reader::new(bytes);
        let entry = rendezvous::read_entry(&mut reader).filter(|entry| entry.rank == *rank);
        entries.push(entry.and_then(|entry| reader.end(entry)).ok_or_else(|| {
            BootstrapError::Protocol {
                rank: *rank,
                what: "an entry of the table that is none".to_owned(),
            }
        })?);
    }
    let differs = |known: &&RankEntry| {
        entries
            .get(known.rank as usize)
            .is_none_or(|e| e.public_key != known.public_key)
    };
    if let Some(known) = neighbours.iter().find(differs) {
        let what = "a key other than the one that the root was told".to_owned();
        return Err(BootstrapError::Protocol {
            rank: known.rank,
            what,
        });
    }
    debug_assert!(options.rank != NO_RANK);
    Ok(Directory::new(entries))
}

/// A deadline in the exchange is most often an address that cannot be reached: says so if it is.
fn explain(control: &Control, error: BootstrapError) -> BootstrapError {
    let BootstrapError::Deadline { waited, .. } = &error else {
        return error;
    };
    match control.unreached().into_iter().next() {
        Some((rank, tried)) => BootstrapError::Unreachable {
            rank,
            waited: *waited,
            tried: tried.join("; "),
        },
        None => error,
    }
}
