//! What a communicator takes of a machine's memory, in ranks that are processes.

use std::hint::black_box;
use std::time::Duration;

use tempfile::TempDir;
use unisono::hal::{Loader, Origin, SearchPath};
use unisono::{Communicator, InitOptions, ReduceOp};
use unisono_tests::footprint::{ALONE, OF_EIGHT, peak_bytes};
use unisono_tests::{Footprint, Job, Rank, watchdog};

const LIMIT: Duration = Duration::from_secs(60);

/// The message whose staging is the largest of those that are usual.
const ELEMENTS: usize = (1 << 20) / size_of::<f32>();

/// Sets a rank's options, and says which folder is to be kept while it runs.
type Setup = fn(&mut InitOptions) -> Option<TempDir>;

/// Calls that take all the memory that calls of this size need.
fn call(on: &Communicator, data: &mut [f32]) {
    for elements in [1, data.len()] {
        let part = &mut data[..elements];
        on.all_reduce_in_place(part, ReduceOp::Max).expect("max");
        on.broadcast(part, on.size() - 1).expect("broadcast");
    }
    on.barrier().expect("barrier");
}

/// Joins, calls, makes a further communicator by `split`, calls there, and says what each added.
fn grow(rank: &Rank, setup: Setup) {
    // The program's own, which is there before.
    let mut data = vec![1.0_f32; ELEMENTS];
    let now = || Footprint::now().expect("the system tells");
    let before = now();
    let mut folder = None;
    let world = rank.init(|options| folder = setup(options));
    call(&world, &mut data);
    let first = now();
    let color = world.size() - 1;
    let further = world.split(Some(color), 0).expect("split");
    let further = further.expect("this rank has a color");
    call(&further, &mut data);
    let second = now();
    // Others read this rank's part of what is shared, too.
    world.barrier().expect("barrier");
    rank.say(&format!("first {}", first.beyond(&before).own()));
    rank.say(&format!("further {}", second.beyond(&first).own()));
    world.finalize().expect("finalize");
}

fn holds_less(test: &str, ranks: u32, limit: u64, setup: Setup) {
    let _limit = watchdog(test, LIMIT);
    let ranks = Job::new(test, ranks).start(|rank| grow(&rank, setup));
    let ranks = ranks.succeed();
    let mut all = 0;
    for exit in &ranks {
        for which in ["first", "further"] {
            let bytes: u64 = exit.answer(which).parse().expect("a number");
            assert!(
                bytes < limit,
                "rank {}: its {which} communicator took {bytes} bytes, {limit} are promised",
                exit.rank
            );
            all += bytes;
        }
    }
    // Else nothing was measured.
    assert!(all > 0, "no rank took any memory");
}

#[test]
fn a_communicator_of_one_rank_takes_less_than_a_mebibyte() {
    let test = "a_communicator_of_one_rank_takes_less_than_a_mebibyte";
    holds_less(test, 1, ALONE, |_| None);
}

/// What lies beside the plugins in their folder is not kept in mind.
#[test]
fn a_folder_of_many_files_takes_no_memory() {
    holds_less(
        "a_folder_of_many_files_takes_no_memory",
        1,
        ALONE,
        |options| {
            let folder = TempDir::new().expect("a folder");
            for file in 0..10_000 {
                let path = folder.path().join(format!("libsomething_else_{file}.so"));
                std::fs::write(path, []).expect("a file");
            }
            let search = SearchPath::default().first(Origin::Program, folder.path());
            options.loader = Loader::new(search);
            Some(folder)
        },
    );
}

#[test]
fn a_communicator_of_eight_ranks_takes_less_than_32_mebibytes_of_each() {
    let test = "a_communicator_of_eight_ranks_takes_less_than_32_mebibytes_of_each";
    holds_less(test, 8, OF_EIGHT, |_| None);
}

/// In a process of its own: other threads of a test's process come and go, with their stacks.
/// One comes in this process, too (the watchdog), and with its first allocation glibc maps
/// 128 MiB for it and gives half of them back at once: so far more than that is mapped here.
#[test]
fn touched_memory_is_private_and_untouched_memory_is_mapped() {
    const MAPPED: usize = 1 << 30;
    const TOUCHED: usize = 64 << 20;
    let now = || Footprint::now().expect("the system tells");
    let test = "touched_memory_is_private_and_untouched_memory_is_mapped";
    let _limit = watchdog(test, LIMIT);
    let looks = |_: Rank| {
        let before = now();
        let mut memory: Vec<u8> = Vec::with_capacity(MAPPED);
        let mapped = now().beyond(&before);
        assert!(mapped.mapped >= MAPPED as u64 / 2, "{mapped:?}");
        assert!(mapped.own() < TOUCHED as u64 / 2, "{mapped:?}");
        memory.resize(TOUCHED, 1);
        let touched = now().beyond(&before);
        assert!(touched.private >= TOUCHED as u64, "{touched:?}");
        let peak = peak_bytes().expect("the system tells");
        assert!(peak >= black_box(&memory).len() as u64, "{peak}");
    };
    let _ = Job::new(test, 1).start(looks).succeed();
}
