//! From variables, file and program to options; nothing joins here.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use unisono_bootstrap::{RootSpec, SecretSource, UniqueId};
use unisono_collectives::{Algorithm, InitOptions, Op};
use unisono_graph::{Endpoint, LinkType, OverlayAction};

use super::{Init, InitError};

fn variables(pairs: &[(&str, &str)]) -> Init {
    let rank = [("UNISONO_RANK", "1"), ("UNISONO_WORLD_SIZE", "4")];
    let all = rank.iter().chain(pairs);
    Init::from_variables(all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn options(pairs: &[(&str, &str)]) -> InitOptions {
    variables(pairs).options().unwrap()
}

fn names(options: &InitOptions) -> Vec<&str> {
    options.plugins.iter().map(|p| p.name.as_str()).collect()
}

/// A cluster file in a folder of its own, which goes with the first of the two.
fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.yaml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn the_launcher_says_who_and_where() {
    let node = options(&[("UNISONO_JOB", "j1"), ("UNISONO_LOCAL_SIZE", "4")]);
    assert_eq!((node.rank, node.size, node.local_size), (1, 4, Some(4)));
    assert_eq!(node.job, "j1");
    assert!(matches!(node.root, RootSpec::Node));
    assert!(matches!(node.secret, SecretSource::PeerCredentials));
    assert_eq!(names(&node), ["host", "tcp"]);
    let net = options(&[("UNISONO_ROOT", "node0:4400")]);
    assert!(matches!(net.root, RootSpec::Address(address) if address == "node0:4400"));
    let nobody = Init::from_variables([]).options();
    assert!(matches!(nobody, Err(InitError::Bootstrap(_))), "{nobody:?}");
    let given = Init::from_variables([])
        .rank(2)
        .size(3)
        .root("a:1")
        .options()
        .unwrap();
    assert_eq!((given.rank, given.size), (2, 3));
}

#[test]
fn a_unique_id_says_where_and_wins() {
    let id = UniqueId::create(&unisono_bootstrap::InterfaceFilter::loopback(), 0).unwrap();
    let init = variables(&[("UNISONO_ROOT", "node0:4400")]).unique_id(id.clone());
    assert!(matches!(init.options().unwrap().root, RootSpec::UniqueId(found) if found == id));
    id.discard();
}

#[test]
fn the_program_wins_over_variables_and_those_over_the_file() {
    let (_folder, path) = file(
        "timeouts: { op: 1s, init: 2s }\nmemory: { slots: 4 }\n\
         plugins:\n  - name: host\n    params: { spin: 7 }\n  - name: example_c\n    path: /x/y.so\n",
    );
    let path = path.to_str().unwrap();
    let file = [
        ("UNISONO_CLUSTER_FILE", path),
        ("UNISONO_TIMEOUTS__INIT", "3s"),
    ];
    let loaded = variables(&file).set("memory.slots", 16).options().unwrap();
    assert_eq!(loaded.timeouts.op, Duration::from_secs(1));
    assert_eq!(loaded.timeouts.init, Duration::from_secs(3));
    assert_eq!(loaded.memory.slots, 16);
    assert_eq!(names(&loaded), ["host", "example_c"]);
    assert_eq!(
        loaded.plugins[0].params,
        [("spin".to_owned(), "7".to_owned())]
    );
    assert!(loaded.plugins[1].path.is_some());

    let chosen = variables(&[file[0], ("UNISONO_PLUGINS", "tcp, host")])
        .options()
        .unwrap();
    assert_eq!(names(&chosen), ["tcp", "host"]);
    assert_eq!(
        chosen.plugins[1].params.len(),
        1,
        "parameters stay the file's"
    );
    let program = variables(&[file[0], ("UNISONO_PLUGINS", "tcp")])
        .plugin("host")
        .options();
    assert_eq!(names(&program.unwrap()), ["host"]);
}

#[test]
fn devices_and_links_may_be_chosen() {
    let chosen = options(&[
        ("UNISONO_DEVICE", "host:3"),
        ("UNISONO_WITHOUT_LINKS", "shm, tcp"),
    ]);
    assert_eq!(chosen.device, Some(("host".to_owned(), 3)));
    assert_eq!(chosen.without_links, ["shm", "tcp"]);
    let program = variables(&[("UNISONO_DEVICE", "host:3")])
        .device("cuda:1")
        .without_link("roce");
    let program = program.options().unwrap();
    assert_eq!(program.device, Some(("cuda".to_owned(), 1)));
    assert_eq!(program.without_links, ["roce"]);
    for bad in ["host", ":1", "host:x"] {
        let error = variables(&[("UNISONO_DEVICE", bad)])
            .options()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("UNISONO_DEVICE") && error.contains(bad),
            "{error}"
        );
    }
}

#[test]
fn the_file_gives_each_rank_of_a_machine_its_device() {
    let (_folder, path) = file("ranks: [cuda:1, host:0]\n");
    let path = path.to_str().unwrap();
    let device = |more: &[(&'static str, &'static str)]| {
        let given = [&[("UNISONO_CLUSTER_FILE", path)], more].concat();
        options(&given).device
    };
    let unknown = variables(&[("UNISONO_CLUSTER_FILE", path)]).options();
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("set UNISONO_LOCAL_RANK"), "{unknown}");
    let own = |number: u32| ("cuda".to_owned(), number);
    assert_eq!(device(&[("UNISONO_LOCAL_RANK", "0")]), Some(own(1)));
    let host = Some(("host".to_owned(), 0));
    assert_eq!(device(&[("UNISONO_LOCAL_RANK", "1")]), host);
    assert_eq!(device(&[("UNISONO_LOCAL_RANK", "2")]), None);
    let both = [("UNISONO_LOCAL_RANK", "1"), ("UNISONO_DEVICE", "cuda:5")];
    assert_eq!(device(&both), Some(own(5)), "a variable wins");
}

#[test]
fn times_are_taken_over_and_have_the_engine_s_defaults() {
    let (_folder, path) =
        file("timeouts: { abort_drain: 3s, finalize: 4s }\nprogress: { spin: 5us, yield: 6us }\n");
    let set = options(&[("UNISONO_CLUSTER_FILE", path.to_str().unwrap())]);
    assert_eq!(set.timeouts.abort_drain, Duration::from_secs(3));
    assert_eq!(set.timeouts.finalize, Duration::from_secs(4));
    assert_eq!(set.spin, Duration::from_micros(5));
    assert_eq!(set.before_sleep, Duration::from_micros(6));

    let file = options(&[]);
    let engine = InitOptions::new(0, 2, RootSpec::Node);
    assert_eq!(file.timeouts.abort_drain, engine.timeouts.abort_drain);
    assert_eq!(file.timeouts.finalize, engine.timeouts.finalize);
    assert_eq!(file.spin, engine.spin);
    assert_eq!(file.before_sleep, engine.before_sleep);
}

#[test]
fn links_of_the_file_become_overlays() {
    let (_folder, path) = file(
        "nodes:\n\
         - { name: box, devices: [gpu0] }\n\
         - { name: npu, id: 0f1e2d3c4b5a69788796a5b4c3d2e1f0, devices: [{ name: n0, id: 000102030405060708090a0b0c0d0e0f }] }\n\
         switches: [leaf]\n\
         links:\n\
         - { from: box/gpu0, to: leaf, kind: roce, plugin: roce, transport: posted, bandwidth: 8 Gbit/s, latency: 2us, shared: card }\n\
         - { from: npu/n0, to: rank 3, kind: tcp, bandwidth: 1 GB/s, both_ways: false }\n\
         - { from: rank 0, to: rank 1, kind: shm, remove: true }\n",
    );
    let overlays = options(&[("UNISONO_CLUSTER_FILE", path.to_str().unwrap())]).overlays;
    let [set, adjust, remove] = &overlays[..] else {
        panic!("{overlays:?}");
    };
    assert_eq!(set.origin, "cluster.yaml:6", "the same on every machine");
    assert!(set.both_directions && !adjust.both_directions);
    let gpu = Endpoint::Named {
        host: Some("box".to_owned()),
        name: "gpu0".to_owned(),
    };
    assert_eq!(set.from, gpu);
    let action = OverlayAction::Set {
        plugin: "roce".to_owned(),
        link_type: LinkType::Posted,
        bytes_per_second: 1_000_000_000,
        latency_ns: 2_000,
        shared: Some("card".to_owned()),
    };
    assert_eq!(set.action, action);
    assert!(matches!(adjust.from, Endpoint::Device(..)));
    assert_eq!(adjust.to, Endpoint::Rank(3));
    assert!(matches!(
        adjust.action,
        OverlayAction::Adjust {
            latency_ns: None,
            ..
        }
    ));
    assert_eq!(remove.action, OverlayAction::Remove);
}

#[test]
fn rules_secrets_and_security_are_taken_over() {
    let (_folder, path) = file("algorithms:\n  - { op: all_reduce, use: ring }\n");
    let ruled = options(&[("UNISONO_CLUSTER_FILE", path.to_str().unwrap())]);
    let forced = ruled.rules.find("world", 4);
    let rule = forced.find(Op::AllReduce, 8).unwrap();
    assert_eq!(rule.algorithm, Algorithm::Ring.into());

    let secret = path.with_file_name("secret");
    fs::write(&secret, "x".repeat(40)).unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let with = options(&[("UNISONO_SECRET_FILE", secret.to_str().unwrap())]);
    assert!(matches!(with.secret, SecretSource::Given(_)));
    fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
    let open = variables(&[("UNISONO_SECRET_FILE", secret.to_str().unwrap())]).options();
    assert!(open.unwrap_err().to_string().contains("chmod 600"));
    let none = options(&[("UNISONO_SECURITY__MODE", "none")]);
    assert!(matches!(none.secret, SecretSource::Disabled));
    assert!(
        variables(&[("UNISONO_TIMEOUTS__OPP", "1s")])
            .options()
            .is_err()
    );
}

#[test]
fn plugin_folders_stand_in_order() {
    let init = variables(&[]).set("plugin_path", serde_json::json!(["/b", "/c"]));
    let options = init.plugin_path("/a").options().unwrap();
    let places = options.loader.search().places();
    let first: Vec<_> = places
        .iter()
        .take(3)
        .map(|(_, place)| place.to_str().unwrap())
        .collect();
    assert_eq!(first, ["/a", "/b", "/c"]);
}
