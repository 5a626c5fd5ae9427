//! Layers: which one wins, and where each value comes from.

mod common;

use std::path::PathBuf;

use common::{File, describe, place};
use unisono_cluster::{
    Cluster, Environment, LoadOptions, LogLevel, Overrides, ProblemKind, Source, TimeSpan, load,
    show,
};

#[track_caller]
fn problem(options: &LoadOptions, kind: ProblemKind, message: &str) {
    let error = load(options).unwrap_err();
    assert_eq!(error.problems.len(), 1, "{error}");
    assert_eq!(error.problems[0].kind, kind, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

fn env(variable: &str) -> Source {
    let variable = variable.to_owned();
    let env: Environment = [(variable.clone(), "90s".to_owned())].into_iter().collect();
    let options = LoadOptions {
        path: None,
        env,
        code: Overrides::new(),
    };
    load(&options)
        .unwrap()
        .source("timeouts.op")
        .unwrap()
        .clone()
}

#[test]
fn later_layers_win_key_by_key() {
    let file = File::new(
        "timeouts:\n  init: 1 min\n  op: 2 min\n  finalize: 3 min\nmemory: { slots: 16 }\n",
    );
    let mut options = file.options(&[
        ("UNISONO_TIMEOUTS__OP", "4 min"),
        ("UNISONO_TIMEOUTS__FINALIZE", "5 min"),
    ]);
    options.code = Overrides::new().set("timeouts.finalize", "6 min");
    let effective = load(&options).unwrap();
    let timeouts = &effective.cluster.timeouts;
    assert_eq!(timeouts.abort_drain, TimeSpan::secs(5));
    assert_eq!(timeouts.init, TimeSpan::secs(60));
    assert_eq!(timeouts.op, TimeSpan::secs(240));
    assert_eq!(timeouts.finalize, TimeSpan::secs(360));
    assert_eq!(effective.cluster.memory.slots, 16);
    assert_eq!(effective.cluster.memory.slot, None);

    assert_eq!(
        effective.source("timeouts.abort_drain"),
        Some(&Source::Default)
    );
    assert_eq!(place(effective.source("timeouts.init").unwrap()), (2, 9));
    assert_eq!(
        effective.source("timeouts.op").unwrap().to_string(),
        "env UNISONO_TIMEOUTS__OP"
    );
    assert_eq!(effective.source("timeouts.finalize"), Some(&Source::Code));
    assert_eq!(place(effective.source("memory.slots").unwrap()), (5, 18));
    assert_eq!(effective.source("timeouts.nonsense"), None);
    assert_eq!(effective.file, Some(file.path()));
}

#[test]
fn nothing_given_is_the_default() {
    for text in [
        "",
        "# only a comment\n",
        "timeouts:\nlinks: ~\n",
        "{}\n",
        "\u{feff}name: ~\n",
    ] {
        let effective =
            load(&File::new(text).options(&[])).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(effective.cluster, Cluster::default(), "{text:?}");
    }
    let options = LoadOptions {
        path: None,
        env: Environment::empty(),
        code: Overrides::new(),
    };
    assert_eq!(load(&options).unwrap().cluster.log.level, LogLevel::Warn);
}

#[test]
fn lists_are_replaced_whole() {
    let file = File::new("switches: [a, b, c]\nplugins: [{ name: host }, { name: tcp }]\n");
    let mut options = file.options(&[
        ("UNISONO_SWITCHES", "x, y"),
        ("UNISONO_PLUGINS", "[{ name: roce, params: { a: 1 } }]"),
    ]);
    let effective = load(&options).unwrap();
    assert_eq!(effective.cluster.switches, ["x", "y"]);
    assert_eq!(effective.cluster.plugins.len(), 1);
    assert_eq!(effective.cluster.plugins[0].name, "roce");
    assert_eq!(
        effective.source("plugins[0].params.a").unwrap().to_string(),
        "env UNISONO_PLUGINS"
    );
    options.code = Overrides::new().set("switches", serde_json::json!(["z"]));
    assert_eq!(load(&options).unwrap().cluster.switches, ["z"]);
}

#[test]
fn variables_with_short_names() {
    let file = File::new("");
    let options = file.options(&[
        ("UNISONO_SECRET_FILE", "/s"),
        ("UNISONO_PLUGIN_PATH", "/a:/b"),
        ("UNISONO_INTERFACES", "eth,10.0.0.0/8"),
        ("UNISONO_TIMEOUT", "9s"),
        ("UNISONO_LOG", "trace"),
        ("UNISONO_MEMORY__SLOTS", "32"),
        ("UNISONO_NODE_ID", "not ours"),
        ("UNISONO_RANK", "3"),
        ("OTHER", "x"),
        ("UNISONO_NAME", ""),
    ]);
    let effective = load(&options).unwrap();
    let cluster = &effective.cluster;
    assert_eq!(effective.warnings, []);
    assert_eq!(cluster.security.secret_file, Some(PathBuf::from("/s")));
    assert_eq!(
        cluster.plugin_path,
        [PathBuf::from("/a"), PathBuf::from("/b")]
    );
    assert_eq!(cluster.interfaces.include.len(), 2);
    assert_eq!(cluster.timeouts.op, TimeSpan::secs(9));
    assert_eq!(cluster.log.level, LogLevel::Trace);
    assert_eq!(cluster.memory.slots, 32);
    assert_eq!(cluster.name, None);
    assert_eq!(
        env("UNISONO_TIMEOUT"),
        Source::Env {
            variable: "UNISONO_TIMEOUT".to_owned()
        }
    );
}

#[test]
fn variables_that_are_wrong() {
    let file = File::new("");
    let with = |name: &str, value: &str| file.options(&[(name, value)]);
    problem(
        &with("UNISONO_TIMEOUTS__OP", "30"),
        ProblemKind::WrongUnit,
        "env UNISONO_TIMEOUTS__OP",
    );
    problem(
        &with("UNISONO_TIMEOUTS__OPS", "30s"),
        ProblemKind::UnknownKey,
        "did you mean UNISONO_TIMEOUTS__OP?",
    );
    problem(
        &with("UNISONO_TIMEOTS__OP", "30s"),
        ProblemKind::UnknownKey,
        "did you mean UNISONO_TIMEOUTS__OP?",
    );
    problem(
        &with("UNISONO_MEMORY__SLOTS", "many"),
        ProblemKind::WrongType,
        "a whole number",
    );
    problem(
        &with("UNISONO_NODES__0", "x"),
        ProblemKind::UnknownKey,
        "lists are given whole",
    );
    problem(
        &with("UNISONO_PLUGINS", "[{"),
        ProblemKind::Syntax,
        "env UNISONO_PLUGINS",
    );
    problem(
        &with("UNISONO_PLUGIN_PATH", "plugins"),
        ProblemKind::UnknownValue,
        "no absolute path",
    );
    problem(
        &file.options(&[("UNISONO_TIMEOUT", "1s"), ("UNISONO_TIMEOUTS__OP", "2s")]),
        ProblemKind::Contradiction,
        "another value by UNISONO_TIMEOUT",
    );
    let effective = load(&with("UNISONO_TIMEOT", "30s")).unwrap();
    assert!(
        effective.warnings[0].help.contains("UNISONO_TIMEOUT?"),
        "{:?}",
        effective.warnings
    );
}

#[test]
fn code_that_is_wrong() {
    let file = File::new("");
    let mut options = file.options(&[]);
    options.code = Overrides::new().set("timeouts.ops", "30s");
    problem(&options, ProblemKind::UnknownKey, "--> code");
    options.code = Overrides::new().set("timeouts.op", 30);
    problem(&options, ProblemKind::WrongUnit, "no unit");
    options.code = Overrides::new().set("security.secret", "hunter2");
    problem(&options, ProblemKind::OutOfRange, "too short");
    assert!(!format!("{options:?}{}", load(&options).unwrap_err()).contains("hunter2"));
}

#[test]
fn contradictions_between_layers_point_at_the_later_one() {
    let file = File::new("memory: { budget: 512 KiB, slot: 128 KiB, slots: 2 }\n");
    let error = load(&file.options(&[("UNISONO_MEMORY__SLOTS", "8")])).unwrap_err();
    assert_eq!(error.problems[0].path, "memory.slots", "{error}");
    assert_eq!(
        error.problems[0].source.to_string(),
        "env UNISONO_MEMORY__SLOTS"
    );
}

#[test]
fn a_later_secret_replaces_an_earlier_one() {
    let secret = "x".repeat(32);
    let file = File::new(&format!("security: {{ secret: {secret} }}\n"));
    let security = load(&file.options(&[])).unwrap().cluster.security;
    assert_eq!(security.secret.unwrap().expose(), secret);
    let security = load(&file.options(&[("UNISONO_SECRET_FILE", "/s")]))
        .unwrap()
        .cluster
        .security;
    assert_eq!(
        (security.secret, security.secret_file),
        (None, Some("/s".into()))
    );
}

#[test]
fn relative_paths_begin_at_the_file() {
    let file = File::new(
        "plugin_path: [so]\nplugins: [{ name: a, path: a.so }]\nsecurity: { secret_file: s }\n",
    );
    let cluster = load(&file.options(&[])).unwrap().cluster;
    let folder = file.path().parent().unwrap().to_owned();
    assert_eq!(cluster.plugin_path, [folder.join("so")]);
    assert_eq!(cluster.plugins[0].path, Some(folder.join("a.so")));
    assert_eq!(cluster.security.secret_file, Some(folder.join("s")));
}

#[test]
fn files_are_searched_in_order() {
    let named = File::new("name: explicit\n");
    let by_variable = File::new("name: variable\n");
    let home = tempfile::tempdir().unwrap();
    let write = |folder: PathBuf, name: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cluster.yaml"), format!("name: {name}\n")).unwrap();
    };
    write(home.path().join(".config/unisono"), "home");
    write(home.path().join("xdg/unisono"), "xdg");
    let mut env = vec![("HOME".to_owned(), home.path().to_owned())];
    let name = |path: Option<PathBuf>, env: &[(String, PathBuf)]| {
        let options = LoadOptions {
            path,
            env: env.iter().cloned().collect(),
            code: Overrides::new(),
        };
        load(&options).unwrap().cluster.name.unwrap()
    };
    assert_eq!(name(None, &env), "home");
    env.push(("XDG_CONFIG_HOME".to_owned(), home.path().join("xdg")));
    assert_eq!(name(None, &env), "xdg");
    env.push(("UNISONO_CLUSTER_FILE".to_owned(), by_variable.path()));
    assert_eq!(name(None, &env), "variable");
    assert_eq!(name(Some(named.path()), &env), "explicit");
}

#[test]
fn a_named_file_that_is_missing_is_an_error() {
    let file = File::new("");
    let mut options = file.options(&[("UNISONO_CLUSTER_FILE", "/nonexistent/c.yaml")]);
    options.path = None;
    problem(
        &options,
        ProblemKind::Unreadable,
        "env UNISONO_CLUSTER_FILE",
    );
    options.path = Some("/nonexistent/d.yaml".into());
    problem(&options, ProblemKind::Unreadable, "/nonexistent/d.yaml");
}

#[test]
fn show_names_each_source_and_no_secret() {
    let secret = "hunter2-".repeat(5);
    let file = File::new(&format!(
        "security:\n  secret: {secret}\nnodes: [{{ name: a, devices: [b] }}]\n"
    ));
    let effective = load(&file.options(&[("UNISONO_LOG", "debug")])).unwrap();
    let shown = show(&effective, true);
    let line = |key: &str| {
        let found = shown
            .lines()
            .find(|line| line.trim_start().starts_with(key));
        let words: Vec<&str> = found.unwrap_or_default().split_whitespace().collect();
        words.join(" ")
    };
    let path = file.path().display().to_string();
    assert_eq!(line("op:"), "op: 30 s # defaults", "{shown}");
    assert_eq!(line("level:"), "level: debug # env UNISONO_LOG", "{shown}");
    assert_eq!(
        line("secret:"),
        format!("secret: <redacted> # {path}:2:11"),
        "{shown}"
    );
    assert_eq!(line("- b"), format!("- b # {path}:3:30"), "{shown}");
    assert!(!format!("{shown}{effective:?}").contains("hunter2"));
    assert!(!show(&effective, false).contains('#'));
}

#[test]
fn what_is_shown_reads_back_as_the_same() {
    let mixed = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/mixed-fleet.yaml"
    ));
    let options = LoadOptions {
        path: Some(mixed),
        env: Environment::empty(),
        code: Overrides::new(),
    };
    let effective = load(&options).unwrap();
    for with_sources in [false, true] {
        let shown = show(&effective, with_sources);
        let again = load(&File::new(&shown).options(&[]))
            .unwrap_or_else(|error| panic!("{error}\n{shown}"));
        assert_eq!(again.cluster, effective.cluster, "{shown}");
    }
}

#[test]
fn anchors_and_merge_keys_work() {
    let text = "links:\n- &one { from: rank 0, to: rank 1, kind: x, latency: 1us }\n- { <<: *one, to: rank 2 }\n\
                - { <<: *one, to: rank 3, latency: 5 }\n";
    let error = load(&File::new(text).options(&[])).unwrap_err();
    assert_eq!(error.problems.len(), 1, "{}", describe(&error.problems));
    assert_eq!(place(&error.problems[0].source), (4, 36));
    let good = text.replace("latency: 5 ", "latency: 5us ");
    let links = load(&File::new(&good).options(&[])).unwrap().cluster.links;
    assert_eq!(links[1].to.to_string(), "rank 2");
    assert_eq!(links[1].kind, "x");
    assert_eq!(links[2].latency, Some(TimeSpan::micros(5)));
}
