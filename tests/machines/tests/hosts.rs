//! Several machines on one: hosts that are network namespaces (`tests/hosts`).

mod common;

use unisono_emulated_tests::Emulated;
use unisono_tests::soaking;

/// One scenario of the script.
fn scenario(test: &str, name: &str) {
    common::script(test, "hosts/run", &[name], &[]);
}

#[test]
fn all_collectives_between_hosts() {
    scenario("all_collectives_between_hosts", "collectives");
}

#[test]
fn hierarchical_plans_beat_flat_ones_and_send_what_they_say() {
    let test = "hierarchical_plans_beat_flat_ones_and_send_what_they_say";
    scenario(test, "levels");
    // What is measured against other programs is judged where nothing else runs.
    if soaking() {
        scenario(test, "speed");
    }
}

/// What the processes of a host with this box need in their environment.
fn drivers(machine: &Emulated) -> String {
    let variables = machine.environment().into_iter();
    let variables = variables.map(|(name, value)| format!("{name}={value}"));
    variables.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_mixed_job_on_two_hosts_runs_the_plan_that_is_shown() {
    let test = "a_mixed_job_on_two_hosts_runs_the_plan_that_is_shown";
    let machine = |name| Emulated::new(test, name, |text| text);
    let (Some(first), Some(second)) = (machine("h100x8"), machine("ascend910bx8")) else {
        return;
    };
    // Each host has the driver of its own devices alone.
    let (first, second) = (first.only(&["cuda", "nvml"]), second.only(&["acl"]));
    let (first, second) = (drivers(&first), drivers(&second));
    let environment = [
        ("UNISONO_TEST_DRIVERS_0", first.as_str()),
        ("UNISONO_TEST_DRIVERS_1", second.as_str()),
    ];
    common::script(test, "hosts/run", &["mixed"], &environment);
}

#[test]
fn hosts_that_are_slow_late_or_known_by_name() {
    scenario("hosts_that_are_slow_late_or_known_by_name", "odd");
}

#[test]
fn cards_are_used_as_the_cluster_file_says() {
    scenario("cards_are_used_as_the_cluster_file_says", "interfaces");
}

#[test]
fn a_rail_that_is_cut_costs_a_pause_and_no_bytes() {
    scenario("a_rail_that_is_cut_costs_a_pause_and_no_bytes", "rails");
}

#[test]
fn addresses_that_take_nothing_cost_a_bounded_time() {
    scenario("addresses_that_take_nothing_cost_a_bounded_time", "deaf");
}

#[test]
fn a_host_that_disappears_is_named() {
    scenario("a_host_that_disappears_is_named", "gone");
}
