//! Subcommands that form communicators. They need the plugins of this build.

mod common;
#[path = "common/plugins.rs"]
mod plugins;

use std::collections::BTreeSet;
use std::process::Command;

use common::{Done, run, unisono};
use plugins::{plugins, skip};

/// Runs the command line with the plugins of this build; `None`, with the reason printed, if there
/// are none.
fn job(args: &[&str]) -> Option<Done> {
    match plugins() {
        Ok(folder) => Some(run(unisono().args(args).env("UNISONO_PLUGIN_PATH", folder))),
        Err(why) => {
            skip(args[0], &why);
            None
        }
    }
}

#[test]
fn json_lines_have_exactly_the_keys_that_others_print_too() {
    let Some(done) = job(&[
        "bench",
        "all_reduce,barrier",
        "--ranks",
        "2",
        "-b",
        "8",
        "-e",
        "4K",
        "-n",
        "2",
        "--json",
    ]) else {
        return;
    };
    assert_eq!(done.code, Some(0), "{done:?}");
    let lines: Vec<serde_json::Value> = done
        .out
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let sizes: Vec<u64> = lines.iter().map(|l| l["bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [8, 32, 128, 512, 2048, 4096, 0]);
    let expected: BTreeSet<&str> = [
        "peer",
        "op",
        "ranks",
        "bytes",
        "dtype",
        "usec_median",
        "usec_min",
        "usec_p99",
        "algbw_GBps",
        "busbw_GBps",
        "transport",
        "algorithm",
        "wrong",
    ]
    .into();
    for line in &lines {
        let keys: BTreeSet<&str> = line
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(keys, expected);
        assert_eq!(
            (&line["peer"], &line["ranks"], &line["wrong"]),
            (&"unisono".into(), &2.into(), &0.into())
        );
        assert_eq!(line["transport"], "shm");
        let figure = |key: &str| line[key].as_f64().unwrap();
        assert!(figure("usec_min") > 0.0 && figure("usec_min") <= figure("usec_median"));
        assert!(figure("usec_median") <= figure("usec_p99"));
    }
}

#[test]
fn every_operation_type_and_reduction_is_right_in_place_and_out_of_place() {
    let ops =
        "all_reduce,all_gather,reduce_scatter,broadcast,reduce,gather,scatter,all_to_all,send_recv";
    let Some(done) = job(&[
        "bench", ops, "--ranks", "3", "-b", "0", "-e", "5000", "-f", "100", "-d", "all", "-o",
        "all", "-n", "1", "-w", "0", "--rounds", "1", "-r", "2",
    ]) else {
        return;
    };
    let wrong: Vec<&str> = (done.out.lines())
        .filter(|line| line.split_whitespace().count() > 10 && !line.starts_with('#'))
        .filter(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            cells[8] != "0" || !["0", "-"].contains(&cells[12])
        })
        .collect();
    assert!(
        done.code == Some(0) && wrong.is_empty(),
        "{wrong:#?} {}",
        done.err
    );
    assert!(done.out.contains("# Out of bounds values : 0 OK"));
    for text in [
        "bf16    avg",
        "i8   prod",
        "u64    max",
        "out-of-place",
        "algorithm",
        "(GB/s)",
    ] {
        assert!(done.out.contains(text), "{text}: {}", done.out);
    }
}

#[test]
fn windows_and_other_links_are_right_too() {
    let sweep = ["-e", "64K", "-f", "16", "-n", "2", "--rounds", "2"];
    for options in [&["--windows", "--dirty"][..], &["--without-links", "shm"]] {
        let args = [
            &["bench", "all_reduce,all_gather", "--ranks", "2"][..],
            &sweep,
            options,
        ]
        .concat();
        let Some(done) = job(&args) else {
            return;
        };
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.contains("0 OK"), "{}", done.out);
        let links = if options[0] == "--windows" {
            "Links: shm"
        } else {
            "Links: tcp"
        };
        assert!(done.out.contains(links), "{}", done.out);
    }
}

#[test]
fn wrong_command_lines_end_with_2_and_failures_with_1() {
    let code = |args: &[&str]| run(unisono().args(args)).code;
    assert_eq!(code(&["bench", "all_redcue"]), Some(2));
    assert_eq!(code(&["bench", "all_reduce", "-b", "8Q"]), Some(2));
    assert_eq!(
        code(&["bench", "all_reduce", "-b", "8M", "-e", "8K"]),
        Some(1)
    );
    let alone = run(unisono().args(["bench", "all_reduce"]));
    assert_eq!(alone.code, Some(1));
    assert!(alone.err.contains("--ranks"), "{alone:?}");
    let plugin = run(unisono().args(["bench", "all_reduce", "--ranks", "2", "--plugin", "nosuch"]));
    assert_eq!(plugin.code, Some(1), "{plugin:?}");
    assert!(plugin.err.contains("nosuch"), "{plugin:?}");
}

#[test]
fn a_graph_that_was_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.json");
    let path = file.to_str().unwrap();
    let Some(done) = job(&["topo", "--ranks", "2", "--format", "json", "-o", path]) else {
        return;
    };
    assert_eq!(done.code, Some(0), "{done:?}");
    let table = run(unisono().args(["topo", "--graph", path]));
    assert!(table.out.contains("2 ranks on 1 node"), "{table:?}");
    for (format, start) in [("svg", "<svg"), ("dot", "digraph"), ("json", "{")] {
        let done = run(unisono().args(["topo", "--graph", path, "--format", format]));
        assert!(done.out.contains(start), "{done:?}");
    }
}

#[test]
fn explain_says_why_and_rules_of_the_cluster_file_decide() {
    let Some(free) = job(&["explain", "all_reduce", "--bytes", "64M", "--ranks", "2"]) else {
        return;
    };
    assert_eq!(free.code, Some(0), "{free:?}");
    // It is the lowest, or as low as another's: that depends on the processor.
    assert!(free.out.contains("predicted time"), "{}", free.out);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.yaml");
    std::fs::write(
        &file,
        "algorithms:\n  - { op: all_reduce, min_bytes: 1 MiB, use: ring }\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let Some(forced) = job(&[
        "explain",
        "all_reduce",
        "--bytes",
        "64M",
        "--ranks",
        "2",
        "--cluster-file",
        file,
    ]) else {
        return;
    };
    assert!(
        forced.out.contains("* ring") && forced.out.contains("an override forces it"),
        "{}",
        forced.out
    );
}

#[test]
fn explain_tells_of_windows() {
    let ask = ["explain", "all_gather", "--bytes", "64M", "--ranks", "2"];
    let (Some(without), Some(with)) = (job(&ask), job(&[&ask[..], &["--windows"]].concat())) else {
        return;
    };
    assert!(
        without.out.contains("not windows of every peer"),
        "{without:?}"
    );
    assert!(with.out.contains("no byte passes a slot"), "{with:?}");
    // What is no window of every peer is none.
    let apart = job(&[&ask[..], &["--windows", "--without-links", "shm"]].concat());
    assert!(apart.is_some_and(|apart| apart.out.contains("not windows of every peer")));
    let winner = with.out.lines().find(|line| line.contains("* "));
    assert!(
        winner.is_some_and(|line| line.contains("over windows")),
        "{with:?}"
    );
}

/// Four ranks, each bound to one of two cores: their machine has two, and what goes from rank to rank goes core by core.
#[test]
fn ranks_that_are_bound_share_all_their_cores() {
    let cores = allowed_cores();
    let has_taskset = Command::new("taskset").arg("-V").output().is_ok();
    let [first, second, ..] = cores[..] else {
        return skip("bound ranks", "it needs two cores");
    };
    if !has_taskset {
        return skip("bound ranks", "there is no taskset");
    }
    let (Ok(folder), unisono) = (plugins(), env!("CARGO_BIN_EXE_unisono")) else {
        return skip("bound ranks", "no plugins");
    };
    let with = |command: &mut Command| {
        let ring = "[{op: all_reduce, use: ring_shared}]";
        let done = run(command
            .env("UNISONO_PLUGIN_PATH", &folder)
            .env("UNISONO_MEMORY", "{swap_slots: true}")
            .env("UNISONO_ALGORITHMS", ring));
        assert_eq!(done.code, Some(0), "{done:?}");
        done.out
    };
    let of_bound = |ask: &str| {
        let core = format!("$((UNISONO_RANK % 2 ? {second} : {first}))");
        let ask = format!("exec taskset -c {core} {unisono} {ask}");
        let ranks = ["run", "-n", "4", "--no-prefix", "--", "sh", "-c", &ask];
        with(Command::new(unisono).args(ranks))
    };
    let ask = "explain all_reduce --bytes 16M";
    let bound = of_bound(ask);
    assert!(bound.contains("* ring_shared:ordered"), "{bound}");
    if cores.len() == 2 {
        let ask = ask.split(' ').chain(["--ranks", "4"]);
        let unbound = with(Command::new(unisono).args(ask));
        let predicted = |out: &str| {
            let row = out.lines().find(|row| row.starts_with("  mesh_two_shot  "));
            row.and_then(|row| row.split_whitespace().nth(2).map(str::to_owned))
        };
        assert!(predicted(&bound).is_some(), "{bound}");
        assert_eq!(predicted(&bound), predicted(&unbound), "{bound}{unbound}");
    }
    // It checks what comes of it.
    let measured = of_bound("bench all_reduce,reduce,reduce_scatter -b 1K -e 4M -f 64 -n 2 -w 1");
    assert!(measured.contains("ring_shared:ordered"), "{measured}");
    assert!(measured.contains("binomial:in_runs"), "{measured}");
    let is_right = measured.contains("Out of bounds values : 0 OK");
    assert!(is_right, "{measured}");
}

/// The numbers of the cores that this process may use.
fn allowed_cores() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.unwrap_or_default().trim().split(',');
    let numbers = ranges.filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    numbers.flatten().collect()
}

#[test]
fn explain_asks_a_barrier_for_no_bytes() {
    let ask = ["explain", "barrier", "--ranks", "3"];
    for (more, shows) in [(&[][..], "predicted"), (&["--measure"], " now ")] {
        let Some(told) = job(&[&ask[..], more].concat()) else {
            return;
        };
        assert_eq!(told.code, Some(0), "{told:?}");
        assert!(told.out.starts_with("barrier on 3 ranks\n"), "{}", told.out);
        assert!(told.out.contains(shows), "{}", told.out);
    }
    let sizeless = job(&["explain", "all_reduce", "--ranks", "2", "--measure"]);
    assert!(sizeless.is_some_and(|told| told.code != Some(0) && told.err.contains("--bytes")));
}

#[test]
fn explain_tells_islands_what_limits_and_what_candidates_take_now() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.yaml");
    let pairs = (0..4).flat_map(|a| (a + 1..4).map(move |b| (a, b)));
    let links: Vec<String> = pairs
        .map(|(a, b)| {
            let rate = if a / 2 == b / 2 { "100GB/s" } else { "1GB/s" };
            format!("- {{from: rank {a}, to: rank {b}, kind: shm, bandwidth: {rate}}}\n")
        })
        .collect();
    std::fs::write(&file, format!("links:\n{}", links.concat())).unwrap();
    let of = ["explain", "all_reduce", "--ranks", "4", "--cluster-file"];
    let of: Vec<&str> = of.into_iter().chain(file.to_str()).collect();
    let with = |more: &[&str]| job(&[&of, more].concat());
    let Some(one) = with(&["--bytes", "4M"]) else {
        return;
    };
    assert!(one.out.contains("* hierarchical:"), "{}", one.out);
    assert!(
        one.out.contains("The busiest is shm from rank"),
        "{}",
        one.out
    );
    assert!(
        one.out.contains("of each device's 3 shm links"),
        "{}",
        one.out
    );
    let Some(all) = with(&[]) else {
        return;
    };
    assert!(
        all.out.contains("by size") && all.out.contains("4294967296"),
        "{}",
        all.out
    );
    assert!(all.out.contains("hierarchical:"), "{}", all.out);
    let Some(now) = with(&["--bytes", "4K", "--measure"]) else {
        return;
    };
    assert_eq!(now.code, Some(0), "{now:?}");
    assert!(
        now.out.contains(" now ") && now.out.contains("fastest"),
        "{}",
        now.out
    );
}

#[test]
fn a_plan_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, svg) = (
        folder.path().join("graph.json"),
        folder.path().join("plan.svg"),
    );
    std::fs::write(
        &graph,
        r#"{"nodes": [{"id": 0, "compute": true}, {"id": 1, "compute": true}],
            "edges": [{"src": 0, "dst": 1, "GBps": 50.0}, {"src": 1, "dst": 0, "GBps": 50.0}]}"#,
    )
    .unwrap();
    let (graph, svg) = (graph.to_str().unwrap(), svg.to_str().unwrap());
    let of = [
        "plan",
        "--graph",
        graph,
        "--op",
        "all_reduce",
        "--bytes",
        "1M",
    ];
    let done = run(unisono().args(of).args(["--format", "svg", "-o", svg]));
    assert_eq!(done.code, Some(0), "{done:?}");
    let drawn = std::fs::read_to_string(svg).unwrap();
    let front = run(unisono().args(of).args(["--front", "--json"]));
    let lines: Vec<&str> = front.out.lines().collect();
    assert_eq!(lines.len(), 13, "256 B to 1 MiB: {front:?}");
    assert!(lines.iter().all(|line| line.contains("\"share_of_bound\"")));
    assert!(drawn.starts_with("<svg") && drawn.contains("all_reduce of 1 MiB over 2 ranks"));
    let sizeless = |op: &str| run(unisono().args(["plan", "--graph", graph, "--op", op, "--json"]));
    let barrier = sizeless("barrier");
    assert_eq!(barrier.code, Some(0), "{barrier:?}");
    assert!(barrier.out.contains("\"bytes\":0"), "{barrier:?}");
    let other = sizeless("broadcast");
    assert_ne!(other.code, Some(0));
    assert!(other.err.contains("--bytes SIZE is needed"), "{other:?}");
}

#[test]
fn plugins_are_listed_checked_and_described() {
    let Some(list) = job(&["plugin", "list"]) else {
        return;
    };
    assert!(
        list.out.contains("host") && list.out.contains("libunisono_plugin_tcp.so"),
        "{list:?}"
    );
    let Some(check) = job(&["plugin", "check", "host", "tcp"]) else {
        return;
    };
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(check.out.contains("is sound"), "{check:?}");
    let bad = tempfile::NamedTempFile::with_suffix(".so").unwrap();
    std::fs::write(bad.path(), "no library").unwrap();
    let Some(refused) = job(&["plugin", "check", bad.path().to_str().unwrap()]) else {
        return;
    };
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out.contains("ELF"), "{refused:?}");
    let Some(params) = job(&["plugin", "params", "host"]) else {
        return;
    };
    assert!(
        params.out.contains("params:") && params.out.contains("spin:"),
        "{params:?}"
    );
}
