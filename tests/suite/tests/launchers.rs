//! Launchers that keep a key-value store: the ranks need no address, no secret and no file.

use std::process::Command;
use std::time::{Duration, Instant};

use unisono::bootstrap::SecretSource;
use unisono::{Communicator, Init, ReduceOp};
use unisono_tests::{skip, watchdog};

/// Set in the processes that a launcher starts.
const RANK: &str = "UNISONO_TEST_LAUNCHED";

/// In a rank: joins as a program would, twice, and adds.
fn be_a_rank() {
    let init = Init::from_env().set("timeouts.init", "40s");
    for _ in 0..2 {
        let options = init.options().expect("options");
        assert!(
            matches!(options.secret, SecretSource::Launcher),
            "{options:?}"
        );
        let world = Communicator::init(options).expect("a communicator");
        let mut sum = [u64::from(world.rank()) + 1];
        world
            .all_reduce_in_place(&mut sum, ReduceOp::Sum)
            .expect("all_reduce");
        println!("rank {} of {} has {}", world.rank(), world.size(), sum[0]);
        world.finalize().expect("finalize");
    }
}

/// Starts four ranks of this test by a launcher that says nothing of nodes: else they would know
/// that they are on one, and meet there.
fn start(test: &str, launcher: &str, arguments: &[&str], hidden: &[&str]) {
    if std::env::var_os(RANK).is_some() {
        return be_a_rank();
    }
    let _limit = watchdog(test, Duration::from_secs(120));
    let found = Command::new("which").arg(launcher).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return skip(test, &format!("there is no {launcher}"));
    }
    let mut command = Command::new(launcher);
    command.args(arguments).args(["-n", "4", "env"]);
    for name in hidden {
        command.args(["-u", name]);
    }
    command
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(RANK, "1")
        .env_remove("UNISONO_SKIP_LOG");
    let since = Instant::now();
    let output = command.output().expect("the launcher starts");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    for rank in 0..4 {
        let line = format!("rank {rank} of 4 has 10");
        assert_eq!(out.matches(&line).count(), 2, "{line}\n{out}\n{err}");
    }
    println!(
        "four ranks met twice by {launcher} in {:.1?}",
        since.elapsed()
    );
}

#[test]
fn ranks_meet_by_hydra_s_store() {
    start(
        "ranks_meet_by_hydra_s_store",
        "mpiexec.hydra",
        &[],
        &["MPI_LOCALNRANKS", "MPI_LOCALRANKID"],
    );
}

#[test]
fn ranks_meet_by_open_mpi_s_store() {
    start(
        "ranks_meet_by_open_mpi_s_store",
        "mpirun.openmpi",
        &["--allow-run-as-root", "--oversubscribe"],
        &["OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
    );
}
