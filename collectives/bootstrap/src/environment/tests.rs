//! Each launcher's variables as they come, and as they must not.

use super::*;

fn discover(pairs: &[(&str, &str)], given: &Given) -> Result<RankInfo> {
    let lookup = |name: &str| {
        pairs
            .iter()
            .find(|pair| pair.0 == name)
            .map(|pair| pair.1.to_owned())
    };
    RankInfo::discover(&lookup, given)
}

fn found(pairs: &[(&str, &str)]) -> RankInfo {
    discover(pairs, &Given::default()).unwrap()
}

fn refused(pairs: &[(&str, &str)]) -> String {
    discover(pairs, &Given::default()).unwrap_err().to_string()
}

const TORCHRUN: [(&str, &str); 6] = [
    ("RANK", "5"),
    ("WORLD_SIZE", "8"),
    ("LOCAL_RANK", "1"),
    ("LOCAL_WORLD_SIZE", "4"),
    ("MASTER_ADDR", "node0"),
    ("MASTER_PORT", "29500"),
];

#[test]
fn torchrun_meets_beside_its_store() {
    let info = found(&TORCHRUN);
    assert_eq!(
        (info.rank, info.size, info.local_rank, info.local_size),
        (5, 8, Some(1), Some(4))
    );
    assert_eq!(info.rendezvous.as_deref(), Some("node0:29501"));
    assert_eq!(info.source, RankSource::Torchrun);
    assert_eq!(
        found(&[
            ("RANK", "0"),
            ("WORLD_SIZE", "1"),
            ("MASTER_ADDR", "::1"),
            ("MASTER_PORT", "1")
        ])
        .rendezvous
        .as_deref(),
        Some("[::1]:2")
    );
}

#[test]
fn open_mpi_and_pmi_know_no_root() {
    let ompi = found(&[
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_RANK", "3"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
        ("PMIX_NAMESPACE", "prterun-x@1"),
        // Open MPI under Slurm.
        ("SLURM_PROCID", "0"),
        ("SLURM_NTASKS", "1"),
    ]);
    assert_eq!(
        (ompi.rank, ompi.local_size, ompi.source),
        (3, Some(4), RankSource::OpenMpi)
    );
    assert_eq!((ompi.rendezvous, ompi.job.as_str()), (None, "prterun-x@1"));
    let pmi = found(&[
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "2"),
        ("MPI_LOCALRANKID", "1"),
        ("MPI_LOCALNRANKS", "2"),
    ]);
    assert_eq!(
        (pmi.rank, pmi.size, pmi.local_rank, pmi.source),
        (1, 2, Some(1), RankSource::Pmi)
    );
}

#[test]
fn slurm_meets_on_its_first_node() {
    let slurm = [
        ("SLURM_PROCID", "7"),
        ("SLURM_NTASKS", "8"),
        ("SLURM_LOCALID", "3"),
        ("SLURM_STEP_TASKS_PER_NODE", "4(x2)"),
        ("SLURM_JOB_ID", "77"),
        ("SLURM_STEP_NODELIST", "gpu[07-08]"),
        ("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"),
    ];
    let info = found(&slurm);
    assert_eq!(
        (info.rank, info.local_rank, info.local_size),
        (7, Some(3), Some(4))
    );
    assert_eq!(info.rendezvous.as_deref(), Some("gpu07:20539"));
    assert_eq!(
        found(&[&slurm[..5], &slurm[6..]].concat())
            .rendezvous
            .as_deref(),
        Some("10.0.0.9:20539")
    );
}

#[test]
fn ours_come_first_and_the_caller_before_them() {
    let ours = [
        ("UNISONO_RANK", "2"),
        ("UNISONO_WORLD_SIZE", "3"),
        ("UNISONO_LOCAL_RANK", "0"),
    ];
    let info = found(&[&ours[..], &TORCHRUN[..]].concat());
    assert_eq!(
        (info.rank, info.size, info.local_rank, info.source),
        (2, 3, Some(0), RankSource::Unisono)
    );
    let root = [&[("UNISONO_ROOT", "10.0.0.1:99")], &TORCHRUN[..]].concat();
    assert_eq!(found(&root).rendezvous.as_deref(), Some("10.0.0.1:99"));
    let given = Given {
        rank: Some(1),
        size: Some(9),
        rendezvous: Some("h:1".to_owned()),
        ..Given::default()
    };
    let info = discover(&root, &given).unwrap();
    assert_eq!(
        (
            info.rank,
            info.size,
            info.rendezvous.as_deref(),
            info.source
        ),
        (1, 9, Some("h:1"), RankSource::Given)
    );
    let one = Given {
        rank: Some(0),
        ..Given::default()
    };
    assert_eq!(
        discover(&TORCHRUN, &one).unwrap().rank,
        0,
        "a rank alone overrides the launcher's"
    );
}

#[test]
fn bad_values_are_named() {
    for (name, text) in [
        ("UNISONO_RANK", "two"),
        ("WORLD_SIZE", "-4"),
        ("SLURM_NTASKS", "99999999999"),
    ] {
        let text = refused(&[(name, text)]);
        assert!(
            text.contains(name) && text.contains("not a whole number"),
            "{text}"
        );
    }
    assert!(
        refused(&[("RANK", "4"), ("WORLD_SIZE", "4")])
            .contains("RANK=\"4\": not below WORLD_SIZE=4")
    );
    let port = refused(&[&TORCHRUN[..5], &[("MASTER_PORT", "65535")]].concat());
    assert!(port.contains("MASTER_PORT=\"65535\""), "{port}");
    for root in [
        "host",
        "host:",
        ":1",
        "host:0",
        "host:70000",
        "fd00::1:9",
        "a b:1",
        "[fd00::1:9",
    ] {
        let text = refused(&[("RANK", "0"), ("WORLD_SIZE", "1"), ("UNISONO_ROOT", root)]);
        assert!(text.contains("UNISONO_ROOT"), "{root}: {text}");
    }
    assert!(refused(&[]).contains("UNISONO_RANK"));
    assert!(refused(&[("RANK", " "), ("WORLD_SIZE", "2")]).contains("cannot tell which rank"));
}
