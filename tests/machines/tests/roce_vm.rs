//! The roce plugin on the kernel's own RDMA in software, in a virtual machine (`tests/roce-vm`).

mod common;

use unisono_tests::soaking;

#[test]
fn over_soft_roce_in_a_virtual_machine() {
    // What is measured is judged where nothing else runs: in a soak.
    let (suites, limit) = if soaking() {
        ("conformance collectives rails speed", "5400")
    } else {
        ("conformance collectives rails", "240")
    };
    common::script(
        "over_soft_roce_in_a_virtual_machine",
        "roce-vm/run",
        &["boot"],
        &[
            ("UNISONO_ROCE_VM_SUITE", suites),
            ("UNISONO_ROCE_VM_LIMIT", limit),
        ],
    );
}
