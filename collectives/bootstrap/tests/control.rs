//! The control channel among ranks that live: messages, floods, exchanges, leaving, shrinking.

mod common;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{LIMIT, job, on_each};
use unisono_bootstrap::{AbortFlag, BootstrapError, Control, Event, Joined, Tag, Wait, shrink};

fn tag(communicator: u64, sequence: u64) -> Tag {
    Tag {
        communicator,
        sequence,
    }
}

fn wait() -> Wait {
    Wait::at_most(LIMIT)
}

/// Sleeps and turns as the engine's progress thread does, until `done` or the limit.
fn drive(control: &Control, mut done: impl FnMut(&[Event]) -> bool) -> Vec<Event> {
    let (until, mut events) = (Instant::now() + LIMIT, Vec::new());
    while !done(&events) {
        assert!(
            Instant::now() < until,
            "rank {}: {events:?}",
            control.rank()
        );
        let limit = control
            .idle_time(Instant::now())
            .min(Duration::from_millis(50));
        let mut set = [rustix::event::PollFd::from_borrowed_fd(
            control.as_fd(),
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: limit.subsec_nanos().into(),
        };
        rustix::event::poll(&mut set, Some(&limit)).unwrap();
        events.extend(control.turn(Instant::now()).unwrap());
    }
    events
}

/// Runs `work` for each rank while other threads drive the channels, as the engine does.
fn driven<T: Send>(ranks: &[Joined], work: impl Fn(&Joined) -> T + Sync) -> Vec<T> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for joined in ranks {
            scope.spawn(|| drive(&joined.control, |_| stop.load(Ordering::Acquire)));
        }
        let results = on_each(ranks, work);
        stop.store(true, Ordering::Release);
        results
    })
}

#[test]
fn messages_arrive_once_and_in_order_between_all_pairs() {
    let ranks = job(5, 2);
    driven(&ranks, |joined| {
        let (me, control) = (joined.control.rank(), &joined.control);
        for to in 0..5 {
            for number in 0..50u32 {
                let bytes = [me.to_le_bytes(), number.to_le_bytes()]
                    .concat()
                    .repeat(1 + number as usize * 20);
                control
                    .send(to, tag(7, u64::from(number % 2)), &bytes)
                    .unwrap();
            }
        }
        for from in 0..5 {
            for number in (0..50u32).step_by(2).chain((1..50).step_by(2)) {
                let bytes = control
                    .recv(from, tag(7, u64::from(number % 2)), &wait())
                    .unwrap();
                assert_eq!(
                    bytes[..8],
                    [from.to_le_bytes(), number.to_le_bytes()].concat()
                );
                assert_eq!(bytes.len(), 8 * (1 + number as usize * 20));
            }
            assert_eq!(control.try_recv(from, tag(7, 0)).unwrap(), None);
        }
    });
}

#[test]
fn large_messages_pass_while_both_sides_send() {
    let ranks = job(2, 1);
    driven(&ranks, |joined| {
        let other = 1 - joined.control.rank();
        let bytes: Vec<u8> = (0..20_000_000u32)
            .map(|i| (i.wrapping_mul(31) >> 3) as u8)
            .collect();
        joined.control.send(other, tag(1, 1), &bytes).unwrap();
        assert!(joined.control.recv(other, tag(1, 1), &wait()).unwrap() == bytes);
        let error = joined
            .control
            .send(other, tag(1, 2), &vec![0; (64 << 20) + 1])
            .unwrap_err();
        assert!(matches!(error, BootstrapError::TooLarge { .. }));
    });
}

#[test]
fn groups_exchange_at_once_from_several_threads_with_and_without_a_driver() {
    let ranks = job(8, 3);
    let groups: [&[u32]; 5] = [
        &[0, 1, 2, 3, 4, 5, 6, 7],
        &[6, 4, 2, 0],
        &[1, 3, 5],
        &[7],
        &[5, 0, 7],
    ];
    let exchange = |joined: &Joined| {
        std::thread::scope(|scope| {
            for (group, members) in groups
                .iter()
                .enumerate()
                .filter(|(_, m)| m.contains(&joined.control.rank()))
            {
                scope.spawn(move || {
                    for sequence in 0..10 {
                        let bytes = |rank: u32| {
                            format!("{group} {sequence} {rank}")
                                .repeat(rank as usize)
                                .into_bytes()
                        };
                        let me = joined.control.rank();
                        let tag = tag(group as u64, sequence);
                        let all = joined
                            .control
                            .all_gather(members, tag, &bytes(me), &wait())
                            .unwrap();
                        let expected: Vec<Vec<u8>> =
                            members.iter().map(|&rank| bytes(rank)).collect();
                        assert_eq!(all, expected);
                    }
                });
            }
        });
        // The next use of the same groups needs fresh numbers.
    };
    on_each(&ranks, exchange);
    let fresh = job(8, 3);
    driven(&fresh, exchange);
}

#[test]
fn bad_members_are_refused() {
    let ranks = job(2, 2);
    let gather = |members: &[u32]| {
        ranks[0]
            .control
            .all_gather(members, tag(1, 1), &[], &wait())
            .unwrap_err()
            .to_string()
    };
    assert!(gather(&[0, 1, 0]).contains("rank 0 stands there twice"));
    assert!(gather(&[1]).contains("not among them"));
    assert!(gather(&[0, 2]).contains("no rank 2 in a job of 2"));
    assert!(matches!(
        ranks[0].control.send(5, tag(1, 1), &[]),
        Err(BootstrapError::NoSuchRank { rank: 5, size: 2 })
    ));
}

#[test]
fn floods_reach_everyone_once() {
    let ranks = job(17, 5);
    let text = "a".repeat(3000);
    ranks[3].control.abort(9, -7, &text).unwrap();
    ranks[4].control.mismatch(9, b"calls differ").unwrap();
    ranks[5].control.broadcast(tag(9, 1), b"hello").unwrap();
    let expected = [
        Event::Abort {
            origin: 3,
            communicator: 9,
            code: -7,
            text: text.clone(),
        },
        Event::Mismatch {
            origin: 4,
            communicator: 9,
            bytes: b"calls differ".to_vec(),
        },
        Event::Broadcast {
            origin: 5,
            tag: tag(9, 1),
            bytes: b"hello".to_vec(),
        },
    ];
    on_each(&ranks, |joined| {
        let me = joined.control.rank();
        let wanted: Vec<&Event> = expected
            .iter()
            .enumerate()
            .filter(|(i, _)| me != *i as u32 + 3)
            .map(|e| e.1)
            .collect();
        // Some more turns, in which a repetition would show.
        let mut turns = 0;
        let events = drive(&joined.control, |events| {
            turns += 1;
            events.len() >= wanted.len() && turns > 40
        });
        assert!(
            events.len() == wanted.len() && wanted.iter().all(|e| events.contains(e)),
            "rank {me}: {events:?}"
        );
    });
    let error = ranks[3]
        .control
        .broadcast(tag(9, 2), &[0; (64 << 10) + 1])
        .unwrap_err();
    assert!(matches!(error, BootstrapError::TooLarge { .. }));
}

#[test]
fn an_abort_ends_the_waits_of_its_communicator_only() {
    let ranks = job(3, 3);
    let results = driven(&ranks, |joined| {
        if joined.control.rank() == 2 {
            std::thread::sleep(Duration::from_millis(100));
            joined.control.abort(5, 1, "enough").unwrap();
            std::thread::sleep(Duration::from_millis(100));
            joined.control.send(0, tag(6, 1), b"still here").unwrap();
            return String::new();
        }
        let error = joined
            .control
            .recv(2, tag(5, 1), &wait())
            .unwrap_err()
            .to_string();
        if joined.control.rank() == 0 {
            assert_eq!(
                joined.control.recv(2, tag(6, 1), &wait()).unwrap(),
                b"still here"
            );
        }
        error
    });
    assert!(
        results[0].contains("rank 2 aborted communicator 0x5 with code 1: enough"),
        "{}",
        results[0]
    );
    assert_eq!(results[0], results[1]);
}

#[test]
fn waits_end_at_their_deadline_or_flag_and_name_the_rank() {
    let ranks = job(2, 1);
    let control = &ranks[0].control;
    let error = control
        .recv(1, tag(1, 1), &Wait::at_most(Duration::from_millis(80)))
        .unwrap_err();
    assert!(
        matches!(&error, BootstrapError::Deadline { waiting_for, .. } if waiting_for == &[1]),
        "{error}"
    );
    let flag = AbortFlag::new();
    let wait = Wait::with_abort(LIMIT, &flag);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| control.recv(1, tag(1, 1), &wait));
        std::thread::sleep(Duration::from_millis(50));
        flag.raise();
        assert!(matches!(
            waiting.join().unwrap(),
            Err(BootstrapError::Cancelled { .. })
        ));
    });
}

#[test]
fn who_leaves_is_not_dead_and_its_last_words_arrive() {
    let ranks = job(4, 2);
    driven(&ranks[..], |joined| {
        let control = &joined.control;
        if control.rank() == 1 {
            for to in [0, 2, 3] {
                control.send(to, tag(3, 3), b"last words").unwrap();
            }
            return;
        }
        assert_eq!(control.recv(1, tag(3, 3), &wait()).unwrap(), b"last words");
    });
    let (leaving, staying): (Vec<Joined>, Vec<Joined>) =
        ranks.into_iter().partition(|j| j.control.rank() == 1);
    let left = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for joined in &staying {
            scope.spawn(|| {
                let events = drive(&joined.control, |events| {
                    !events.is_empty() && left.load(Ordering::Acquire)
                });
                assert_eq!(events, [Event::Left { rank: 1 }]);
            });
        }
        let control = leaving[0].control.clone();
        control.leave(&wait()).unwrap();
        left.store(true, Ordering::Release);
        assert!(matches!(
            control.send(0, tag(3, 3), b""),
            Err(BootstrapError::Departed { rank: 1, .. })
        ));
        control.leave(&wait()).expect("leaving twice is no error");
    });
    assert!(
        staying
            .iter()
            .all(|joined| joined.control.dead().is_empty())
    );
    let error = staying[0].control.recv(1, tag(3, 4), &wait()).unwrap_err();
    assert!(
        matches!(error, BootstrapError::Departed { rank: 1, .. }),
        "{error}"
    );
}

#[test]
fn survivors_shrink_to_the_same_list_also_when_the_coordinator_goes_meanwhile() {
    for size in [2, 3, 8, 17] {
        let ranks = job(size, 4);
        let all: Vec<u32> = (0..size).collect();
        // Rank 0 is said to be dead by some, rank 1 (which would coordinate) leaves after some have followed it.
        let survivors: Vec<u32> = if size > 3 {
            (2..size).collect()
        } else {
            (1..size).collect()
        };
        let results = driven(&ranks, |joined| {
            let me = joined.control.rank();
            match me {
                0 => None,
                1 if size > 3 => {
                    std::thread::sleep(Duration::from_millis(150));
                    joined.control.leave(&wait()).unwrap();
                    None
                }
                _ => {
                    let known: &[u32] = if me % 2 == 0 || size == 2 { &[0] } else { &[] };
                    Some(shrink(&joined.control, tag(1, 1), &all, known, &wait()).unwrap())
                }
            }
        });
        for result in results.into_iter().flatten() {
            assert_eq!(result, survivors, "of {size}");
        }
        // The survivors go on over the same connections.
        driven(&ranks[survivors[0] as usize..], |joined| {
            let me = joined.control.rank().to_le_bytes();
            let gathered = joined
                .control
                .all_gather(&survivors, tag(2, 1), &me, &wait())
                .unwrap();
            assert_eq!(gathered.len(), survivors.len());
        });
        assert!(ranks[survivors[0] as usize].control.dead().contains(&0));
    }
}

#[test]
fn a_shrink_names_who_does_not_call() {
    let ranks = job(3, 3);
    let results = driven(&ranks, |joined| match joined.control.rank() {
        2 => {
            std::thread::sleep(Duration::from_millis(700));
            None
        }
        _ => Some(shrink(
            &joined.control,
            tag(1, 1),
            &[0, 1, 2],
            &[],
            &Wait::at_most(Duration::from_millis(500)),
        )),
    });
    let error = results[0].as_ref().unwrap().as_ref().unwrap_err();
    assert!(
        matches!(error, BootstrapError::Deadline { waiting_for, .. } if waiting_for == &[2]),
        "{error}"
    );
}

#[test]
fn a_rank_that_is_taken_for_dead_is_told() {
    let ranks = job(3, 3);
    ranks[0].control.declare_dead(2, "its link broke").unwrap();
    let errors = driven(&ranks[2..], |joined| {
        joined.control.recv(0, tag(1, 1), &wait()).unwrap_err()
    });
    assert!(
        matches!(&errors[0], BootstrapError::Expelled { rank: 2, by: 0, .. }),
        "{}",
        errors[0]
    );
    let error = ranks[0].control.send(2, tag(1, 1), b"").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("rank 2 died, as rank 0 saw: its link broke"),
        "{error}"
    );
}

#[test]
fn what_is_forgotten_takes_no_room() {
    let ranks = job(2, 2);
    driven(&ranks, |joined| {
        let other = 1 - joined.control.rank();
        joined.control.send(other, tag(4, 1), b"gone").unwrap();
        joined.control.send(other, tag(5, 1), b"mark").unwrap();
        joined.control.recv(other, tag(5, 1), &wait()).unwrap();
        joined.control.forget(4);
        assert_eq!(joined.control.try_recv(other, tag(4, 1)).unwrap(), None);
    });
}
