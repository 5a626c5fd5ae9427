//! One list of plugins for a whole fleet: what a machine has no driver for is left out there.

use unisono::{Communicator, DataType, Op, PluginRequest};
use unisono_emulated_tests::Emulated;

/// What a rank says that joins with these plugins and this device on a machine whose only driver is that of
/// NVIDIA's devices: its device's name and what is noted, or why it cannot.
fn joins(
    test: &str,
    plugins: &'static [&'static str],
    device: Option<(&'static str, u32)>,
) -> Option<String> {
    let machine = Emulated::new(test, "h100x8", |text| text)?.only(&["cuda", "nvml"]);
    let ranks = machine.job(test, 1).start(move |rank| {
        let mut options = rank.options();
        options.plugins = plugins.iter().copied().map(PluginRequest::named).collect();
        options.device = device.map(|(name, index)| (name.to_owned(), index));
        match Communicator::init(options) {
            Ok(world) => {
                let told = world.explain(Op::AllReduce, 8, DataType::F32);
                let notes = told.expect("an explanation").notes().join("; ");
                rank.say(&format!("{}; {notes}", world.device().info().name));
            }
            Err(error) => rank.say(&error.to_string()),
        }
    });
    let exits = ranks.finish();
    Some(exits[0].lines.last().expect("a line").clone())
}

#[test]
fn a_plugin_without_its_driver_is_left_out() {
    let test = "a_plugin_without_its_driver_is_left_out";
    let all = &["host", "ascend", "cuda"];
    let Some(said) = joins(test, all, Some(("cuda", 1))) else {
        return;
    };
    assert!(said.contains("H100"), "{said}");
    // Not in the log alone.
    assert!(
        said.contains("Rank 0 of the job does without plugin `ascend`"),
        "{said}"
    );
    assert!(said.contains("none of libascendcl.so opens"), "{said}");
}

#[test]
fn the_plugin_of_the_device_that_is_named_is_not() {
    let test = "the_plugin_of_the_device_that_is_named_is_not";
    let all = &["host", "ascend", "cuda"];
    let Some(said) = joins(test, all, Some(("ascend", 0))) else {
        return;
    };
    assert!(said.contains("none of libascendcl.so opens"), "{said}");
}

#[test]
fn the_next_with_a_device_is_taken() {
    let test = "the_next_with_a_device_is_taken";
    let Some(said) = joins(test, &["ascend", "cuda", "host"], None) else {
        return;
    };
    assert!(said.contains("H100"), "{said}");
}

#[test]
fn but_never_the_cpu_without_a_word() {
    let test = "but_never_the_cpu_without_a_word";
    let Some(said) = joins(test, &["ascend", "host"], None) else {
        return;
    };
    assert!(said.contains("plugin `ascend` comes first"), "{said}");
    assert!(said.contains("such as `host:0`"), "{said}");
}

#[test]
fn where_nothing_is_left_the_reason_is_told() {
    let test = "where_nothing_is_left_the_reason_is_told";
    let Some(said) = joins(test, &["ascend"], None) else {
        return;
    };
    assert!(said.contains("no plugin in use has a device"), "{said}");
    assert!(said.contains("none of libascendcl.so opens"), "{said}");
}
