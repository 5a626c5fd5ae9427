//! Which rank this process is, as its launcher says in the environment.

mod launchers;

use crate::error::{BootstrapError, Result};

/// How a variable is looked up; `&|name| std::env::var(name).ok()` outside tests.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Who said which rank this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankSource {
    /// The caller.
    Given,
    /// `UNISONO_RANK` and its sisters.
    Unisono,
    /// torchrun.
    Torchrun,
    /// Open MPI.
    OpenMpi,
    /// MPICH, Intel MPI and others that speak PMI.
    Pmi,
    /// Slurm.
    Slurm,
}

/// Which rank this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankInfo {
    /// The rank.
    pub rank: u32,
    /// How many there are.
    pub size: u32,
    /// Its number among the ranks of its node.
    pub local_rank: Option<u32>,
    /// How many ranks its node has.
    pub local_size: Option<u32>,
    /// `host:port` where ranks can meet, which rank 0 opens.
    pub rendezvous: Option<String>,
    /// The launcher's name for the job, empty if it has none.
    pub job: String,
    /// Who said so.
    pub source: RankSource,
}

/// What a caller knows by itself; it wins over the environment.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The rank.
    pub rank: Option<u32>,
    /// How many there are.
    pub size: Option<u32>,
    /// Its number among the ranks of its node.
    pub local_rank: Option<u32>,
    /// How many ranks its node has.
    pub local_size: Option<u32>,
    /// `host:port` where ranks can meet.
    pub rendezvous: Option<String>,
}

impl RankInfo {
    /// Reads the real environment; see [`RankInfo::discover`].
    ///
    /// # Errors
    /// As [`RankInfo::discover`].
    pub fn from_environment() -> Result<RankInfo> {
        RankInfo::discover(&|name| std::env::var(name).ok(), &Given::default())
    }

    /// Asks the caller first, then our own variables, then torchrun's, Open MPI's, Slurm's and PMI's; the first
    /// that says both rank and size is believed, and then `UNISONO_LOCAL_RANK`, `UNISONO_LOCAL_SIZE` and
    /// `UNISONO_ROOT` and what was given replace its other answers.
    ///
    /// torchrun's own store listens at `MASTER_PORT`, so the ranks meet at the port after it.
    ///
    /// # Errors
    /// [`BootstrapError::BadVariable`] naming the first variable that cannot be used, and
    /// [`BootstrapError::NoLauncher`] if nothing says which rank this is.
    pub fn discover(environment: Lookup<'_>, given: &Given) -> Result<RankInfo> {
        let vars = Variables(environment);
        let mut info = match (given.rank, given.size) {
            (Some(rank), Some(size)) => RankInfo::bare(rank, size, RankSource::Given),
            _ => launchers::detect(&vars)?.ok_or_else(|| BootstrapError::NoLauncher {
                tried: launchers::TRIED.to_owned(),
            })?,
        };
        info.local_rank = vars.number("UNISONO_LOCAL_RANK")?.or(info.local_rank);
        info.local_size = vars.number("UNISONO_LOCAL_SIZE")?.or(info.local_size);
        info.rendezvous = vars.root("UNISONO_ROOT")?.or(info.rendezvous);
        info.rank = given.rank.unwrap_or(info.rank);
        info.size = given.size.unwrap_or(info.size);
        info.local_rank = given.local_rank.or(info.local_rank);
        info.local_size = given.local_size.or(info.local_size);
        info.rendezvous = given.rendezvous.clone().or(info.rendezvous);
        info.check()?;
        Ok(info)
    }

    fn bare(rank: u32, size: u32, source: RankSource) -> RankInfo {
        RankInfo {
            rank,
            size,
            local_rank: None,
            local_size: None,
            rendezvous: None,
            job: String::new(),
            source,
        }
    }

    fn check(&self) -> Result<()> {
        if self.rank >= self.size {
            return Err(BootstrapError::NoSuchRank {
                rank: self.rank,
                size: self.size,
            });
        }
        if let (Some(rank), Some(size)) = (self.local_rank, self.local_size)
            && rank >= size
        {
            let why = format!("it is not below the {size} ranks that this node is said to have");
            let text = rank.to_string();
            return Err(BootstrapError::BadVariable {
                name: format!("local rank of {:?}", self.source),
                text,
                why,
            });
        }
        Ok(())
    }
}

/// The environment, with parsing that names what it refuses.
pub(crate) struct Variables<'a>(Lookup<'a>);

impl Variables<'_> {
    /// A variable's text; blank counts as unset.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.0)(name)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u32>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(bad(name, text, "not a whole number from 0 to 4294967295")),
        }
    }

    pub(crate) fn root(&self, name: &str) -> Result<Option<String>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match split_host_port(&text) {
            Some(_) => Ok(Some(text)),
            None => Err(bad(
                name,
                text,
                "not host:port, such as node01:4400, 10.0.0.1:4400 or [fd00::1]:4400",
            )),
        }
    }
}

pub(crate) fn bad(name: &str, text: String, why: &str) -> BootstrapError {
    BootstrapError::BadVariable {
        name: name.to_owned(),
        text,
        why: why.to_owned(),
    }
}

/// `host:port` or `[v6]:port` in parts; port 0 is none.
pub(crate) fn split_host_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let port: u16 = port.parse().ok().filter(|&port| port != 0)?;
    (!host.is_empty() && !host.contains(char::is_whitespace)).then_some((host, port))
}

/// Joins what [`split_host_port`] takes apart.
pub(crate) fn join_host_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests;
