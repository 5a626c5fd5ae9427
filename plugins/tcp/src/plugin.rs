//! The plugin and its instances.

use std::collections::BTreeSet;
use std::sync::Arc;

use unisono_plugin::{
    Context, DeviceId, Error, Instance, LinkInfo, LinkRequest, LinkType, NoDevice, Param, Plugin,
    Result, Scope, Status,
};

use crate::link::{Access, Connecting, End, Inner, TcpLink};
use crate::net::{Address, Interface, Node, Poller, interfaces, nic_bytes_per_second, this_node};
use crate::params::{Config, PARAMS};
use crate::setup::{Acceptor, Call, Dialer, Key, Listener, Mailbox};

/// What a link is said to carry where no card tells its speed: 10 Gbit/s.
const USUAL_BYTES_PER_SECOND: u64 = 1_250_000_000;

/// The plugin `tcp`.
#[derive(Debug)]
pub struct TcpPlugin;

/// One use of the plugin: a listener, and what is known of the machine's addresses.
#[derive(Debug)]
pub struct TcpInstance {
    config: Config,
    node: Node,
    /// Interfaces that may be used.
    local: Vec<Interface>,
    address: Vec<u8>,
    listener: Arc<Listener>,
}

impl Plugin for TcpPlugin {
    type Instance = TcpInstance;

    const NAME: &'static str = "tcp";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const VENDOR: &'static str = "unisono";
    const PARAMS: &'static [Param] = PARAMS;

    fn create(context: Context<'_>) -> Result<TcpInstance> {
        let config = Config::parse(context.params)?;
        let all = interfaces().map_err(|e| system("cannot list the network interfaces", &e))?;
        let local: Vec<Interface> = all
            .into_iter()
            .filter(|i| match i.loopback {
                // Between processes of one machine, unless it is left out by name.
                true => !config.interfaces.leaves_out(i),
                false => config.interfaces.takes(i),
            })
            .collect();
        if local.is_empty() {
            return Err(Error::invalid(
                "tcp: interfaces: no interface of this machine that is up fits",
            ));
        }
        let mut instance = [0; 16];
        getrandom::fill(&mut instance).map_err(|error| {
            Error::new(
                Status::Link,
                format!("the system has no randomness: {error}"),
            )
        })?;
        let listener = Listener::open(
            (config.port, config.ports),
            instance,
            (
                local.iter().map(|i| i.address).collect(),
                config.interfaces.takes_all(),
            ),
            config.options.clone(),
            context.host,
        )
        .map_err(|error| {
            let what = match config.port {
                0 => "tcp: cannot listen".to_owned(),
                port => format!(
                    "tcp: cannot listen at any of {} ports from {port}",
                    config.ports
                ),
            };
            system(&what, &error)
        })?;
        let node = this_node();
        let mut ips: Vec<_> = local.iter().map(|i| i.address).collect();
        // What others can reach first: it must not be cut off when there are many.
        ips.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
        let address = Address {
            port: listener.port(),
            encrypt: config.encrypt,
            node,
            instance,
            ips,
        };
        Ok(TcpInstance {
            config,
            node,
            local,
            address: address.encode(),
            listener,
        })
    }
}

impl TcpInstance {
    /// The port that the instance listens at.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Strangers that were dropped.
    pub fn refused(&self) -> u64 {
        self.listener.refused()
    }

    fn end(&self, request: &LinkRequest<'_>, poller: &Arc<Poller>) -> Result<End> {
        let (here, there) = (request.channel.rank(), request.peer);
        let address = Address::decode(request.peer_address);
        if let Ok(address) = &address
            && address.encrypt != self.config.encrypt
        {
            let (with, without) = match address.encrypt {
                true => (there, here),
                false => (here, there),
            };
            return Err(Error::invalid(format!(
                "tcp: encrypt: rank {with} encrypts its links and rank {without} does not: set it \
                 alike on all ranks"
            )));
        }
        if here < there {
            let address = address
                .map_err(|error| Error::invalid(format!("the address of rank {there}: {error}")))?;
            let (targets, rails) = address.targets(self.node, &self.local);
            if targets.is_empty() {
                return Err(Error::new(
                    Status::Link,
                    format!("rank {there} has no address that can be reached from here"),
                ));
            }
            let call = Call {
                channel: request.channel,
                peer: there,
                instance: address.instance,
                connections: self
                    .config
                    .connections
                    .max(u16::try_from(rails).unwrap_or(1))
                    .min(16),
                encrypt: self.config.encrypt,
                may_last: !self.config.recover_local,
            };
            return Ok(End::Dialer(Dialer::new(call, targets, rails)));
        }
        let key = Key {
            channel: request.channel.id(),
            here,
            there,
        };
        let mailbox = Arc::new(Mailbox::new(Arc::clone(poller)));
        Ok(End::Acceptor(Acceptor::new(
            self.listener.register(key, mailbox),
            self.config.encrypt,
            !self.config.recover_local,
        )))
    }
}

impl Instance for TcpInstance {
    type Device = NoDevice;
    type Link = TcpLink;

    fn links(&self) -> Result<Vec<LinkInfo>> {
        let names: BTreeSet<&str> = self
            .local
            .iter()
            .filter(|i| !i.loopback)
            .map(|i| i.name.as_str())
            .collect();
        let rate = self
            .config
            .bandwidth
            .or_else(|| nic_bytes_per_second(names))
            .unwrap_or(USUAL_BYTES_PER_SECOND);
        Ok(vec![LinkInfo {
            link_type: LinkType::Posted,
            scope: Scope::Network,
            shared: 1, // all links of a machine share its cards
            from: DeviceId::default(),
            to: DeviceId::default(),
            kind: "tcp".to_owned(),
            bytes_per_second: rate,
            read_bytes_per_second: 0,
            latency_ns: u64::try_from(self.config.latency.as_nanos()).unwrap_or(u64::MAX),
            rail: 0,
        }])
    }

    fn address(&self) -> Result<Vec<u8>> {
        Ok(self.address.clone())
    }

    fn create_link(&self, request: LinkRequest<'_>) -> Result<TcpLink> {
        let (here, peer, size) = (request.channel.rank(), request.peer, request.channel.size());
        if peer == here || peer >= size {
            return Err(Error::invalid(format!(
                "no link from rank {here} to rank {peer} among {size} ranks"
            )));
        }
        let failed = |error: std::io::Error| system("cannot make a link", &error);
        let poller = Poller::new().map_err(failed)?;
        let access = Access::new(
            self.end(&request, &poller)?,
            Arc::clone(&self.listener),
            Arc::clone(&poller),
        )
        .map_err(failed)?;
        Ok(TcpLink::new(Inner::new(
            request.channel,
            peer,
            poller,
            Arc::clone(&self.listener),
            Connecting::new(access, self.config.connect_timeout),
            self.config.recovery,
        )))
    }
}

fn system(what: &str, error: &std::io::Error) -> Error {
    Error::system(Status::Link, what, error)
}
