//! The page.

use std::fmt::Write as _;
use std::time::Duration;

use crate::columns::{Column, FAST, Quantity, Value, columns, growth, is_fast, median, short};
use crate::plans::BYTES;
use crate::promises::Promise;
use crate::survey::{Plans, Survey};

const MIB: f64 = (1 << 20) as f64;

/// How the page says what the ranks did.
const METHOD: &str = "\
Ranks are processes of one machine, started by `unisono run`. Each measures itself: it joins, calls a barrier, then
all_reduce of 1 KiB and of 1 MiB twice each (f32, sum, checked), makes a further communicator of all ranks by `split`
and calls the same there, then one of itself alone. Before each timed call is a barrier. The first call of a size is
planned, and the first of all takes the memory that calls need. A figure is the median of the jobs' medians over
ranks, and after the slash of the jobs' worst ranks.

The clock tells of a crowded machine where ranks are more than cores: there, what costs each rank the same takes
time in proportion to the ranks, and what costs each rank in proportion to the ranks takes their square. The
processor's time is a rank's own cost, with the turns of waits that spin.

Memory is what the process grows by: anonymous memory and its part of shared memory, in pages that were touched
(`Pss_Anon` and `Pss_Shmem`). *Code* is what was read of the library's and the plugins' files (`Pss_File`), which
processes share and the system can drop. *Staging and flags* are what a rank makes for its peers, *mapped* are all
addresses, the peers' staging too; both count what was never touched, which takes no memory. The program's own 2 MiB
of data are there before.
";

/// The page with everything.
pub fn page(survey: &Survey, promises: &[Promise], about: &str) -> String {
    let mut out = String::from("# Cost as work grows\n\n");
    if !about.is_empty() {
        let _ = writeln!(out, "{about}");
    }
    let repeat = survey.jobs.first().map_or(0, |jobs| jobs.runs.len());
    let _ = writeln!(
        out,
        "Repeat with `cargo xtask growth`; {repeat} jobs of each number of ranks.\n\n## Promises\n"
    );
    for promise in promises {
        let verdict = if promise.is_kept() {
            ""
        } else {
            "**Not kept.** "
        };
        let _ = writeln!(out, "- {verdict}A rank's memory for {promise}.");
    }
    let _ = writeln!(out, "\n## Jobs\n\n{METHOD}");
    for (quantity, title) in [
        (Quantity::Processor, "Processor time of a rank, ms"),
        (Quantity::Clock, "Time by the clock, ms"),
        (Quantity::Memory, "Memory of a rank, MiB"),
        (Quantity::Count, "Threads and descriptors of a rank"),
    ] {
        table(&mut out, survey, quantity, title);
    }
    grown(&mut out, survey);
    out.push_str("## Plans\n\n");
    let _ = writeln!(
        out,
        "`unisono plan` for {} KiB, each plan in a process of its own: seconds of planning / MiB at the peak, with\n\
         the graph, beyond the empty process, by ranks; and by how much both grow in the last doubling. The graph\n\
         of a node has a link for each pair of ranks, hence quadratically many, and as many messages has an\n\
         all_to_all. Up to 128 ranks steps are simulated, beyond that messages are counted first. A job's own\n\
         ranks do not plan so, they choose among algorithms: what that takes is in their first calls.\n",
        BYTES >> 10
    );
    for plans in &survey.plans {
        plan_table(&mut out, plans, survey.limit);
    }
    out
}

fn table(out: &mut String, survey: &Survey, quantity: Quantity, title: &str) {
    let _ = write!(out, "### {title}\n\n| ranks |");
    let is_clock = quantity == Quantity::Clock;
    if is_clock {
        out.push_str(" whole job |");
    }
    for column in columns(quantity) {
        let _ = write!(out, " {} |", column.name);
    }
    let count = columns(quantity).count() + usize::from(is_clock);
    let _ = writeln!(out, "\n|--:|{}", "--:|".repeat(count));
    for jobs in &survey.jobs {
        let _ = write!(out, "| {} |", jobs.ranks);
        if is_clock {
            let wall = median(jobs.runs.iter().map(|job| job.wall).collect());
            let _ = write!(out, " {} |", quantity.show(wall));
        }
        for column in columns(quantity) {
            let Value { median, worst } = column.value(jobs);
            let (median, worst) = (quantity.show(median), quantity.show(worst));
            let same = median == worst;
            let _ = match same {
                true => write!(out, " {median} |"),
                false => write!(out, " {median} / {worst} |"),
            };
        }
        out.push('\n');
    }
    out.push('\n');
}

/// How a column grows from each number of ranks to the next.
struct Grown {
    name: String,
    /// The ratio, none where it is to a value that does not matter; and whether it is faster than linear.
    steps: Vec<(Option<f64>, bool)>,
}

impl Grown {
    fn new(column: &Column, survey: &Survey) -> Self {
        let ranks: Vec<u32> = survey.jobs.iter().map(|jobs| jobs.ranks).collect();
        let values = survey.jobs.iter().map(|jobs| column.value(jobs).median);
        let values: Vec<f64> = values.collect();
        let floor = column.quantity.floor();
        let steps = growth(&ranks, &values).into_iter().enumerate();
        let steps = steps.map(|(at, by)| {
            let to = values[at + 1];
            let told = (to > floor && by.is_finite()).then_some(by);
            (told, is_fast(ranks[at], by, to, floor))
        });
        let kind = match column.quantity {
            Quantity::Clock => "clock, ",
            Quantity::Processor => "processor, ",
            Quantity::Memory => "memory, ",
            Quantity::Count => "",
        };
        Self {
            name: format!("{kind}{}", column.name),
            steps: steps.collect(),
        }
    }

    fn is_fast(&self) -> bool {
        self.steps.iter().any(|(_, fast)| *fast)
    }
}

fn grown(out: &mut String, survey: &Survey) {
    out.push_str("### Growth per doubling of the ranks\n\n");
    if survey.jobs.len() < 2 {
        out.push_str("One number of ranks does not grow.\n\n");
        return;
    }
    let _ = writeln!(
        out,
        "Medians; 2 is linear in the ranks, 4 quadratic. Bold: more than {FAST}. What is still less than 5 ms,\n\
         1 MiB or 16 of a thing is left out. From one rank to several is no growth: what peers need is new there.\n"
    );
    out.push_str("| column |");
    for pair in survey.jobs.windows(2) {
        let _ = write!(out, " {} to {} |", pair[0].ranks, pair[1].ranks);
    }
    let _ = writeln!(out, "\n|---|{}", "--:|".repeat(survey.jobs.len() - 1));
    let own = [Quantity::Processor, Quantity::Memory, Quantity::Count];
    let of = |quantity| columns(quantity).map(|column| Grown::new(column, survey));
    let own: Vec<Grown> = own.into_iter().flat_map(of).collect();
    let clock: Vec<Grown> = of(Quantity::Clock).collect();
    for row in own.iter().chain(&clock) {
        let _ = write!(out, "| {} |", row.name);
        for &(by, fast) in &row.steps {
            let _ = match by {
                Some(by) if fast => write!(out, " **{by:.2}** |"),
                Some(by) => write!(out, " {by:.2} |"),
                None => write!(out, " · |"),
            };
        }
        out.push('\n');
    }
    let named = |rows: &[Grown]| {
        let names = rows.iter().filter(|row| row.is_fast());
        let names: Vec<&str> = names.map(|row| row.name.as_str()).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join("; "),
        }
    };
    let _ = writeln!(
        out,
        "\nA rank's own costs that grow faster than linearly somewhere: {}.\n\
         By the clock of this crowded machine: {}.\n",
        named(&own),
        named(&clock)
    );
}

fn plan_table(out: &mut String, plans: &Plans, limit: Duration) {
    let _ = write!(out, "### On {}\n\n| operation |", plans.graphs);
    for ranks in &plans.ranks {
        let _ = write!(out, " {ranks} |");
    }
    let rules = "--:|".repeat(plans.ranks.len());
    let _ = writeln!(out, " growth | the last one |\n|---|{rules}--:|---|");
    for (op, costs) in &plans.costs {
        let _ = write!(out, "| {} |", op.name());
        for cost in costs {
            let _ = match cost {
                Some(cost) => {
                    let (seconds, peak) = (short(cost.seconds), short(cost.peak as f64 / MIB));
                    write!(out, " {seconds} / {peak} |")
                }
                None => write!(out, " **> {}** |", limit.as_secs()),
            };
        }
        let (grown, last) = match costs.as_slice() {
            [.., Some(before), Some(last)] => {
                let ranks = &plans.ranks[costs.len() - 2..];
                let by = |a: f64, b: f64| short(growth(ranks, &[a, b])[0]);
                let seconds = by(before.seconds, last.seconds);
                let peak = by(before.peak as f64, last.peak as f64);
                (format!("{seconds} / {peak}"), Some(last))
            }
            [.., last] => (String::new(), last.as_ref()),
            [] => (String::new(), None),
        };
        let how = last.map(|last| format!("{}, by {}", last.algorithm, last.method));
        let _ = writeln!(out, " {grown} | {} |", how.unwrap_or_default());
    }
    out.push('\n');
}
