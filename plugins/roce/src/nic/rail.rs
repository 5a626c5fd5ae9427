//! Rails: the ports that an instance uses, opened, in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_plugin::{Error, Host, Level, Result, Status, log};

use super::gid::{Gid, GidEntry};
use super::port::{LinkLayer, PortFacts, read_ports};
use crate::params::Config;
use crate::sys::Library;
use crate::verbs::{AsyncEvent, Context, Pd, devices};
use crate::wire::RAILS_MAX;

/// Ports slower than this are taken for what they do not say: 10 Gbit/s.
const USUAL_BYTES_PER_SECOND: u64 = 1_250_000_000;

/// A port in use.
#[derive(Debug)]
pub(crate) struct Rail {
    pub(crate) facts: PortFacts,
    pub(crate) pd: Arc<Pd>,
    /// Addresses that a link may use.
    pub(crate) gids: Vec<GidEntry>,
    /// As an `ibv_mtu`.
    pub(crate) mtu: u8,
    pub(crate) lid: u16,
    pub(crate) bytes_per_second: u64,
    /// The longest single write.
    pub(crate) message_max: u64,
    depth_max: u32,
    up: AtomicBool,
}

/// All rails of an instance: at least one.
#[derive(Debug)]
pub(crate) struct Rails {
    all: Vec<Rail>,
    host: Host,
}

impl Rails {
    /// Opens the ports that the parameters allow.
    ///
    /// # Errors
    /// `NoDriver` if there is none, with why each was left out; `Invalid` if there are some and
    /// `devices` names none of them.
    pub(crate) fn open(library: Library, config: &Config, host: Host) -> Result<Self> {
        let known = devices(library).map_err(|error| {
            Error::system(
                Status::NoDriver,
                "no RDMA: the devices cannot be listed",
                &error,
            )
        })?;
        if known.is_empty() {
            return Err(Error::new(
                Status::NoDriver,
                "no RDMA device: libibverbs sees none here; `ibv_devices` lists them",
            ));
        }
        let mut found = Vec::new();
        let mut left_out = Vec::new();
        let mut unnamed = 0;
        for device in &known {
            for port in read_ports(&device.name, &device.folder) {
                match config.devices.place(&port.device, port.port) {
                    None => {
                        unnamed += 1;
                        left_out.push(format!("{}: not in `devices`", port.name()));
                    }
                    Some(_) if !port.active => {
                        left_out.push(format!("{}: its link is down", port.name()));
                    }
                    Some(place) => found.push((place, port)),
                }
            }
        }
        if found.is_empty() && !left_out.is_empty() && unnamed == left_out.len() {
            return Err(Error::new(
                Status::Invalid,
                format!(
                    "`devices` names no RDMA device that there is here: {}",
                    left_out.join("; ")
                ),
            ));
        }
        // In the order of the list, then the fastest first, then by name.
        found.sort_by(|(a, x), (b, y)| {
            let speed = y.bytes_per_second.cmp(&x.bytes_per_second);
            a.cmp(b)
                .then(speed)
                .then_with(|| natural(x).cmp(&natural(y)))
        });
        let mut all = Vec::new();
        for (_, port) in found.into_iter().take(RAILS_MAX) {
            let name = port.name();
            match Rail::open(library, port, config) {
                Ok(rail) => all.push(rail),
                Err(why) => left_out.push(format!("{name}: {why}")),
            }
        }
        for why in &left_out {
            log!(host, Level::Info, "not used for RDMA: {why}");
        }
        if all.is_empty() {
            return Err(Error::new(
                Status::NoDriver,
                format!("no RDMA device can be used: {}", left_out.join("; ")),
            ));
        }
        Ok(Self { all, host })
    }

    pub(crate) fn all(&self) -> &[Rail] {
        &self.all
    }

    /// Pieces of work that a queue pair of any rail takes at once.
    pub(crate) fn depth(&self, wanted: u32) -> u32 {
        let most = self.all.iter().map(|rail| rail.depth_max).min();
        wanted.min(most.unwrap_or(wanted))
    }

    /// Takes note of what the devices say of themselves.
    pub(crate) fn hear(&self) {
        for rail in &self.all {
            while let Some(news) = rail.pd.context().news() {
                rail.note(news, self.host);
            }
        }
    }
}

impl Rail {
    fn open(library: Library, facts: PortFacts, config: &Config) -> Result<Self, String> {
        let gids = config.wish.candidates(facts.link_layer, &facts.gids);
        if gids.is_empty() {
            return Err(match config.wish.index {
                Some(index) => format!("its address table has no entry {index}"),
                None => {
                    "it has no RoCE v2 address of the wanted family: does its network interface \
                         have an IP address?"
                        .to_owned()
                }
            });
        }
        let context = Context::open(library, &facts.device)
            .map_err(|error| format!("it cannot be opened: {error}"))?;
        let port = context
            .port(facts.port)
            .map_err(|error| format!("its port cannot be asked: {error}"))?;
        if !port.active {
            return Err("its link is down".to_owned());
        }
        let limits = context
            .limits()
            .map_err(|error| format!("it cannot be asked: {error}"))?;
        let pd = Pd::new(&context).map_err(|error| format!("no protection domain: {error}"))?;
        let mtu = match config.mtu {
            0 => port.mtu,
            wanted => wanted.min(port.mtu),
        };
        let rate = match facts.bytes_per_second {
            0 => USUAL_BYTES_PER_SECOND,
            rate => rate,
        };
        Ok(Self {
            pd,
            gids,
            mtu: mtu.clamp(1, 5),
            lid: port.lid,
            bytes_per_second: config.bandwidth.unwrap_or(rate),
            message_max: config.message.min(u64::from(port.message_max).max(4096)),
            depth_max: u32::try_from(limits.max_qp_wr).unwrap_or(u32::MAX).max(16),
            up: AtomicBool::new(true),
            facts,
        })
    }

    pub(crate) fn layer(&self) -> LinkLayer {
        self.facts.link_layer
    }

    /// Whether packets carry the global header: on InfiniBand a subnet's own address is enough.
    pub(crate) fn is_global(&self) -> bool {
        self.facts.link_layer == LinkLayer::Ethernet
    }

    /// Whether the port's link is up, as far as its device has said.
    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// The addresses, as the peer sees them.
    pub(crate) fn addresses(&self) -> Vec<Gid> {
        self.gids.iter().map(|entry| entry.gid).collect()
    }

    fn note(&self, news: AsyncEvent, host: Host) {
        let name = self.facts.name();
        match news {
            AsyncEvent::PortUp(port) if port == self.facts.port => {
                self.up.store(true, Ordering::Relaxed);
                log!(host, Level::Info, "{name}: its link is up");
            }
            AsyncEvent::PortDown(port) if port == self.facts.port => {
                self.up.store(false, Ordering::Relaxed);
                log!(host, Level::Warn, "{name}: its link is down");
            }
            AsyncEvent::PortUp(_) | AsyncEvent::PortDown(_) => {}
            AsyncEvent::Fatal => {
                self.up.store(false, Ordering::Relaxed);
                log!(host, Level::Error, "{name}: the device has failed");
            }
            AsyncEvent::Addresses => {
                log!(
                    host,
                    Level::Warn,
                    "{name}: its address table has changed; new links still use the old one"
                );
            }
            AsyncEvent::Other(event) => {
                log!(host, Level::Debug, "{name}: event {event}");
            }
        }
    }
}

/// A port's name with its numbers as numbers: mlx5_2 comes before mlx5_10.
fn natural(port: &PortFacts) -> (String, u64, u8) {
    let letters = port.device.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = port.device[letters.len()..].parse().unwrap_or(0);
    (letters.to_owned(), number, port.port)
}
