//! The main job on the example plugin in C: ranks whose only device, streams and links are its own.
//!
//! The device is asynchronous (worker threads), the link is posted, and no memory is shared: what
//! the engine does here is what it does with a vendor's card and network.

use std::path::PathBuf;
use std::sync::OnceLock;

use unisono::{Communicator, DataType, Error, InitOptions, PluginRequest, ReduceOp};
use unisono_abi_tests::{compile_plugin, example};
use unisono_tests::Collective::{self, AllReduce, ReduceScatter};
use unisono_tests::{Job, Try, threads};

const COLLECTIVES: [Collective; 4] = [
    AllReduce,
    ReduceScatter,
    Collective::AllGather,
    Collective::Broadcast(1),
];

/// Its device moves eight-bit floats, and has no kernels for them.
fn reduces(dtype: DataType) -> bool {
    !matches!(dtype, DataType::F8E4M3 | DataType::F8E5M2)
}

/// The library, compiled as a vendor would; processes of one test compile their own.
fn library() -> PathBuf {
    static DIRECTORY: OnceLock<tempfile::TempDir> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("libunisono_plugin_example.so");
        compile_plugin(&example(), &path).expect("the example compiles");
        directory
    });
    directory.path().join("libunisono_plugin_example.so")
}

/// This plugin and no other.
fn only_the_example(options: &mut InitOptions, path: PathBuf) {
    let mut request = PluginRequest::named("example");
    request.path = Some(path);
    options.plugins = vec![request];
    options.device = Some(("example".to_owned(), 0));
}

fn run(world: &Communicator, attempt: Try, dtype: DataType) {
    let done = attempt.run_as(world, dtype);
    // What its `supports` does not claim is refused before any byte moves, and breaks nothing.
    if !reduces(dtype) && matches!(attempt.collective, AllReduce | ReduceScatter) {
        assert!(
            matches!(&done, Err(Error::Unsupported { why, .. }) if why.contains(dtype.name())),
            "{attempt:?} of {dtype:?}: {done:?}"
        );
        return;
    }
    done.unwrap_or_else(|e| panic!("{attempt:?} of {dtype:?}: {e}"))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// Every collective, type and reduction at a few sizes.
fn everything(world: &Communicator) {
    assert_eq!(world.size(), 3);
    let mut salt = 0;
    for collective in COLLECTIVES {
        for count in [0, 1, 7, 1000] {
            for dtype in DataType::ALL {
                for op in ReduceOp::ALL.into_iter().filter(|op| op.applies_to(dtype)) {
                    salt += 1;
                    let in_place = salt % 2 == 0;
                    let attempt = Try {
                        collective,
                        count,
                        op: op.into(),
                        in_place,
                        salt,
                    };
                    run(world, attempt, dtype);
                }
            }
        }
    }
    world.barrier().expect("barrier");
}

/// Messages of many slots.
fn large(world: &Communicator) {
    for collective in COLLECTIVES {
        let attempt = Try {
            collective,
            count: 600_011,
            op: ReduceOp::Sum.into(),
            in_place: false,
            salt: 3,
        };
        run(world, attempt, DataType::F32);
    }
}

#[test]
fn three_ranks_as_threads() {
    let path = library();
    threads(
        3,
        move |options| only_the_example(options, path.clone()),
        |world| {
            everything(&world);
            large(&world);
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn three_ranks_as_processes() {
    let ranks = Job::new("three_ranks_as_processes", 3)
        .start(|rank| {
            let world = rank.init(|options| only_the_example(options, library()));
            everything(&world);
            large(&world);
            world.finalize().expect("finalize");
            rank.say("all right");
        })
        .succeed();
    for rank in ranks {
        assert!(rank.said("all right"), "rank {} ran its job", rank.rank);
    }
}
