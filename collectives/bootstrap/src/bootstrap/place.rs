//! Where a rank meets the others, read from its options.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Result};
use crate::options::{Options, RootSpec};
use crate::rendezvous::root::Root;
use crate::rendezvous::{NoUplink, Uplink, address};
use crate::secret::{Secret, SecretSource};
use crate::wire::socket;

/// Where this rank meets the others, and by what it knows them.
pub(super) struct Place {
    pub(super) secret: Secret,
    /// There is no secret: only processes of this user, on this node.
    pub(super) same_user: bool,
    /// The job does not leave this machine.
    pub(super) loopback: bool,
    pub(super) uplink: Uplink,
    /// What tells this job's meeting from another's on this node.
    pub(super) job: String,
}

impl Place {
    pub(super) fn find(options: &Options) -> Result<Place> {
        let root = match &options.root {
            RootSpec::Address(text) => Some(text.clone()),
            RootSpec::UniqueId(id) => {
                let addresses: Vec<String> =
                    id.addresses().iter().map(SocketAddr::to_string).collect();
                Some(addresses.join(","))
            }
            RootSpec::Node => None,
        };
        let source = options.secret_source();
        let same_user = matches!(source, SecretSource::PeerCredentials);
        let secret = match source {
            SecretSource::Given(secret) => secret,
            SecretSource::Launcher => {
                let option = "secret";
                let why = "the launcher's was not asked for yet".to_owned();
                return Err(BootstrapError::BadOption { option, why });
            }
            SecretSource::PeerCredentials => Secret::from_bytes([0; 32]),
            SecretSource::Disabled => Secret::from_bytes([1; 32]),
        };
        let job = format!("{}\n{}", root.as_deref().unwrap_or_default(), options.job);
        let uplink = match root {
            None => Uplink::Nobody(NoUplink::NoRoot),
            Some(_) if same_user => Uplink::Nobody(NoUplink::NoSecret),
            Some(root) => Uplink::Root(root),
        };
        Ok(Place {
            secret,
            same_user,
            loopback: options.is_local()?,
            uplink,
            job,
        })
    }

    /// Serves the root, if that is this rank's part.
    pub(super) fn open_root(&self, options: &Options) -> Result<Option<Root>> {
        let Uplink::Root(root) = &self.uplink else {
            return Ok(None);
        };
        let listener = match &options.root {
            RootSpec::UniqueId(id) => id.take_root(),
            RootSpec::Address(text) if options.rank == 0 && options.size > 1 => {
                Some(open_port(text, options)?)
            }
            _ => None,
        };
        let Some(listener) = listener.filter(|_| options.size > 1) else {
            return Ok(None);
        };
        Root::start(
            listener,
            self.secret.clone(),
            options.size,
            options.wait.clone(),
            root.clone(),
        )
        .map(Some)
    }
}

/// Opens the root's port; an earlier job may still be leaving it.
fn open_port(text: &str, options: &Options) -> Result<TcpListener> {
    let (host, port) = address::parse(text)?;
    let until = Instant::now() + options.wait.remaining().min(Duration::from_secs(3));
    loop {
        let taken = match socket::listen(address::is_loopback(host), port) {
            Err(BootstrapError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::AddrInUse =>
            {
                source
            }
            other => return other,
        };
        if Instant::now() >= until {
            let what = format!(
                "opening port {port} for the root ({text}); another program has it, choose another port"
            );
            return Err(BootstrapError::io(what, taken));
        }
        if options.wait.abort.is_raised() {
            return Err(BootstrapError::Cancelled {
                what: "opening the root's port".to_owned(),
            });
        }
        std::thread::sleep(options.wait.slice());
    }
}
