//! The suite against the roce plugin, over the stand-in for libibverbs. A file of its own: the
//! stand-in's devices are named by the process's environment.

#[path = "../../../plugins/roce/tests/common/devices.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod devices;

use std::path::Path;

use devices::Devices;
use unisono_conformance::{Expectations, Suite};

#[test]
fn roce_over_a_stand_in() {
    let _devices = Devices::ethernet(2);
    let runner = Path::new(env!("CARGO_BIN_EXE_unisono-conformance"));
    let plugin = runner.with_file_name("libunisono_plugin_roce.so");
    assert!(
        plugin.exists(),
        "{} is not there: build the workspace first",
        plugin.display()
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let expected = root.join("plugins/roce/conformance.yaml");
    let expectations = Expectations::read(&expected).expect("what it may skip");
    let one = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let mut params = one("library", &devices::library());
    params.extend(one("devices", "fake0"));
    let suite = Suite::new(plugin, runner)
        .params(params)
        .peer_params(one("devices", "fake1"))
        .expect(expectations);
    let report = suite
        .run(|row| println!("{}", row.line()))
        .expect("the suite runs");
    println!("{}", report.summary());
    assert!(report.is_good(), "{}", report.summary());
}
