//! A forked child: every use is an error, and its exit touches nothing.

use unisono_plugin::Pack;
use unisono_plugin::abi::{memory_kind, sleep, status};

use crate::contract::{Host, signal, wait};

/// The first check that failed, by its place; 0 if none. Runs in the child: no panics there.
fn in_child(checks: &[bool]) -> i32 {
    checks
        .iter()
        .position(|&passed| !passed)
        .map_or(0, |at| at as i32 + 1)
}

#[test]
fn a_forked_child_does_no_harm() {
    let host = Host::open();
    let memory = host.exportable(4096);
    let bell = host.bell();
    let base = memory.base();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.wait(0, wait(base, base + 64, [0; 3]));
    pack.signal(0, signal(base + 128, base + 80, bell.base(), [0; 3]));
    stream.submit(&pack).unwrap();
    stream.poll().unwrap();
    assert_eq!(stream.arm(sleep::FUTEX).unwrap().how, sleep::FUTEX);
    memory.store(0, 1);
    let description = memory.export().unwrap();
    // SAFETY: the child calls the plugin and `_exit`, and unwinds nothing.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let refused = |status: Option<i32>| status == Some(status::INVALID);
        let code = in_child(&[
            refused(stream.poll().err().map(|error| error.status)),
            refused(stream.submit(&pack).err().map(|error| error.status)),
            refused(host.try_stream().err().map(|error| error.status)),
            refused(memory.export().err().map(|error| error.status)),
            refused(host.import(&description).err().map(|error| error.status)),
            refused(host.query(base).err().map(|error| error.status)),
            refused(
                host.alloc(memory_kind::DATA, 64, 0, 0)
                    .err()
                    .map(|error| error.status),
            ),
        ]);
        // What an exit may run: all handles are let go.
        stream.disarm();
        stream.control().abort();
        drop(stream);
        drop(memory);
        drop(bell);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    let mut state = 0;
    // SAFETY: waits for the child that was just made.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut state, 0) }, child);
    assert!(libc::WIFEXITED(state), "the child was killed: {state:#x}");
    assert_eq!(libc::WEXITSTATUS(state), 0, "which check failed, from 1");
    stream.disarm();
    assert_eq!(stream.poll().unwrap().completed, 2, "the parent goes on");
    assert_eq!((memory.load(0), memory.load(128)), (1, 1));
    host.import(&description).unwrap();
}
