//! Strangers at the ports: garbage, silence, wrong secrets. The job does not notice.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{LIMIT, join_all, on_each, options, unique_id};
use unisono_bootstrap::{Options, RootSpec, Secret, SecretSource, StrayKind, Tag, Wait};

/// Opens connections of every hostile kind until told to stop; how many it made.
fn harass(address: SocketAddr, stop: &AtomicBool, made: &AtomicUsize) {
    let mut half_open = Vec::new();
    while !stop.load(Ordering::Acquire) && made.load(Ordering::Relaxed) < 3000 {
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500))
        else {
            return;
        };
        // Whether it is heard or cut off does not matter.
        let _ = match made.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => {
                half_open.push(stream);
                Ok(())
            }
            1 => stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            2 => stream.write_all(&[&b"unisono\x01\x01\0\x01"[..], &[7; 56]].concat()),
            _ => Ok(()),
        };
        if half_open.len() > 600 {
            half_open.remove(0);
        }
        std::thread::sleep(Duration::from_micros(300));
    }
}

#[test]
fn the_root_answers_its_job_among_hundreds_of_strangers() {
    let id = unique_id();
    let address = id.addresses()[0];
    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut all: Vec<Options> = (0..8).map(|rank| options(&id, rank, 8, 2)).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| harass(address, &stop, &made));
        let late = all.split_off(6);
        let early = scope.spawn(|| join_all(all));
        while made.load(Ordering::Relaxed) < 900 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let ranks: Vec<_> = join_all(late)
            .into_iter()
            .chain(early.join().unwrap())
            .map(|j| j.expect("they meet"))
            .collect();
        stop.store(true, Ordering::Release);
        let strays: u64 = ranks
            .iter()
            .map(|joined| joined.report.strays.total())
            .sum();
        let of = |kind| {
            ranks
                .iter()
                .map(|joined| joined.report.strays.count(kind))
                .sum::<u64>()
        };
        assert!(strays > 500, "{strays}");
        assert!(
            of(StrayKind::Garbage) > 100
                && of(StrayKind::WrongSecret) > 100
                && of(StrayKind::Closed) > 100
        );
        assert!(ranks.iter().all(|joined| joined.table.size() == 8));
    });
}

#[test]
fn a_running_job_drops_strangers_at_its_own_ports() {
    let id = unique_id();
    let ranks: Vec<_> = join_all((0..3).map(|rank| options(&id, rank, 3, 1)).collect());
    let ranks: Vec<_> = ranks
        .into_iter()
        .map(|joined| joined.expect("they meet"))
        .collect();
    let address = ranks[1].table.get(1).unwrap().addresses[0];
    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| harass(address, &stop, &made));
        let mut sequence = 0;
        while made.load(Ordering::Relaxed) < 900 {
            sequence += 1;
            on_each(&ranks, |joined| {
                let tag = Tag {
                    communicator: 1,
                    sequence,
                };
                let all = joined.control.all_gather(
                    &[0, 1, 2],
                    tag,
                    &[joined.control.rank() as u8],
                    &Wait::at_most(LIMIT),
                );
                assert_eq!(all.unwrap().concat(), [0, 1, 2]);
            });
        }
        stop.store(true, Ordering::Release);
    });
    let strays = ranks[1].control.strays();
    assert!(strays.total() > 300, "{strays:?}");
    assert!(ranks.iter().all(|joined| joined.control.dead().is_empty()));
}

#[test]
fn a_half_open_connection_is_closed_after_its_time() {
    let id = unique_id();
    let ranks: Vec<_> = join_all((0..2).map(|rank| options(&id, rank, 2, 1)).collect());
    let ranks: Vec<_> = ranks
        .into_iter()
        .map(|joined| joined.expect("they meet"))
        .collect();
    let mut stream = TcpStream::connect(ranks[0].table.get(0).unwrap().addresses[0]).unwrap();
    stream.write_all(b"unisono").unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let started = std::time::Instant::now();
    let _ = ranks[0].control.recv(
        1,
        Tag {
            communicator: 1,
            sequence: 1,
        },
        &Wait::at_most(Duration::from_secs(6)),
    );
    assert!(matches!(stream.read(&mut [0; 16]), Ok(0)), "it was closed");
    assert!(started.elapsed() < Duration::from_secs(10));
    // At least: a stranger of the tests beside this one may have kept a port that is now this job's.
    assert!(ranks[0].control.strays().count(StrayKind::Silent) >= 1);
}

#[test]
fn wrong_secrets_by_the_hundred_do_not_keep_the_job_apart() {
    let id = unique_id();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    // A rank of another job that was given this root by mistake.
                    let mut lost =
                        Options::new(1, 2, RootSpec::Address(id.addresses()[0].to_string()));
                    lost.secret = SecretSource::Given(Secret::random().unwrap());
                    lost.wait = Wait::at_most(Duration::from_millis(150));
                    let error = unisono_bootstrap::Bootstrap::join(lost)
                        .unwrap_err()
                        .to_string();
                    assert!(error.contains("rank 0 did not answer"), "{error}");
                }
            });
        }
        let mut all: Vec<Options> = (0..4).map(|rank| options(&id, rank, 4, 1)).collect();
        let last = all.split_off(3);
        let early = scope.spawn(|| join_all(all));
        std::thread::sleep(Duration::from_millis(600));
        let late = join_all(last);
        for joined in early.join().unwrap().into_iter().chain(late) {
            joined.expect("the job comes together");
        }
        stop.store(true, Ordering::Release);
    });
}
