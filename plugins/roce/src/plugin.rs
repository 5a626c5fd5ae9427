//! The plugin and its instances.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use unisono_plugin::{
    Context, DeviceId, Dmabuf, DmabufInstance, Error, Host, HostRange, Instance, Level, LinkInfo,
    LinkRequest, LinkType, NoDevice, Param, Plugin, Result, Scope, Status, dmabuf_interface, log,
};

use crate::link::{Grave, Inner, RoceLink};
use crate::memory::{Memory, Registry};
use crate::nic::{LinkLayer, Rails};
use crate::params::{Config, PARAMS};
use crate::sys::Library;
use crate::verbs::Access;
use crate::wire::Address;

/// How long an instance that goes waits for last words to be heard.
const PARTING: Duration = Duration::from_millis(100);

/// The plugin `roce`.
#[derive(Debug)]
pub struct RocePlugin;

/// One use of the plugin: the ports that it may use, opened.
#[derive(Debug)]
pub struct RoceInstance {
    shared: Arc<Shared>,
    address: Vec<u8>,
}

/// What the links of an instance share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) host: Host,
    pub(crate) registry: Registry,
    graves: Mutex<Vec<Grave>>,
    /// After everything that was made on them.
    pub(crate) rails: Rails,
}

impl Plugin for RocePlugin {
    type Instance = RoceInstance;

    const NAME: &'static str = "roce";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";
    const PARAMS: &'static [Param] = PARAMS;

    fn create(context: Context<'_>) -> Result<RoceInstance> {
        let config = Config::parse(context.params)?;
        let library = Library::open(&config.library)
            .map_err(|error| Error::new(Status::NoDriver, error.to_string()))?;
        let rails = Rails::open(library, &config, context.host)?;
        let mut instance = [0; 16];
        getrandom::fill(&mut instance).map_err(|error| {
            Error::new(
                Status::Link,
                format!("the system has no randomness: {error}"),
            )
        })?;
        let address = Address {
            instance,
            layers: rails.all().iter().map(|rail| rail.layer()).collect(),
        };
        for (number, rail) in rails.all().iter().enumerate() {
            let numa = rail
                .facts
                .numa
                .map_or_else(String::new, |n| format!(", NUMA node {n}"));
            log!(
                context.host,
                Level::Info,
                "rail {number}: {} at {} Gbit/s{numa}",
                rail.facts.name(),
                rail.bytes_per_second / 125_000_000
            );
        }
        Ok(RoceInstance {
            address: address.encode(),
            shared: Arc::new(Shared {
                config,
                host: context.host,
                registry: Registry::default(),
                graves: Mutex::default(),
                rails,
            }),
        })
    }
}

impl Instance for RoceInstance {
    type Device = NoDevice;
    type Link = RoceLink;

    /// One entry for each rail: a link uses them all at once.
    fn links(&self) -> Result<Vec<LinkInfo>> {
        let rails = self.shared.rails.all();
        let latency = self.shared.config.latency.as_nanos();
        Ok((1..)
            .zip(rails)
            .map(|(number, rail)| LinkInfo {
                link_type: LinkType::Posted,
                scope: Scope::Network,
                shared: number, // all links of a machine share the card
                from: DeviceId::default(),
                to: DeviceId::default(),
                kind: match rail.layer() {
                    LinkLayer::Ethernet => "roce".to_owned(),
                    LinkLayer::InfiniBand => "ib".to_owned(),
                },
                bytes_per_second: rail.bytes_per_second,
                read_bytes_per_second: 0,
                latency_ns: u64::try_from(latency).unwrap_or(u64::MAX),
                rail: if rails.len() > 1 { number } else { 0 },
            })
            .collect())
    }

    fn address(&self) -> Result<Vec<u8>> {
        Ok(self.address.clone())
    }

    fn interface(&self, id: &str) -> *const c_void {
        match self.shared.config.dmabuf {
            true => dmabuf_interface::<Self>(id),
            false => std::ptr::null(),
        }
    }

    fn create_link(&self, request: LinkRequest<'_>) -> Result<RoceLink> {
        let (here, peer, size) = (request.channel.rank(), request.peer, request.channel.size());
        if peer == here || peer >= size {
            return Err(Error::invalid(format!(
                "no link from rank {here} to rank {peer} among {size} ranks"
            )));
        }
        let address = Address::decode(request.peer_address)
            .map_err(|error| Error::invalid(format!("the address of rank {peer}: {error}")))?;
        let own = self.shared.rails.all();
        let meets = own
            .iter()
            .any(|rail| address.layers.contains(&rail.layer()));
        if !meets {
            return Err(Error::new(
                Status::Link,
                format!(
                    "rank {peer} has no rail of a kind that is here: RoCE and InfiniBand do not meet"
                ),
            ));
        }
        self.shared.tend();
        let inner = Inner::new(Arc::clone(&self.shared), request.channel, peer)?;
        Ok(RoceLink::new(inner))
    }
}

impl DmabufInstance for RoceInstance {
    fn add_dmabuf(&self, memory: Dmabuf<'_>) -> Result<()> {
        self.shared.registry.add_device(&self.shared.rails, &memory)
    }

    fn remove_dmabuf(&self, address: u64) -> Result<()> {
        self.shared.registry.remove_device(address)
    }
}

impl Shared {
    /// News of the devices, and what is left of links that ended.
    pub(crate) fn tend(&self) {
        self.rails.hear();
        // Whoever has the lock does it.
        if let Ok(mut graves) = self.graves.try_lock()
            && !graves.is_empty()
        {
            let now = Instant::now();
            graves.retain_mut(|grave| !grave.is_done(now));
        }
    }

    /// Keeps what is left of a link until the peer has heard its last word.
    pub(crate) fn bury(&self, grave: Grave) {
        self.graves().push(grave);
    }

    /// Registers a put's source for this put, if it is worth it; a source that cannot be registered
    /// is copied.
    #[allow(unsafe_code, reason = "registers the source of a put")]
    pub(crate) fn register_once(&self, address: u64, bytes: u64) -> Option<Arc<Memory>> {
        if bytes <= self.config.copy_limit {
            return None;
        }
        let range = HostRange { address, bytes };
        // SAFETY: the host keeps a put's source mapped until the put is complete or the link is
        // gone; the registration ends with the put.
        match unsafe { Memory::host(&self.rails, range, Access::Read) } {
            Ok(memory) => Some(Arc::new(memory)),
            Err(error) => {
                log!(self.host, Level::Debug, "{error}; it is copied instead");
                None
            }
        }
    }

    fn graves(&self) -> MutexGuard<'_, Vec<Grave>> {
        self.graves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    /// Last words are given a moment to be heard: else peers would take a good end for a death.
    fn drop(&mut self) {
        let start = Instant::now();
        while start.elapsed() < PARTING {
            let now = Instant::now();
            let mut graves = self.graves();
            graves.retain_mut(|grave| !grave.is_done(now));
            if graves.is_empty() {
                return;
            }
            drop(graves);
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}
