//! Memory: kinds, alignment, export and import in one process, lookup by address.

use unisono_plugin::abi::{memory_flag, memory_kind, place, status};

use crate::contract::Host;

#[test]
fn allocations_are_zeroed_and_aligned() {
    let host = Host::open();
    for kind in [memory_kind::DATA, memory_kind::SIGNAL, memory_kind::STAGING] {
        for flags in [
            0,
            memory_flag::EXPORTABLE,
            memory_flag::LAZY | memory_flag::EXPORTABLE,
        ] {
            for (bytes, align) in [(1, 0), (100, 64), (5000, 4096), (3 << 20, 2 << 20)] {
                let memory = host.alloc(kind, bytes, align, flags).unwrap();
                assert!(
                    memory.base().is_multiple_of(align.max(64)),
                    "{bytes} at {align}"
                );
                assert_eq!(
                    (memory.view.bytes, memory.view.host),
                    (bytes, memory.base())
                );
                for offset in 0..bytes {
                    // SAFETY: within the memory, which is new.
                    unsafe {
                        assert_eq!(memory.at(offset).read(), 0);
                        memory.at(offset).write(1);
                    }
                }
            }
        }
    }
}

#[test]
fn sizes_that_cannot_be_are_errors() {
    let host = Host::open();
    for flags in [0, memory_flag::EXPORTABLE] {
        for bytes in [u64::MAX, 1 << 62, 1 << 47] {
            let error = host
                .alloc(memory_kind::DATA, bytes, 0, flags)
                .map(|_| ())
                .unwrap_err();
            assert!(
                error.status < 0 && !error.message.is_empty(),
                "{bytes}: {error:?}"
            );
        }
    }
}

#[test]
fn the_exporter_gets_its_own_address_back() {
    let host = Host::open();
    let memory = host.exportable(10_000);
    let description = memory.export().unwrap();
    let again = Host::open().import(&description).unwrap();
    assert_eq!(again.base(), memory.base());
    assert_ne!(again.view.generation, memory.view.generation);
    // The import keeps the memory when the exporter lets go first.
    memory.store(0, 42);
    drop(memory);
    assert_eq!(again.load(0), 42);
}

#[test]
fn the_bell_is_one() {
    let host = Host::open();
    let (first, second) = (host.bell(), Host::open().bell());
    assert_eq!(first.base(), second.base());
    let imported = host.import(&first.export().unwrap()).unwrap();
    assert_eq!(imported.base(), first.base());
}

#[test]
fn what_cannot_be_exported_or_imported_says_so() {
    let host = Host::open();
    let private = host.alloc(memory_kind::DATA, 100, 0, 0).unwrap();
    assert_eq!(private.export().unwrap_err().status, status::UNSUPPORTED);
    assert_eq!(
        host.import(b"nonsense").map(|_| ()).unwrap_err().status,
        status::INVALID
    );
    let memory = host.exportable(100);
    let description = memory.export().unwrap();
    drop(memory);
    let error = host.import(&description).map(|_| ()).unwrap_err();
    assert_eq!(error.status, status::PEER, "gone: {error:?}");
}

/// A description whose parts name something else: each part is proven, not believed.
#[test]
fn a_description_of_something_else_is_refused() {
    let host = Host::open();
    let (memory, other) = (host.exportable(5000), host.exportable(5000));
    let (description, other) = (memory.export().unwrap(), other.export().unwrap());
    for byte in 0..description.len() {
        let mut forged = description.clone();
        forged[byte] = other[byte] ^ u8::from(other[byte] == description[byte]);
        let error = host
            .import(&forged)
            .map(|_| ())
            .expect_err("a forged byte was believed");
        assert!(error.status < 0, "byte {byte}: {error:?}");
    }
}

#[test]
fn addresses_are_looked_up() {
    let host = Host::open();
    let memory = host.exportable(10_000);
    for address in [memory.base(), memory.base() + 9_999] {
        let view = host.query(address).unwrap().expect("it is the plugin's");
        assert_eq!(
            (view.base, view.generation),
            (memory.base(), memory.view.generation)
        );
        assert_eq!(view.place, place::DEVICE);
    }
    let end = memory.base() + 10_000;
    assert!(host.query(end).unwrap().is_none());
    let mut own = vec![0_u8; 4096];
    let address = own.as_mut_ptr() as u64;
    assert!(host.query(address).unwrap().is_none());
    let registered = host.register(own.as_mut_ptr(), 4096).unwrap();
    let first = host.query(address + 5).unwrap().unwrap().generation;
    drop(registered);
    assert!(host.query(address).unwrap().is_none());
    let registered = host.register(own.as_mut_ptr(), 4096).unwrap();
    assert_ne!(
        first, registered.view.generation,
        "another registration of the same address"
    );
}
