//! Three ranks with a program each, on the devices of one vendor after the other.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use unisono::InitOptions;
use unisono_emulated_tests::{Emulated, all_done};
use unisono_tests::threads;

use super::{ADVERSE, Program, VENDORS, own, told};

/// How long one vendor's ranks may take.
const LIMIT: Duration = Duration::from_secs(300);

/// Each rank is a process, with these options.
pub(super) fn processes(test: &str, adjust: fn(&mut InitOptions), play: impl Fn(&Program)) {
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text + ADVERSE) else {
            return;
        };
        let job = machine.job(test, 3).env("TEST_PLUGIN", plugin);
        let ranks = job.limit(LIMIT).start(|rank| {
            let plugin = told("TEST_PLUGIN");
            let own = own(&plugin);
            let world = rank.init(|options| {
                own(options);
                adjust(options);
            });
            let program = Program::new(world, &plugin);
            play(&program);
            program.world.finalize().expect("finalize");
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// Each rank is a thread of one process. What registers memory or makes a graph waits for all that the devices have
/// under way, so all are `ready` before the first replay.
pub(super) fn in_one_process(
    test: &str,
    play: impl Fn(&Program, &dyn Fn()) + Send + Sync + 'static,
) {
    let play = Arc::new(play);
    for (plugin, name) in VENDORS {
        let Some(machine) = Emulated::new(test, name, |text| text + ADVERSE) else {
            return;
        };
        let job = machine.job(test, 1).env("TEST_PLUGIN", plugin);
        let ranks = job.limit(LIMIT).start(|rank| {
            let plugin = told("TEST_PLUGIN");
            let (ready, play) = (Barrier::new(3), Arc::clone(&play));
            threads(3, own(&plugin), move |world| {
                let program = Program::beside_others(world, &told("TEST_PLUGIN"));
                let ready = || {
                    ready.wait();
                };
                play(&program, &ready);
                ready();
                program.world.finalize().expect("finalize");
            });
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}
