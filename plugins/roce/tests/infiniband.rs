//! InfiniBand: packets find their way by the ports' local numbers, without the header that Ethernet needs.

mod common;

use common::devices::{Devices, Facts};
use common::*;

#[test]
fn puts_over_infiniband() {
    let devices = Devices::none();
    for (host, name) in (1..).zip(["fake0", "fake1"]) {
        devices.add(Facts {
            name,
            layer: "InfiniBand",
            rate: "100 Gb/sec (4X EDR)",
            host,
        });
    }
    let mut random = Random::seeded();
    let mut ends = pair(&[], 1 << 20);
    traffic(&mut ends, &mut random, 40);
    // Rails are made up for as on Ethernet.
    devices.cut("fake0");
    traffic(&mut ends, &mut random, 20);
    let told =
        std::fs::read_to_string(devices.path("fake0").join("told")).expect("it was told paths");
    assert!(told.contains("path qp="), "{told}");
}
