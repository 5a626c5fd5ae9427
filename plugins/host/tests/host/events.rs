//! Events: all four sides.

use unisono_plugin::Pack;
use unisono_plugin::abi::{queue_state, sleep};

use crate::contract::Host;

#[test]
fn a_stream_completes_an_event_and_another_waits_for_it() {
    let host = Host::open();
    let event = host.event();
    let (mut first, mut second) = (host.stream(), host.stream());
    let mut record = Pack::new();
    record.record(0, event.command());
    let mut waits = Pack::new();
    waits.wait_event(0, event.command());
    for _ in 0..3 {
        first.submit(&record).unwrap();
        assert!(!event.is_complete(), "recorded again, it is not complete");
        second.submit(&waits).unwrap();
        assert_eq!(second.poll().unwrap().state, queue_state::WAITING);
        first.poll().unwrap();
        assert!(event.is_complete());
        assert_eq!(second.poll().unwrap().state, queue_state::IDLE);
    }
}

#[test]
fn the_host_opens_an_event_that_a_stream_waits_for() {
    let host = Host::open();
    let event = host.event();
    let mut stream = host.stream();
    let mut waits = Pack::new();
    waits.wait_event(0, event.command());
    stream.submit(&waits).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::WAITING);
    event.signal();
    assert!(event.is_complete());
    assert_eq!(
        stream.arm(sleep::FUTEX).unwrap().how,
        sleep::READY,
        "it can go on"
    );
    assert_eq!(stream.poll().unwrap().state, queue_state::IDLE);
}

#[test]
fn a_destroyed_event_stays_with_the_stream_that_took_it() {
    let host = Host::open();
    let event = host.event();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.record(0, event.command())
        .wait_event(0, event.command());
    stream.submit(&pack).unwrap();
    drop(event);
    assert_eq!(stream.poll().unwrap().completed, 2);
}
