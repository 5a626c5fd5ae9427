//! Jobs come together, at every size and spread, with one first contact a node; and those that cannot say why.

mod common;

use std::time::{Duration, Instant};

use common::{LIMIT, free_address, job, join_all, on_each, options, payload, unique_id};
use unisono_bootstrap::{BootstrapError, Options, RootSpec, Secret, SecretSource, Tag, Wait};

#[test]
fn every_rank_ends_with_the_same_table() {
    for size in [1, 2, 3, 4, 8, 17] {
        for per_node in [1, 3, size] {
            let ranks = job(size, per_node);
            let first = ranks[0].table.entries().to_vec();
            assert_eq!(first.len() as u32, size);
            for (rank, joined) in ranks.iter().enumerate() {
                assert_eq!(joined.table.entries(), first, "rank {rank} of {size}");
                assert_eq!(joined.table.entries()[rank].payload, payload(rank as u32));
                assert_eq!(joined.table.nodes().len() as u32, size.div_ceil(per_node));
            }
        }
    }
}

#[test]
fn first_contact_is_one_message_a_node_and_the_rest_is_logarithmic() {
    for (size, per_node, rounds) in [
        (2, 1, 1),
        (4, 2, 2),
        (8, 4, 3),
        (17, 5, 5),
        (17, 1, 5),
        (16, 16, 4),
    ] {
        let ranks = job(size, per_node);
        let nodes = size.div_ceil(per_node);
        assert_eq!(
            ranks
                .iter()
                .map(|joined| joined.report.root_messages)
                .sum::<u32>(),
            nodes,
            "{size}/{per_node}"
        );
        assert_eq!(
            ranks
                .iter()
                .filter(|joined| joined.report.node_leader)
                .count() as u32,
            nodes
        );
        for joined in &ranks {
            assert_eq!(
                (joined.report.rounds, joined.report.exchange_messages),
                (rounds, rounds),
                "{size}/{per_node}"
            );
        }
    }
}

#[test]
fn a_proof_holds_for_its_rank_only() {
    let ranks = job(3, 3);
    let proof = ranks[1].prover.prove(b"nonces");
    for joined in &ranks {
        assert!(joined.table.verify(1, b"nonces", &proof));
        assert!(
            !joined.table.verify(2, b"nonces", &proof) && !joined.table.verify(1, b"other", &proof)
        );
        assert!(!joined.table.verify(9, b"nonces", &proof));
    }
}

#[test]
fn missing_ranks_are_named_on_every_rank() {
    let id = unique_id();
    let limit = Duration::from_secs(2);
    let some = |absent: &[u32]| {
        let present = (0..8).filter(|rank| !absent.contains(rank));
        present
            .map(|rank| Options {
                wait: Wait::at_most(limit),
                ..options(&id, rank, 8, 2)
            })
            .collect::<Vec<_>>()
    };
    let started = Instant::now();
    for result in join_all(some(&[2, 5, 6, 7])) {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, BootstrapError::Missing { ranks, size: 8, .. } if ranks == &[2, 5, 6, 7]),
            "{error}"
        );
        let text = error.to_string();
        assert!(
            text.contains("4 of 8 ranks did not come") && text.contains("missing 2, 5-7;"),
            "{text}"
        );
    }
    assert!(started.elapsed() < limit + Duration::from_secs(1));
}

#[test]
fn without_the_root_the_others_say_so() {
    let port = free_address().port();
    let secret = Secret::random().unwrap();
    let all = (1..3).map(|rank| {
        let mut options = Options::new(rank, 3, RootSpec::Address(format!("127.0.0.1:{port}")));
        options.secret = SecretSource::Given(secret.clone());
        options.wait = Wait::at_most(Duration::from_secs(1));
        options
    });
    for result in join_all(all.collect()) {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, BootstrapError::RootUnreachable { missing, .. } if missing == &[0]),
            "{error}"
        );
        assert!(
            error.to_string().contains(&format!("127.0.0.1:{port}")),
            "{error}"
        );
    }
}

#[test]
fn misfits_are_named_on_every_rank() {
    let check = |change: &dyn Fn(&mut Vec<Options>), expect: &dyn Fn(&BootstrapError) -> bool| {
        for per_node in [1, 4] {
            let id = unique_id();
            let mut all: Vec<Options> =
                (0..4).map(|rank| options(&id, rank, 4, per_node)).collect();
            change(&mut all);
            let started = Instant::now();
            for (rank, result) in join_all(all).into_iter().enumerate() {
                let error = result.unwrap_err();
                assert!(expect(&error), "{per_node} a node, rank {rank}: {error}");
            }
            assert!(
                started.elapsed() < LIMIT / 2,
                "a misfit is no reason to wait for the deadline"
            );
        }
    };
    check(&|all| all[3].rank = 2, &|error| {
        matches!(error, BootstrapError::DuplicateRank { rank: 2, .. })
            && error.to_string().contains("process")
    });
    check(&|all| all[2].size = 5, &|error| {
        let BootstrapError::SizeMismatch {
            rank_a,
            size_a,
            rank_b,
            size_b,
        } = error
        else {
            return false;
        };
        let pair = [(*rank_a, *size_a), (*rank_b, *size_b)];
        pair.contains(&(2, 5)) && pair.iter().any(|&(rank, size)| rank != 2 && size == 4)
    });
    check(
        &|all| all[1].version = "unisono 0.0.9, ABI 0.9".to_owned(),
        &|error| {
            let text = error.to_string();
            matches!(error, BootstrapError::VersionMismatch { .. })
                && text.contains("0.0.9")
                && text.contains("rank 1 ")
        },
    );
}

#[test]
fn without_a_secret_one_node_meets_by_its_user() {
    let job = format!("peer credentials {}", std::process::id());
    let one = |rank, root: RootSpec, local_size| {
        let mut options = Options::new(rank, 3, root);
        (options.job, options.local_size) = (job.clone(), local_size);
        options.wait = Wait::at_most(LIMIT);
        options
    };
    let ranks = join_all(
        (0..3)
            .map(|rank| one(rank, RootSpec::Node, Some(3)))
            .collect(),
    );
    let ranks: Vec<_> = ranks
        .into_iter()
        .map(|joined| joined.expect("they meet"))
        .collect();
    let tag = Tag {
        communicator: 1,
        sequence: 1,
    };
    let sums = on_each(&ranks, |joined| {
        let rank = joined.control.rank() as u8;
        joined
            .control
            .all_gather(&[2, 1, 0], tag, &[rank], &Wait::at_most(LIMIT))
            .unwrap()
            .concat()
    });
    assert!(sums.iter().all(|sum| sum == &[2, 1, 0]));
    // Two of three are said to be here, so the third is elsewhere and cannot be believed.
    let far = RootSpec::Address("192.0.2.77:4400".to_owned());
    for result in join_all((0..2).map(|rank| one(rank, far.clone(), Some(2))).collect()) {
        let error = result.unwrap_err();
        assert!(matches!(error, BootstrapError::NoSecret { .. }), "{error}");
        assert!(error.to_string().contains("UNISONO_SECRET_FILE"), "{error}");
    }
}

#[test]
fn an_address_a_secret_and_no_word_of_local_ranks_will_do() {
    let port = free_address().port();
    for security in [
        SecretSource::Given(Secret::random().unwrap()),
        SecretSource::Disabled,
    ] {
        let all = (0..4).map(|rank| {
            let mut options = Options::new(rank, 4, RootSpec::Address(format!("localhost:{port}")));
            (options.secret, options.wait) = (security.clone(), Wait::at_most(LIMIT));
            options
        });
        for joined in join_all(all.collect()) {
            assert_eq!(joined.expect("they meet").table.size(), 4);
        }
    }
}

#[test]
fn ranks_with_another_secret_are_not_let_in() {
    let port = free_address().port();
    let secret = Secret::random().unwrap();
    let all = (0..3).map(|rank| {
        let mut options = Options::new(rank, 3, RootSpec::Address(format!("127.0.0.1:{port}")));
        let secret = if rank == 2 {
            Secret::random().unwrap()
        } else {
            secret.clone()
        };
        (options.secret, options.wait) = (
            SecretSource::Given(secret),
            Wait::at_most(Duration::from_secs(2)),
        );
        options
    });
    let results = join_all(all.collect());
    for result in &results[..2] {
        let error = result.as_ref().unwrap_err();
        assert!(
            matches!(error, BootstrapError::Missing { ranks, .. } if ranks == &[2]),
            "{error}"
        );
    }
    assert!(matches!(
        results[2],
        Err(BootstrapError::RootUnreachable { .. })
    ));
}

#[test]
fn an_abort_flag_ends_a_join_at_once() {
    let id = unique_id();
    let waiting = options(&id, 0, 2, 1);
    let abort = waiting.wait.abort.clone();
    let started = Instant::now();
    let thread = std::thread::spawn(move || unisono_bootstrap::Bootstrap::join(waiting));
    std::thread::sleep(Duration::from_millis(100));
    abort.raise();
    assert!(matches!(
        thread.join().unwrap(),
        Err(BootstrapError::Cancelled { .. })
    ));
    assert!(started.elapsed() < Duration::from_secs(2));
}
