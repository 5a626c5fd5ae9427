//! The results page, of a name for each kind of memory and transport, and a drawing for each transport and number of
//! ranks.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::arguments::{Arguments, Transport};
use crate::cell::size;
use crate::machine::cores;
use crate::plot;
use crate::results::{QUIET, Results, Row, TIE, median};
use crate::table::{by_size, means, ratio, time};
use crate::visit::TRIES;

/// Writes the page and the drawings to a folder; the page's path. Libraries that may not be named are nowhere in it.
pub fn write(folder: &Path, arguments: &Arguments, results: &Results) -> Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    };
    for (transport, ranks) in results.parts() {
        let title = format!("{}, {ranks} ranks", transport.name());
        let drawing = plot::drawing(&title, &results.part(transport, ranks));
        put(&drawing_name(arguments, transport, ranks), drawing)?;
    }
    let page = format!("{}.md", stem(arguments));
    put(&page, text(arguments, results))?;
    Ok(folder.join(page))
}

/// What pages and drawings of such a run are called: host, if it is as usual.
fn stem(arguments: &Arguments) -> String {
    let mut stem = "host".to_owned();
    if arguments.transport == [Transport::Tcp] {
        stem += "-tcp";
    }
    stem + &memory_of(arguments)
}

/// Which buffers, if not as usual, for names of files.
fn memory_of(arguments: &Arguments) -> String {
    match (arguments.own_memory, arguments.offset) {
        (true, _) => "-own-memory".to_owned(),
        (false, 0) => String::new(),
        (false, bytes) => format!("-offset-{bytes}"),
    }
}

fn drawing_name(arguments: &Arguments, transport: Transport, ranks: u32) -> String {
    let memory = memory_of(arguments);
    format!("host{memory}-{}-{ranks}.svg", transport.name())
}

fn text(arguments: &Arguments, results: &Results) -> String {
    let mut text = format!(
        "# The host beside other libraries{}{}\n\n{}\nWritten by `{}`.\n\n",
        if arguments.transport == [Transport::Tcp] {
            ", over TCP"
        } else {
            ""
        },
        match (arguments.own_memory, arguments.offset) {
            (true, _) => ", in the libraries' own memory".to_owned(),
            (false, 0) => String::new(),
            (false, bytes) => format!(", in buffers {bytes} bytes behind a page"),
        },
        arguments.about,
        command(arguments)
    );
    text += &conditions(arguments, results);
    text += &versions(results);
    let parts = results.parts();
    for &(transport, ranks) in &parts {
        let part = results.part(transport, ranks);
        let name = transport.name();
        let _ = write!(
            text,
            "\n## {name}, {ranks} ranks\n\nThe best peer's time over ours; above 1 ours is faster. \
             Geometric mean: {}.\n\n{}",
            means(&part, Row::ratio),
            by_size(&part, emphasised)
        );
        let has_limit = part.iter().any(|(_, row)| row.limit().is_some());
        if has_limit {
            let _ = write!(
                text,
                "\nThe limit's time over ours: 1 is as fast as the machine. Were each cell as fast as the limit, where that is \
                 faster, the means above would be {}.\n\n{}",
                means(&part, Row::within_reach),
                by_size(&part, |row| ratio(row.share()))
            );
        }
        let behind: Vec<String> = part
            .iter()
            .filter(|(_, row)| row.is_behind())
            .map(|(cell, row)| {
                format!(
                    "{} at {} ({})",
                    cell.op,
                    size(cell.bytes),
                    ratio(row.ratio())
                )
            })
            .collect();
        let _ = match &behind[..] {
            [] => writeln!(text, "\nNo cell is worse than a tie."),
            cells => writeln!(text, "\nWorse than a tie: {}.", cells.join(", ")),
        };
        let _ = write!(
            text,
            "\nMicroseconds: ours / best peer{}.\n\n{}\n![Time and bandwidth over size]({})\n",
            if has_limit { " / limit" } else { "" },
            by_size(&part, |row| {
                let best = row.best().map(|best| best.1);
                let mut all = vec![time(row.ours()), time(best)];
                all.extend(has_limit.then(|| time(row.limit())));
                all.join(" / ")
            }),
            drawing_name(arguments, transport, ranks)
        );
    }
    let wrong = results.wrong();
    if !wrong.is_empty() {
        let _ = writeln!(text, "\n## Wrong results\n");
    }
    for (key, library) in wrong {
        let (op, bytes) = (key.cell.op, size(key.cell.bytes));
        let who = public_name(results, library);
        let _ = writeln!(text, "- {who}: {op} at {bytes}, {} ranks", key.ranks);
    }
    text
}

/// Faster in bold.
fn emphasised(row: &Row) -> String {
    match row.ratio() {
        Some(value) if value > TIE => format!("**{}**", ratio(Some(value))),
        value => ratio(value),
    }
}

/// What a reader has to know to judge the figures.
fn conditions(arguments: &Arguments, results: &Results) -> String {
    let input = if arguments.dirty {
        "Send buffers are rewritten before each call, and the time that takes is taken off."
    } else {
        "Send buffers are not rewritten between calls: the caches keep clean copies of them."
    };
    let memory = if arguments.own_memory {
        "Buffers are memory that the library allocates.".to_owned()
    } else {
        let begin = match arguments.offset {
            0 => "which begin with one".to_owned(),
            bytes => format!("which begin {bytes} bytes behind one"),
        };
        format!("Buffers are private memory in pages of 4 KiB, {begin}.")
    };
    let limit = if results.have_limit() {
        " The *limit* is threads that copy and add each other's buffers directly, with a flag in a cache line before \
         and after: no library whose ranks are processes can do so."
    } else {
        ""
    };
    let apart = apart(results);
    let others = results.others_busy();
    let warning = if others > QUIET {
        " **That is too much for these figures to mean anything.**"
    } else {
        ""
    };
    format!(
        "A call's time is the mean of calls back to back on the slowest rank; a time is the median \
         of the rounds, a ratio that of the rounds' ratios. All libraries are measured in the same rounds, one right after \
         the other, with f32 and sums, rank r on core r modulo {}. Results are checked in the first round. {input} \
         {memory} Times within {:.0} % are a tie.{limit} The size is the larger buffer's. Others' work on the machine took {others:.2} cores.{warning}{apart}\n",
        cores(),
        (TIE - 1.0) * 100.0
    )
}

/// How far apart the cores were, in nanoseconds, for each cell and round.
fn apart(results: &Results) -> String {
    let trips = &results.round_trips;
    let of = |which: fn(f64, f64) -> f64| trips.iter().copied().reduce(which);
    let (Some(least), Some(middle), Some(most)) = (of(f64::min), median(trips), of(f64::max))
    else {
        return String::new();
    };
    format!(
        " A cache line went from one core to another and back in {least:.0} to {most:.0} ns, {middle:.0} in the median: \
         virtual machines are moved, and two cores share a cache or not. If they were moved apart or together while \
         the libraries were visited for a cell, they were all visited anew, up to {} times; {} of {} such visits \
         were kept nevertheless.",
        TRIES - 1,
        results.unsteady,
        trips.len()
    )
}

fn versions(results: &Results) -> String {
    let mut text = String::from("\nPeers:\n\n");
    let mut unnamed = 0;
    for (library, version) in &results.versions {
        match public_name(results, library) {
            name if results.named.contains(name) => {
                let _ = writeln!(text, "- {name}: {version}");
            }
            "a peer" => unnamed += 1,
            _ => {}
        }
    }
    if unnamed > 0 {
        let _ = writeln!(
            text,
            "- {unnamed} more, not named here: their licences do not say that figures may be \
             published with their names"
        );
    }
    for (library, place) in &results.missing {
        let _ = writeln!(
            text,
            "- {} is missing {place}",
            public_name(results, library)
        );
    }
    text
}

/// The name under which a library may stand on the page.
fn public_name<'a>(results: &Results, library: &'a str) -> &'a str {
    use crate::results::{LIMIT, OURS};
    if results.named.contains(library) || [LIMIT, OURS].contains(&library) {
        library
    } else {
        "a peer"
    }
}

/// What repeats the run, but for the places of libraries.
fn command(arguments: &Arguments) -> String {
    let mut words = vec!["cargo xtask peers --page".to_owned()];
    for (on, flag) in [
        (arguments.quick, "--quick"),
        (arguments.dirty, "--dirty"),
        (arguments.own_memory, "--own-memory"),
    ] {
        if on {
            words.push(flag.to_owned());
        }
    }
    if arguments.offset > 0 {
        words.push(format!("--offset {}", arguments.offset));
    }
    let mut list = |flag: &str, values: Vec<String>| {
        if !values.is_empty() {
            words.push(format!("{flag} {}", values.join(",")));
        }
    };
    list(
        "--ranks",
        arguments.ranks.iter().map(u32::to_string).collect(),
    );
    list(
        "--sizes",
        arguments.sizes.iter().map(usize::to_string).collect(),
    );
    list(
        "--ops",
        arguments.ops.iter().map(|&op| op.to_owned()).collect(),
    );
    let transports = arguments.transport.iter();
    list(
        "--transport",
        transports.map(|t| t.name().to_owned()).collect(),
    );
    list(
        "--rounds",
        arguments.rounds.iter().map(usize::to_string).collect(),
    );
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{sample, without_limit};
    use clap::Parser;

    #[test]
    fn each_kind_of_run_has_names_of_its_own() {
        let names = |line: &str| {
            let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
            let transport = arguments.transport[0];
            (stem(&arguments), drawing_name(&arguments, transport, 2))
        };
        let of = |stem: &str, drawing: &str| (stem.to_owned(), drawing.to_owned());
        assert_eq!(names("x"), of("host", "host-shm-2.svg"));
        assert_eq!(names("x --transport tcp"), of("host-tcp", "host-tcp-2.svg"));
        assert_eq!(names("x --transport shm,tcp"), of("host", "host-shm-2.svg"));
        let own = of("host-own-memory", "host-own-memory-shm-2.svg");
        assert_eq!(names("x --own-memory"), own);
    }

    #[test]
    fn a_page_without_the_limit_does_not_speak_of_it() {
        let arguments = Arguments::try_parse_from(["x"]).unwrap();
        let page = text(&arguments, &without_limit());
        assert!(page.contains("Microseconds: ours / best peer.\n"), "{page}");
        assert!(page.contains("300 / 100 |"), "{page}");
        assert!(!page.contains("limit"), "{page}");
    }

    #[test]
    fn the_page_names_only_who_may_be_named() {
        let line = "x --dirty --ranks 2 --mpi hidden=/opt/hidden";
        let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
        let quiet = conditions(&arguments, &sample());
        let mut loud = sample();
        loud.others = vec![1.5];
        loud.round_trips = vec![100.4, 540.0, 130.0];
        assert!(!quiet.contains("back in"));
        loud.unsteady = 1;
        let loud_text = conditions(&arguments, &loud);
        assert!(loud_text.contains("back in 100 to 540 ns, 130 in the median"));
        assert!(loud_text.contains("4 times; 1 of 3 such visits"));
        assert!(!quiet.contains("too much") && conditions(&arguments, &loud).contains("too much"));
        let folder = tempfile::tempdir().unwrap();
        let mut some = sample();
        let place = || "with 8 ranks over shm".to_owned();
        some.missing = ["openmpi", "hidden"]
            .map(|library| (library.to_owned(), place()))
            .into();
        let path = write(folder.path(), &arguments, &some).unwrap();
        assert_eq!(path, folder.path().join("host.md"));
        let page = fs::read_to_string(path).unwrap();
        assert!(page.contains("`cargo xtask peers --page --dirty --ranks 2 --transport shm`"));
        assert!(page.contains("- openmpi: Open MPI v4"));
        assert!(page.contains("- 1 more, not named"));
        assert!(page.contains("- openmpi is missing with 8 ranks over shm\n"));
        assert!(page.contains("- a peer is missing with 8 ranks over shm\n"));
        assert!(page.contains("| all_reduce | **2.00** | 0.33 |"));
        assert!(page.contains("would be 2.11 of all, 4.00 up to 1 KiB"));
        assert!(page.contains("Worse than a tie: all_reduce at 1 MiB (0.33)."));
        assert!(page.contains("300 / 100 / 90.0") && page.contains("The *limit* is"));
        let drawing = fs::read_to_string(folder.path().join("host-shm-2.svg")).unwrap();
        for text in [page, drawing] {
            assert!(!text.contains("hidden") && !text.contains("Secret"));
        }
    }
}
