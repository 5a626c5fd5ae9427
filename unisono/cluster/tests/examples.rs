//! The example files load without a warning and are what the schema says.

use std::path::PathBuf;

use unisono_cluster::{AlgorithmUse, Bytes, Collective, LinkEnd, Rate, Scalar, check, schema};

const EXAMPLES: [&str; 4] = ["laptop", "h100-box", "mixed-fleet", "emulated-fleet"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.yaml"))
}

fn load(name: &str) -> unisono_cluster::Cluster {
    let options = unisono_cluster::LoadOptions {
        path: Some(path(name)),
        env: unisono_cluster::Environment::empty(),
        code: unisono_cluster::Overrides::new(),
    };
    unisono_cluster::load(&options)
        .unwrap_or_else(|error| panic!("{error}"))
        .cluster
}

#[test]
fn they_load_without_a_warning() {
    for name in EXAMPLES {
        assert_eq!(check(&path(name)), Ok(vec![]), "{name}");
    }
}

#[test]
fn the_schema_accepts_them() {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
    for name in EXAMPLES {
        let text = std::fs::read_to_string(path(name)).unwrap();
        let value: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_schema_refuses_what_a_check_refuses() {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
    for text in [
        "timeout: { op: 30s }",
        "timeouts: { op: 30 }",
        "timeouts: { op: 5m }",
        "memory: { slots: 1 }",
        "memory: { slot: 4 Kb }",
        "memory: { slot: -1 }",
        "links: [{ from: rank 0, to: rank 1 }]",
        "links: [{ from: rank 0, to: rank 1, kind: x, bandwidth: 4 Gb/s }]",
        "algorithms: [{ use: tree }]",
        "algorithms: [{ use: ring, ranks: 0 }]",
        "nodes: [{ name: a, id: zz }]",
        "nodes: [{ name: a, devices: [{ name: b, plug: c }] }]",
        "plugins: [{ name: a, params: { x: [1] } }]",
        "security: { secret: short }",
    ] {
        let value: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        assert!(!validator.is_valid(&value), "{text}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert!(check(file.path()).is_err(), "{text}");
    }
}

#[test]
fn they_say_what_they_seem_to_say() {
    let fleet = load("mixed-fleet");
    assert_eq!(fleet.nodes.len(), 3);
    assert_eq!(fleet.links[0].bandwidth, Some(Rate(50_000_000_000)));
    assert_eq!(fleet.links[0].to, LinkEnd::Switch("leaf0".to_owned()));
    assert_eq!(
        fleet.plugins[4].params["adaptive_routing"],
        Scalar::Bool(true)
    );
    assert_eq!(fleet.plugins[4].params["traffic_class"], Scalar::Int(106));
    let secret = fleet.security.secret_file.unwrap();
    assert!(
        secret.is_absolute() && secret.ends_with("examples/secret"),
        "{}",
        secret.display()
    );

    let h100 = load("h100-box");
    let choose = |op, bytes, communicator| {
        let rule = h100
            .algorithms
            .iter()
            .find(|rule| rule.matches(op, bytes, communicator, 8));
        rule.map(|rule| rule.use_)
    };
    assert_eq!(
        choose(Collective::AllReduce, 8, "world"),
        Some(AlgorithmUse::MeshOneShot)
    );
    assert_eq!(
        choose(Collective::AllReduce, 1 << 20, "world"),
        Some(AlgorithmUse::MeshTwoShot)
    );
    assert_eq!(choose(Collective::AllReduce, 1 << 30, "world"), None);
    assert_eq!(
        choose(Collective::AllReduce, 1 << 30, "check-loss"),
        Some(AlgorithmUse::MeshTwoShot)
    );
    assert_eq!(choose(Collective::AllGather, 8, "world"), None);
    assert!(h100.links[1].remove);

    assert_eq!(load("laptop").memory.budget, Bytes::mib(64));
}
