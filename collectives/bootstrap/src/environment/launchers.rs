//! One function a launcher: its variables, and what they say.

use super::{RankInfo, RankSource, Variables, bad, join_host_port};
use crate::error::Result;

/// What is looked for, for the error.
pub(super) const TRIED: &str = "UNISONO_RANK, RANK (torchrun), OMPI_COMM_WORLD_RANK (Open MPI), SLURM_PROCID (Slurm), \
                                PMI_RANK (MPICH)";

/// The first launcher that says rank and size.
pub(super) fn detect(vars: &Variables<'_>) -> Result<Option<RankInfo>> {
    // Slurm stands last: its variables are also there for mpirun and torchrun inside an allocation.
    for launcher in [unisono, torchrun, open_mpi, pmi, slurm] {
        if let Some(info) = launcher(vars)? {
            return Ok(Some(info));
        }
    }
    Ok(None)
}

/// Rank and size from two variables; one without the other is no launcher.
fn pair(
    vars: &Variables<'_>,
    rank: &str,
    size: &str,
    source: RankSource,
) -> Result<Option<RankInfo>> {
    match (vars.number(rank)?, vars.number(size)?) {
        (Some(at), Some(of)) if at >= of => {
            Err(bad(rank, at.to_string(), &format!("not below {size}={of}")))
        }
        (Some(at), Some(of)) => Ok(Some(RankInfo::bare(at, of, source))),
        _ => Ok(None),
    }
}

fn unisono(vars: &Variables<'_>) -> Result<Option<RankInfo>> {
    let Some(mut info) = pair(
        vars,
        "UNISONO_RANK",
        "UNISONO_WORLD_SIZE",
        RankSource::Unisono,
    )?
    else {
        return Ok(None);
    };
    info.job = vars.text("UNISONO_JOB").unwrap_or_default();
    Ok(Some(info))
}

fn torchrun(vars: &Variables<'_>) -> Result<Option<RankInfo>> {
    let Some(mut info) = pair(vars, "RANK", "WORLD_SIZE", RankSource::Torchrun)? else {
        return Ok(None);
    };
    info.local_rank = vars.number("LOCAL_RANK")?;
    info.local_size = vars.number("LOCAL_WORLD_SIZE")?;
    info.job = vars.text("TORCHELASTIC_RUN_ID").unwrap_or_default();
    if let (Some(host), Some(port)) = (vars.text("MASTER_ADDR"), vars.number("MASTER_PORT")?) {
        // torch's own store listens at MASTER_PORT, in this process or in torchrun.
        let next = port
            .checked_add(1)
            .and_then(|port| u16::try_from(port).ok())
            .filter(|_| port != 0);
        let next = next.ok_or_else(|| {
            bad(
                "MASTER_PORT",
                port.to_string(),
                "not a port from 1 to 65534",
            )
        })?;
        info.rendezvous = Some(join_host_port(&host, next));
    }
    Ok(Some(info))
}

fn open_mpi(vars: &Variables<'_>) -> Result<Option<RankInfo>> {
    let Some(mut info) = pair(
        vars,
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        RankSource::OpenMpi,
    )?
    else {
        return Ok(None);
    };
    info.local_rank = vars.number("OMPI_COMM_WORLD_LOCAL_RANK")?;
    info.local_size = vars.number("OMPI_COMM_WORLD_LOCAL_SIZE")?;
    info.job = vars
        .text("PMIX_NAMESPACE")
        .or_else(|| vars.text("OMPI_MCA_ess_base_jobid"))
        .unwrap_or_default();
    Ok(Some(info))
}

fn pmi(vars: &Variables<'_>) -> Result<Option<RankInfo>> {
    let Some(mut info) = pair(vars, "PMI_RANK", "PMI_SIZE", RankSource::Pmi)? else {
        return Ok(None);
    };
    info.local_rank = vars.number("MPI_LOCALRANKID")?;
    info.local_size = vars.number("MPI_LOCALNRANKS")?;
    info.job = vars
        .text("PMI_JOBID")
        .or_else(|| vars.text("SLURM_JOB_ID"))
        .unwrap_or_default();
    Ok(Some(info))
}

fn slurm(vars: &Variables<'_>) -> Result<Option<RankInfo>> {
    let Some(mut info) = pair(vars, "SLURM_PROCID", "SLURM_NTASKS", RankSource::Slurm)? else {
        return Ok(None);
    };
    info.local_rank = vars.number("SLURM_LOCALID")?;
    info.local_size = vars
        .text("SLURM_STEP_TASKS_PER_NODE")
        .and_then(|text| uniform_count(&text));
    let job = vars.number("SLURM_JOB_ID")?;
    let step = vars.number("SLURM_STEP_ID")?.unwrap_or(0);
    info.job = job
        .map(|job| format!("slurm {job}.{step}"))
        .unwrap_or_default();
    let nodes = vars
        .text("SLURM_STEP_NODELIST")
        .or_else(|| vars.text("SLURM_JOB_NODELIST"));
    let host = nodes
        .and_then(|list| first_host(&list))
        .or_else(|| vars.text("SLURM_LAUNCH_NODE_IPADDR"));
    if let (Some(host), Some(job)) = (host, job) {
        // Below the usual range of ephemeral ports, and one for each job and step so that neighbours do not meet.
        let port = 20_000 + (u64::from(job) * 7 + u64::from(step)) % 10_000;
        info.rendezvous = Some(join_host_port(&host, port as u16));
    }
    Ok(Some(info))
}

/// `4(x3)` or `4`: the ranks a node if all nodes have as many, else `None`.
fn uniform_count(text: &str) -> Option<u32> {
    let digits = text.split_once("(x").map_or(text, |(count, _)| count);
    if text.contains(',') {
        None
    } else {
        digits.parse().ok()
    }
}

/// The first host of a list such as `gpu[007-012,20],login1`.
fn first_host(list: &str) -> Option<String> {
    let end = list.find(['[', ',']).unwrap_or(list.len());
    let (stem, rest) = list.split_at(end);
    let host = match rest.strip_prefix('[') {
        None => stem.to_owned(),
        Some(inside) => {
            let close = inside.find(']')?;
            let first = inside[..close]
                .split([',', '-'])
                .next()
                .filter(|first| !first.is_empty())?;
            let after = &inside[close + 1..];
            let suffix = &after[..after.find(',').unwrap_or(after.len())];
            if suffix.contains('[') {
                return None;
            }
            format!("{stem}{first}{suffix}")
        }
    };
    (!host.is_empty() && !host.contains(['[', ']', ','])).then_some(host)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn first_hosts_of_lists() {
        let host = |list| super::first_host(list);
        assert_eq!(host("gpu[007-012,20],login1").as_deref(), Some("gpu007"));
        assert_eq!(host("login1,gpu[1-2]").as_deref(), Some("login1"));
        assert_eq!(host("n[3]-ib,n4").as_deref(), Some("n3-ib"));
        assert_eq!(host("solo").as_deref(), Some("solo"));
        assert_eq!(host("r[1-2]n[3-4]"), None);
        assert_eq!(host("r[1-2"), None);
        assert_eq!(host("r[]"), None);
        assert_eq!(host("[[]"), None);
        assert_eq!(host(""), None);
        assert_eq!(super::uniform_count("4(x3)"), Some(4));
        assert_eq!(super::uniform_count("4(x3),2"), None);
    }

    proptest! {
        #[test]
        fn no_list_breaks_it(list in "[a-c0-9\\[\\],-]{0,12}|\\PC{0,20}") {
            if let Some(host) = super::first_host(&list) {
                prop_assert!(!host.is_empty() && !host.contains(['[', ']', ',']), "{}", host);
            }
            let _ = super::uniform_count(&list);
        }
    }
}
