//! Jobs as people start them, on two hosts that are network namespaces (`tests/launch`).

mod common;

/// Four ranks by one launcher.
fn launched(test: &str, launcher: &str) {
    common::script(test, "launch/run", &[launcher], &[]);
}

#[test]
fn torchrun_starts_a_job() {
    launched("torchrun_starts_a_job", "torchrun");
}

#[test]
fn mpiexec_of_mpich_starts_a_job() {
    launched("mpiexec_of_mpich_starts_a_job", "hydra");
}

#[test]
fn mpirun_of_open_mpi_starts_a_job() {
    launched("mpirun_of_open_mpi_starts_a_job", "openmpi");
}

#[test]
fn srun_starts_a_job() {
    launched("srun_starts_a_job", "srun");
}

#[test]
fn the_kubernetes_manifest_is_valid() {
    launched("the_kubernetes_manifest_is_valid", "kubernetes");
}
