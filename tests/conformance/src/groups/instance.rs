//! Instances.

use crate::case::Case;
use crate::check::Check;
use crate::outcome::{Checked, Stop, ensure};
use crate::raw::RawInstance;

const G: &str = "instance";

pub(super) const CHECKS: &[Check] = &[
    Check::one(
        G,
        "several",
        "A process may use the plugin several times at once.",
        several,
    ),
    Check::one(
        G,
        "many_threads",
        "Instances are made and destroyed from any thread.",
        threads,
    ),
    Check::one(
        G,
        "unknown_interface",
        "A table that nobody knows is NULL.",
        unknown,
    ),
    Check::one(
        G,
        "without_a_log",
        "A host that wants no log is served.",
        silent,
    ),
    Check::one(
        G,
        "no_error_record",
        "A refusal without a record for it is still a refusal.",
        null,
    ),
];

fn several(case: &Case) -> Checked {
    let all = [case.instance()?, case.instance()?, case.instance()?];
    let devices: Vec<_> = all.iter().map(|i| i.devices()).collect::<Result<_, _>>()?;
    let ids = |at: usize| devices[at].iter().map(|d| d.id).collect::<Vec<_>>();
    ensure!(
        ids(0) == ids(1) && ids(1) == ids(2),
        "instances list other devices"
    );
    let [first, second, third] = all;
    drop(first);
    second.devices()?;
    drop(second);
    third.devices()?;
    Ok(())
}

fn threads(case: &Case) -> Checked {
    std::thread::scope(|scope| {
        let one = || -> Checked {
            for _ in 0..5 {
                case.instance()?.devices()?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        for thread in threads {
            thread
                .join()
                .map_err(|_| Stop::failed("a thread panicked"))??;
        }
        Ok(())
    })
}

fn unknown(case: &Case) -> Checked {
    let instance = case.instance()?;
    for name in ["", "nobody.knows.this", "\u{fc}"] {
        ensure!(
            instance.interface(name).is_none(),
            "there is a table `{name}`"
        );
    }
    Ok(())
}

fn silent(case: &Case) -> Checked {
    RawInstance::new(case).map(drop)
}

fn null(case: &Case) -> Checked {
    let instance = RawInstance::new(case)?;
    let (status, _, _) = instance.open(u32::MAX, false)?;
    ensure!(status < 0, "device {} was opened", u32::MAX);
    Ok(())
}
