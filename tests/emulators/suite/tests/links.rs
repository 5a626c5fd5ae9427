//! The link graph that the plugin reports from an emulated box.

use std::collections::BTreeSet;

use unisono::PluginRequest;
use unisono_emulated_tests::Emulated;

/// What a device's links to other devices are: kind and rate, each once.
fn reported(machine: &Emulated, test: &str, device: u32) -> Vec<String> {
    let ranks = machine.job(test, 1).start(move |rank| {
        let world = rank.init(|options| {
            options.plugins = vec![PluginRequest::named("cuda")];
            options.device = Some(("cuda".to_owned(), device));
        });
        let own = world.device().info().id;
        let links = world.device().instance().link_report().expect("links");
        let others = links
            .iter()
            .filter(|link| link.from == own && link.to != own);
        for link in others {
            rank.say(&format!("{} {}", link.kind, link.bytes_per_second));
        }
    });
    let exits = ranks.finish();
    let lines: Vec<String> = exits.into_iter().flat_map(|exit| exit.lines).collect();
    assert_eq!(lines.len(), 7, "{lines:?}");
    let kinds: BTreeSet<_> = lines.into_iter().collect();
    kinds.into_iter().collect()
}

#[test]
fn eight_lanes_short_of_nothing() {
    let test = "eight_lanes_short_of_nothing";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    assert_eq!(reported(&machine, test, 0), ["nvlink 450000000000"]);
}

#[test]
fn two_dead_lanes_narrow_one_device() {
    let test = "two_dead_lanes_narrow_one_device";
    let dead = |text: String| text + "  dead: [[3, 0], [3, 17]]\n";
    let Some(machine) = Emulated::new(test, "h100x8", dead) else {
        return;
    };
    assert_eq!(reported(&machine, test, 3), ["nvlink 400000000000"]);
}

#[test]
fn without_the_management_library_it_is_pcie() {
    let test = "without_the_management_library_it_is_pcie";
    let lacking = |text: String| text + "lacks: [management]\n";
    let Some(machine) = Emulated::new(test, "h100x8", lacking) else {
        return;
    };
    assert_eq!(reported(&machine, test, 0), ["pcie 24000000000"]);
}
