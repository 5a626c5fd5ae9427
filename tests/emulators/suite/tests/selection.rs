//! What is chosen on each box, by the commands that a person would ask: `unisono topo` draws the links that
//! its plugin reports, `unisono explain` says what runs over them and for how long, and `unisono plan`, which
//! simulates each step on the very graph that `topo` wrote, says the same of the winner.

use std::path::Path;

use unisono_emulated_tests::Emulated;
use unisono_tests::free_address;

/// Kinds of algorithms, as `explain` names them.
const MESH: &[&str] = &["mesh_one_shot", "mesh_two_shot"];
/// Packed into the links that pairs have for themselves.
const PACKED: &[&str] = &["rings", "trees"];
const LEVELS: &[&str] = &["hierarchical:"];

/// Short, and long enough that only bandwidth counts.
const SHORT: &str = "1K";
const LONG: &str = "64M";
/// How far the time on the links that `explain` predicts may be from the simulated one: it is put together
/// from whole percents.
const TOLERANCE: f64 = 0.1;
/// The same of pipelines of many pieces: `explain` predicts pieces no larger than slots, and takes the latency
/// of each for a step of its own.
const PIPELINED: f64 = 0.3;

/// The same of two levels that are about as slow.
const LEVEL_BY_LEVEL: f64 = 0.7;

struct Row {
    op: &'static str,
    bytes: &'static str,
    family: &'static [&'static str],
    /// How far the prediction may be from the simulation.
    within: f64,
}

const fn row(op: &'static str, bytes: &'static str, family: &'static [&'static str]) -> Row {
    Row {
        op,
        bytes,
        family,
        within: TOLERANCE,
    }
}

impl Row {
    const fn within(self, within: f64) -> Self {
        Self { within, ..self }
    }
}

/// What `explain` says of the winner.
#[derive(Debug)]
struct Explained {
    algorithm: String,
    /// Of the predicted time what the links take, in microseconds.
    on_links_us: f64,
    text: String,
}

impl Explained {
    fn parse(text: String) -> Self {
        let mut lines = text.lines();
        let winner = lines.find(|line| unprefixed(line).starts_with("* "));
        let winner = winner.unwrap_or_else(|| panic!("no winner: {text}"));
        let words: Vec<&str> = unprefixed(winner).split_whitespace().collect();
        let share = |part: &str| {
            let found = text.split(&format!(" % {part}")).next();
            let percent = found.filter(|before| before.len() < text.len());
            let percent = percent.and_then(|before| before.rsplit([' ', ':']).next()?.parse().ok());
            percent.unwrap_or(0.0) / 100.0
        };
        let total: f64 = words[3].parse().expect("a time");
        Self {
            algorithm: words[1].to_owned(),
            on_links_us: total * (share("latency") + share("transfer")),
            text,
        }
    }
}

/// A line without the number of the rank that printed it.
fn unprefixed(line: &str) -> &str {
    line.strip_prefix("[0] ").unwrap_or(line)
}

/// The cluster file of a job with a device of the box for each rank.
fn cluster(folder: &Path, plugin: &str, devices: &[u32], more: &str) -> String {
    let devices: Vec<String> = devices.iter().map(|n| format!("{plugin}:{n}")).collect();
    // Slots as the planner simulates them: devices have larger ones by themselves.
    let text = format!(
        "plugins:\n  - name: {plugin}\n  - name: host\n{more}ranks: [{}]\nmemory: {{slot: 128 KiB}}\n",
        devices.join(", ")
    );
    let path = folder.join("cluster.yaml");
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// What `unisono plan` says one algorithm takes, by simulating every step; in microseconds.
fn simulated(machine: &Emulated, graph: &str, row: &Row, algorithm: &str) -> f64 {
    let plan = [
        "plan", "--graph", graph, "--op", row.op, "--bytes", row.bytes,
    ];
    let text = machine.command(&[&plan[..], &["--algorithm", algorithm, "--json"]].concat());
    let time = text.split("\"predicted_us\":").nth(1);
    let time = time.and_then(|rest| rest.split([',', '}']).next()?.parse().ok());
    time.unwrap_or_else(|| panic!("no time: {text}"))
}

/// Explains each row and compares it with the simulation; what was said.
fn explains(
    machine: &Emulated,
    (graph, rows): (&str, &[Row]),
    explain: impl Fn(&[&str]) -> String,
) -> Vec<Explained> {
    let mut all = Vec::new();
    for row in rows {
        let found = Explained::parse(explain(&["explain", row.op, "--bytes", row.bytes]));
        let fits = row
            .family
            .iter()
            .any(|name| found.algorithm.starts_with(name));
        let what = format!("{} of {}", row.op, row.bytes);
        assert!(fits, "{what}: not one of {:?}:\n{}", row.family, found.text);
        // The planner knows kinds by the first part of their names.
        let name = found.algorithm.split(':').next().unwrap_or_default();
        let simulated = simulated(machine, graph, row, name);
        println!(
            "{what}: {}, {:.2} us on its links, simulated {simulated:.2} us",
            found.algorithm, found.on_links_us
        );
        let far = (found.on_links_us - simulated).abs() / simulated;
        assert!(
            far <= row.within,
            "{what}: simulated {simulated} us:\n{}",
            found.text
        );
        all.push(found);
    }
    all
}

/// Eight devices of a box: the lines that `topo` draws of its links, and what is chosen.
fn chooses(
    test: &str,
    (name, plugin): (&str, &str),
    links: &[&[&str]],
    rows: &[Row],
) -> Vec<Explained> {
    let Some(machine) = Emulated::new(test, name, |text| text) else {
        return Vec::new();
    };
    let folder = tempfile::tempdir().expect("a folder");
    let devices: Vec<u32> = (0..8).collect();
    let file = cluster(folder.path(), plugin, &devices, "");
    let on_eight = |arguments: &[&str]| {
        let of_job = ["--ranks", "8", "--cluster-file", &file];
        machine.command(&[arguments, &of_job].concat())
    };
    let drawn = on_eight(&["topo"]);
    let table = drawn.lines().skip_while(|line| *line != "Links");
    // What follows says through what memory bytes go.
    let table: Vec<&str> = table.take_while(|line| !line.is_empty()).collect();
    let table: Vec<Vec<&str>> = table
        .iter()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for wanted in links {
        let drawn_so = |line: &Vec<&str>| wanted.iter().all(|word| line.contains(word));
        assert!(
            table.iter().any(drawn_so),
            "no line with {wanted:?}:\n{drawn}"
        );
    }
    // A title and the names of columns stand above.
    assert_eq!(table.len(), links.len() + 2, "{drawn}");
    let graph = folder.path().join("graph.json").display().to_string();
    let _ = on_eight(&["topo", "--format", "json", "--output", &graph]);
    explains(&machine, (&graph, rows), on_eight)
}

/// Every two joined by a link of their own: all of them are used at once.
const ON_A_MESH: [Row; 8] = [
    row("all_reduce", SHORT, MESH),
    row("all_reduce", LONG, &["mesh_two_shot"]),
    row("all_gather", SHORT, MESH),
    row("all_gather", LONG, MESH),
    row("reduce_scatter", LONG, MESH),
    row("all_to_all", LONG, MESH),
    // The formula has the root send all before the others hand it on; they do both at once.
    row("broadcast", LONG, &["mesh_two_shot"]).within(0.8),
    row("reduce", SHORT, MESH),
];

fn uses_all_seven(explained: &[Explained], kind: &str) {
    let all = format!("uses 7 of each device's 7 {kind} links.");
    for Explained { text, .. } in explained {
        let is_rooted = text.contains("(root 0)");
        assert!(is_rooted || text.contains(&all), "{text}");
    }
}

#[test]
fn a_mesh_on_910b() {
    let links: &[&[&str]] = &[&[
        "hccs", "56", "25.7", "read,", "19.3", "written", "ranks", "each",
    ]];
    let found = chooses(
        "a_mesh_on_910b",
        ("ascend910bx8", "ascend"),
        links,
        &ON_A_MESH,
    );
    uses_all_seven(&found, "hccs");
    for Explained { text, .. } in &found {
        let who = "the receiver reads the sender's memory";
        assert!(text.contains(who), "{text}");
    }
}

#[test]
fn a_mesh_on_mi300x() {
    let links: &[&[&str]] = &[&["xgmi", "56", "64", "ranks", "each"]];
    let found = chooses("a_mesh_on_mi300x", ("mi300x8", "rocm"), links, &ON_A_MESH);
    uses_all_seven(&found, "xgmi");
}

/// Through switches every two are joined, but all that leaves a device shares its lanes: a mesh has the
/// least latency, and takes no longer for the bytes than anything else would.
#[test]
fn a_mesh_within_the_lanes_of_each_device_through_switches() {
    let links: &[&[&str]] = &[&["nvlink", "56", "450", "yes"]];
    let found = chooses(
        "a_mesh_within_the_lanes_of_each_device_through_switches",
        ("h100x8", "cuda"),
        links,
        &[
            row("all_reduce", SHORT, MESH),
            row("all_reduce", LONG, &["mesh_two_shot"]),
            row("all_gather", LONG, MESH),
            row("reduce_scatter", LONG, MESH),
            row("all_to_all", LONG, &["mesh_one_shot", "pairwise"]),
        ],
    );
    // 14 of 64 MiB / 8 by 450 GB/s, and not by seven times that.
    if let Some(Explained { text, .. }) = found.get(1) {
        let busiest = "The busiest is nvlink of rank 0: 112 MiB at 450 GB/s, 260.97 us";
        assert!(text.contains(busiest), "{text}");
    }
}

/// On a cube mesh long messages take the lanes of pairs alone, and no byte of theirs the host's memory.
#[test]
fn rings_and_trees_on_a_cube_mesh() {
    let links: &[&[&str]] = &[&["nvlink", "25"], &["nvlink", "50"], &["staged", "yes"]];
    let found = chooses(
        "rings_and_trees_on_a_cube_mesh",
        ("v100x8", "cuda"),
        links,
        &[
            row("all_reduce", LONG, PACKED).within(PIPELINED),
            row("all_gather", LONG, PACKED).within(PIPELINED),
            row("reduce_scatter", LONG, PACKED).within(PIPELINED),
        ],
    );
    for Explained { text, .. } in &found {
        assert!(text.contains("uses 4 of each device's 4 nvlink"), "{text}");
        assert!(!text.contains("staged links"), "{text}");
    }
}

/// Boards of two devices, joined by one or two links or by a way over others.
#[test]
fn what_suits_boards_that_are_joined_in_part() {
    let links: &[&[&str]] = &[
        &["xgmi", "8", "200"],
        &["xgmi", "4", "100"],
        &["xgmi", "12", "50"],
        &["xgmi", "32", "25", "yes"],
    ];
    chooses(
        "what_suits_boards_that_are_joined_in_part",
        ("mi250x4", "rocm"),
        links,
        &[
            row("all_reduce", SHORT, MESH),
            row("all_reduce", LONG, PACKED).within(PIPELINED),
            // Short pieces on fast links: their latency is half of what is predicted.
            row("all_gather", LONG, PACKED).within(0.7),
        ],
    );
}

/// Two meshes of four, and between them one slot a device. `explain` adds up what the levels take; in the
/// simulation they work at once, on different pieces and different links.
#[test]
fn level_by_level_on_910a() {
    let links: &[&[&str]] = &[&["hccs", "24", "15"], &["pcie", "32", "12", "yes"]];
    let found = chooses(
        "level_by_level_on_910a",
        ("ascend910ax8", "ascend"),
        links,
        &[
            row("all_reduce", LONG, LEVELS).within(LEVEL_BY_LEVEL),
            row("all_gather", LONG, LEVELS).within(LEVEL_BY_LEVEL),
            row("reduce_scatter", LONG, LEVELS).within(LEVEL_BY_LEVEL),
        ],
    );
    for Explained { text, .. } in &found {
        assert!(
            text.contains("uses 3 of some devices' 3 hccs links."),
            "{text}"
        );
        assert!(
            text.contains("uses 1 of some devices' 4 pcie links"),
            "{text}"
        );
    }
}

/// One link of a mesh is down, and its two devices reach each other by a narrower way: what that costs
/// decides, short messages stay on the mesh.
#[test]
fn a_mesh_with_a_dead_link() {
    let test = "a_mesh_with_a_dead_link";
    let links: &[&[&str]] = &[&["hccs", "54", "25.7", "19.3"], &["pcie", "2", "24", "yes"]];
    let rows = [
        row("all_reduce", SHORT, MESH),
        row("all_reduce", LONG, &["mesh_two_shot"]),
        row("all_gather", LONG, MESH),
        row("all_to_all", LONG, MESH),
    ];
    chooses(test, ("ascend910bx8_dead", "ascend"), links, &rows);
    // Here the way around is much narrower than a link.
    let links: &[&[&str]] = &[&["xgmi", "54", "64"], &["xgmi", "2", "25", "yes"]];
    let rows = [
        row("all_reduce", SHORT, MESH),
        row("all_reduce", LONG, &["trees"]).within(PIPELINED),
        row("all_to_all", LONG, MESH),
    ];
    let found = chooses(test, ("mi300x8_dead", "rocm"), links, &rows);
    if let Some(Explained { text, .. }) = found.get(1) {
        let around = "uses 6 of some devices' 7 xgmi links; 1 are idle.";
        assert!(text.contains(around), "{text}");
    }
}

/// Lanes that are down narrow a device's way into the switches, or a pair's link.
#[test]
fn dead_lanes_are_counted() {
    let test = "dead_lanes_are_counted";
    let links: &[&[&str]] = &[
        &["nvlink", "42", "450", "yes"],
        &["nvlink", "14", "400", "yes"],
    ];
    let rows = [
        row("all_reduce", SHORT, MESH),
        row("all_reduce", LONG, &["mesh_two_shot"]),
        row("all_gather", LONG, MESH),
    ];
    let found = chooses(test, ("h100x8_dead", "cuda"), links, &rows);
    if let Some(Explained { text, .. }) = found.get(1) {
        let busiest = "The busiest is nvlink of rank 3: 112 MiB at 400 GB/s";
        assert!(text.contains(busiest), "{text}");
    }
    let links: &[&[&str]] = &[
        &["nvlink", "14", "50"],
        &["nvlink", "18", "25"],
        &["staged", "24", "12", "yes"],
    ];
    let rows = [
        row("all_reduce", LONG, PACKED).within(PIPELINED),
        row("all_gather", LONG, PACKED).within(PIPELINED),
    ];
    chooses(test, ("v100x8_dead", "cuda"), links, &rows);
}

/// Two boxes, each a node of its own: what stays inside goes over its links, and as little as can be
/// between them.
#[test]
fn level_by_level_across_boxes() {
    let test = "level_by_level_across_boxes";
    for (name, plugin, link) in [
        ("h100x8", "cuda", ["nvlink", "450"]),
        ("mi300x8", "rocm", ["xgmi", "64"]),
        ("ascend910bx8", "ascend", ["hccs", "25.7"]),
    ] {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let more = "  - name: tcp\ninterfaces: {include: [lo]}\n";
        let file = cluster(folder.path(), plugin, &[0, 1, 2, 3, 0, 1, 2, 3], more);
        // Each rank is told what node it is on, and where the first one is found.
        let on_two_nodes = |arguments: &[&str]| {
            let root = free_address();
            let node = format!(
                "export UNISONO_NODE_ID=box$((UNISONO_RANK / 4)) UNISONO_LOCAL_SIZE=4 \
                 UNISONO_LOCAL_RANK=$((UNISONO_RANK % 4)) UNISONO_ROOT={root}; exec \"$@\""
            );
            let run = ["run", "-n", "8", "--timeout", "60s", "--no-prefix", "--"];
            let rank = ["sh", "-c", &node, "sh", "unisono"];
            let with = ["--cluster-file", &file];
            machine.command(&[&run[..], &rank, arguments, &with].concat())
        };
        let drawn = on_two_nodes(&["topo"]);
        assert!(drawn.contains("8 ranks on 2 nodes"), "{drawn}");
        let inside = drawn
            .lines()
            .any(|line| link.iter().all(|word| line.contains(word)));
        assert!(inside && drawn.contains("tcp, posted"), "{drawn}");
        let graph = folder.path().join("graph.json").display().to_string();
        let _ = on_two_nodes(&["topo", "--format", "json", "--output", &graph]);
        let rows = [
            row("all_reduce", LONG, LEVELS),
            row("all_gather", LONG, LEVELS),
            row("reduce_scatter", LONG, LEVELS),
            row("broadcast", LONG, LEVELS),
        ];
        explains(&machine, (&graph, &rows), on_two_nodes);
    }
}
