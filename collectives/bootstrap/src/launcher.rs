//! The launcher's key-value store, where it keeps one: rank 0 tells the others there what the job's secret is and
//! where to meet, so that a job over several nodes needs neither a file nor an address.
//!
//! Two are spoken: PMI-1 over the descriptor that `PMI_FD` names (MPICH's hydra and what came of it, Slurm's
//! `--mpi=pmi2`), and PMIx through the library of that name (Open MPI, PRRTE, Slurm's `--mpi=pmix`). What is put there
//! is a [`UniqueId`]: whoever the launcher lets read the job's keys is believed to be of the job. How well it keeps
//! them on its way is the launcher's.

mod pmi;
mod pmix;

use std::sync::{Mutex, PoisonError};

use crate::environment::Lookup;
use crate::error::{BootstrapError, Result};
use crate::options::{Options, RootSpec};
use crate::secret::SecretSource;
use crate::unique_id::UniqueId;
use crate::wait::Wait;

/// What a store must do.
trait Store: Send {
    /// Says a value to all ranks that ask after the next [`Store::fence`].
    fn put(&mut self, key: &str, value: &str, wait: &Wait) -> Result<()>;
    /// Returns once every process that the launcher started has called it.
    fn fence(&mut self, wait: &Wait) -> Result<()>;
    /// What rank 0 put.
    fn get(&mut self, key: &str, wait: &Wait) -> Result<String>;
}

/// The store, once it was opened: launchers take one connection a process, until its end.
struct Open {
    store: Box<dyn Store>,
    /// Jobs that met by it so far.
    meetings: u32,
}

static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// Whether the environment names a store that this process can speak to.
pub fn has_store(environment: Lookup<'_>) -> bool {
    pmi::is_named(environment) || pmix::is_named(environment)
}

/// Options in which the secret and, without an address, the root are those that the store tells.
pub(crate) fn resolve(options: Options) -> Result<Options> {
    if !matches!(options.secret_source(), SecretSource::Launcher) {
        return Ok(options);
    }
    let id = unique_id(&options)?;
    Ok(match options.root {
        RootSpec::Address(_) => {
            // Rank 0 opens that address.
            id.discard();
            Options {
                secret: SecretSource::Given(id.secret()),
                ..options
            }
        }
        RootSpec::Node | RootSpec::UniqueId(_) => Options {
            root: RootSpec::UniqueId(id),
            ..options
        },
    })
}

/// Makes a unique id on rank 0 and gives it to every rank. Every process of the launcher's calls it, and as often as the
/// others.
fn unique_id(options: &Options) -> Result<UniqueId> {
    let wait = &options.wait;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = match &mut *open {
        Some(open) => open,
        none => none.insert(Open {
            store: connect(&|name| std::env::var(name).ok(), wait)?,
            meetings: 0,
        }),
    };
    let key = format!("unisono-{}", open.meetings);
    open.meetings += 1;
    exchange(open.store.as_mut(), &key, options)
}

fn exchange(store: &mut dyn Store, key: &str, options: &Options) -> Result<UniqueId> {
    let wait = &options.wait;
    if options.rank > 0 {
        store.fence(wait)?;
        return store.get(key, wait)?.parse();
    }
    let id = UniqueId::create(&options.interfaces, 0)?;
    let put = store.put(key, &id.to_string(), wait);
    match put.and_then(|()| store.fence(wait)) {
        Ok(()) => Ok(id),
        Err(error) => {
            id.discard();
            Err(error)
        }
    }
}

fn connect(environment: Lookup<'_>, wait: &Wait) -> Result<Box<dyn Store>> {
    if let Some(fd) = pmi::descriptor(environment) {
        return Ok(Box::new(pmi::Pmi::connect(fd, wait)?));
    }
    if pmix::is_named(environment) {
        return Ok(Box::new(pmix::Pmix::connect(wait)?));
    }
    let why = "neither PMI_FD nor PMIX_NAMESPACE and libpmix are here";
    Err(failed("key-value", why))
}

/// A store that does not do what it should.
fn failed(store: &'static str, why: impl Into<String>) -> BootstrapError {
    BootstrapError::Launcher {
        store,
        why: why.into(),
    }
}

/// What has not come when there was no more time.
fn late(store: &'static str) -> BootstrapError {
    failed(
        store,
        "no answer in time: has every process of the job called?",
    )
}
