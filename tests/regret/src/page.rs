//! The table, as a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unisono_plan::Op;

use unisono_regret::OPS;

use crate::cells::Compared;

/// What the project promises: a mean of 3 % and nothing above 10 %.
const MEAN: f64 = 0.03;
const WORST: f64 = 0.10;

/// The families of graphs.
pub const FAMILIES: [&str; 6] = ["fixtures", "ring", "mesh", "torus", "fat-tree", "boxes"];

/// The page of results: of so many cells these were compared.
pub fn page(results: &[Compared], of: usize, full: bool, about: &str) -> String {
    let mut out = String::from("# Regret of the choice of plans\n\n");
    let counts = if full { "full" } else { "reduced" };
    let _ = writeln!(
        out,
        "What `unisono plan` chooses over the best of every candidate in every cut, all simulated from their\n\
         steps. {} of {of} cells of the {counts} set, drawn at random or asked for by graph. Repeat with `cargo xtask regret{}`.\n",
        results.len(),
        if full { " --full" } else { "" }
    );
    if !about.is_empty() {
        let _ = writeln!(out, "{about}\n");
    }
    let mut commits: BTreeMap<&str, usize> = BTreeMap::new();
    for one in results.iter().filter(|one| !one.commit.is_empty()) {
        *commits.entry(&one.commit).or_default() += 1;
    }
    // One commit is what `about` names, unless all of this was compared before.
    if commits.keys().any(|commit| !about.contains(commit)) {
        let each: Vec<String> = (commits.iter())
            .map(|(commit, count)| format!("{count} by {commit}"))
            .collect();
        let _ = writeln!(out, "Compared in parts: {}.\n", each.join(", "));
    }
    out.push_str(
        "The sweep holds cuts of up to 60,000 steps, and for more than 128 ranks, where the choice comes from counting,\n\
         candidates of up to 250,000. Graphs of the fixtures have 1 us of latency on each edge. NCCL and HCCL: what\n\
         their published rules would choose of this project's algorithms on the same graph, over the best; no figure\n\
         here was measured with them.\n\n",
    );
    let mut groups: Vec<(String, Vec<&Compared>)> = vec![("all".into(), results.iter().collect())];
    for family in FAMILIES {
        let of_family = results.iter().filter(|one| one.family == family);
        groups.push((family.into(), of_family.collect()));
    }
    for op in OPS.map(Op::name) {
        let of_op = results.iter().filter(|one| one.op.name() == op);
        groups.push((op.into(), of_op.collect()));
    }
    for (name, least, most) in [
        ("2-17", 2, 17),
        ("18-128", 18, 128),
        ("129-1024", 129, 1024),
    ] {
        let of_size = results
            .iter()
            .filter(|one| (least..=most).contains(&one.ranks));
        groups.push((format!("{name} ranks"), of_size.collect()));
    }
    out.push_str("| cells | count | mean regret | worst | above 10 % | NCCL's rule, mean | HCCL's rule, mean |\n");
    out.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
    for (name, cells) in groups.iter().filter(|(_, cells)| !cells.is_empty()) {
        row(&mut out, name, cells);
    }
    let (mean, worst) = summary(results.iter().map(Compared::regret));
    let kept = mean <= MEAN && worst <= WORST;
    let verdict = if kept { "kept" } else { "not kept" };
    let _ = writeln!(
        out,
        "\nPromise: mean at most 3 %, worst at most 10 %: **{verdict}**.\n"
    );
    let mut sorted: Vec<&Compared> = results.iter().collect();
    sorted.sort_by(|a, b| b.regret().total_cmp(&a.regret()));
    out.push_str("The worst cells:\n\n| graph | op | bytes | chosen | us | best | us | regret |\n");
    out.push_str("|---|---|---:|---|---:|---|---:|---:|\n");
    for one in sorted.iter().take(15) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {:.2} | {} | {:.2} | {} |",
            one.graph,
            one.op.name(),
            one.bytes,
            one.chosen,
            one.chosen_us,
            one.best,
            one.best_us,
            percent(one.regret())
        );
    }
    out
}

fn row(out: &mut String, name: &str, cells: &[&Compared]) {
    let (mean, worst) = summary(cells.iter().map(|one| one.regret()));
    let above = cells.iter().filter(|one| one.regret() > WORST).count();
    let rule = |of: fn(&Compared) -> Option<f64>| {
        let ratios = cells
            .iter()
            .filter_map(|one| Some(of(one)? / one.best_us - 1.0));
        let ratios: Vec<f64> = ratios.collect();
        match ratios.is_empty() {
            true => "-".to_owned(),
            false => percent(summary(ratios.into_iter()).0),
        }
    };
    let _ = writeln!(
        out,
        "| {name} | {} | {} | {} | {above} | {} | {} |",
        cells.len(),
        percent(mean),
        percent(worst),
        rule(|one| one.nccl_us),
        rule(|one| one.hccl_us)
    );
}

/// Mean and largest.
fn summary(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut sum, mut worst, mut count) = (0.0, 0.0f64, 0.0);
    for value in values {
        sum += value;
        worst = worst.max(value);
        count += 1.0;
    }
    (if count > 0.0 { sum / count } else { 0.0 }, worst)
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}
