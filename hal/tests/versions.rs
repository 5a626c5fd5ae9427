//! Older and newer plugins in this host, and plugins of now in an older host.

mod common;

use std::path::PathBuf;

use common::{Workshop, loader, root};
use unisono_hal::{HostVersion, Instance, LinkInfo, Plugin};

/// Compiles a fixture. It names itself, so its library has no name that could differ.
fn fixture(file: &str) -> (Workshop, PathBuf) {
    let shop = Workshop::new();
    let source = root().join("tests/abi/fixtures").join(file);
    let library = shop.compile(&source, "fixture", &[]);
    let plain = shop.path("fixture.so");
    std::fs::rename(library, &plain).unwrap();
    (shop, plain)
}

fn has(plugin: &Plugin, table: &str, name: &str) -> bool {
    let mut functions = plugin.facts().functions.iter();
    functions.any(|f| f.table == table && f.name == name && f.present)
}

fn links(instance: &Instance) -> Vec<LinkInfo> {
    let links = instance.link_report().unwrap();
    assert_eq!(links.len(), 2);
    for (i, link) in (1u8..).zip(&links) {
        assert_eq!((link.from[0], link.to[0]), (i, 3 - i));
        assert_eq!(
            (&*link.kind, link.latency_ns),
            ("fixture", 100 * u64::from(i))
        );
    }
    links
}

fn check_devices(instance: &Instance) {
    let devices = instance.devices().unwrap();
    let seen: Vec<_> = devices.iter().map(|d| (d.id[0], d.queues)).collect();
    assert_eq!(seen, [(1, 1), (2, 2)]);
    assert!(devices[0].name.ends_with("first") && devices[1].name.ends_with("second"));
}

#[test]
fn an_older_plugin_in_this_host() {
    let (_shop, path) = fixture("minor_1_0.c");
    let plugin = loader().load_path(path).unwrap();
    assert_eq!(plugin.facts().abi_minor, 0);
    assert!(has(&plugin, "link", "report"));
    assert!(!has(&plugin, "link", "statistics"));
    let instance = plugin.instantiate(&[]).unwrap();
    check_devices(&instance);
    let later = |link: &LinkInfo| u64::from(link.rail) + link.read_bytes_per_second;
    assert!(links(&instance).iter().all(|link| later(link) == 0));
}

#[test]
fn plugins_of_the_minors_before_in_this_host() {
    for minor in 1..=8 {
        let source = &format!("minor_1_{minor}.c");
        let (_shop, path) = fixture(source);
        let plugin = loader().load_path(path).unwrap();
        assert_eq!(plugin.facts().abi_minor, minor);
        let instance = plugin.instantiate(&[]).unwrap();
        check_devices(&instance);
        links(&instance);
    }
}

#[test]
fn a_newer_plugin_in_this_host_and_in_an_older_one() {
    let (_shop, path) = fixture("minor_1_10.c");
    for host in [HostVersion::CURRENT, HostVersion::with_minor(0)] {
        let plugin = loader().host_version(host).load_path(&path).unwrap();
        assert_eq!(plugin.facts().abi_minor, 10);
        let instance = plugin.instantiate(&[]).unwrap();
        check_devices(&instance);
        links(&instance);
    }
}

#[test]
fn a_plugin_of_now_in_an_older_host() {
    let older = loader().host_version(HostVersion::with_minor(0));
    let shop = Workshop::new();
    let source = root().join("hal/tests/plugins/small.c");
    let path = shop.compile(&source, "small", &[]);
    let now = older.load_path(&path).unwrap();
    assert!(has(&now, "link", "report"));
    assert!(!has(&now, "link", "statistics"), "came after 1.0");
    let instance = now.instantiate(&[]).unwrap();
    assert_eq!(instance.link_report().unwrap()[0].kind, "small");
    // The same library in this host is not cut.
    let whole = loader().load_path(&path).unwrap();
    assert!(has(&whole, "link", "statistics"));
}
