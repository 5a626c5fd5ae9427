//! What was compared before, as text: a cell a line, fields between tabs.
//!
//! A full set takes days, so that it is run in parts: what a part found is kept beside the page, and
//! the next one leaves it out. A header line names the fields.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use unisono_regret::OPS;

use crate::cells::Compared;
use crate::page::FAMILIES;

const HEADER: &str =
    "family\tgraph\tranks\top\tbytes\tchosen\tchosen_us\tbest\tbest_us\tnccl_us\thccl_us\tcommit";

/// The cells of a file; none if there is no such file.
pub fn read(path: &Path) -> Result<Vec<Compared>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) {
        bail!(
            "{} is no table of cells: its first line is not the header",
            path.display()
        );
    }
    let parsed = (2..).zip(lines).map(|(number, line)| {
        cell(line).with_context(|| format!("{}, line {number}: `{line}`", path.display()))
    });
    parsed.collect()
}

/// Writes cells, in an order that does not depend on when they were compared.
pub fn write(path: &Path, cells: &[Compared]) -> Result<()> {
    let mut lines = BTreeSet::new();
    for one in cells {
        let optional = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.4}"));
        let mut line = String::new();
        let _ = write!(
            line,
            "{}\t{}\t{}\t{}\t{}\t{}\t{:.4}\t{}\t{:.4}\t{}\t{}\t{}",
            one.family,
            one.graph,
            one.ranks,
            one.op.name(),
            one.bytes,
            one.chosen,
            one.chosen_us,
            one.best,
            one.best_us,
            optional(one.nccl_us),
            optional(one.hccl_us),
            one.commit,
        );
        lines.insert(line);
    }
    let mut text = String::from(HEADER);
    for line in lines {
        text.push('\n');
        text.push_str(&line);
    }
    text.push('\n');
    // One who interrupts this finds the old file.
    let part = path.with_extension("tsv.part");
    std::fs::write(&part, text).with_context(|| format!("writing {}", part.display()))?;
    std::fs::rename(&part, path).with_context(|| format!("writing {}", path.display()))
}

fn cell(line: &str) -> Result<Compared> {
    let fields: Vec<&str> = line.split('\t').collect();
    let &[
        family,
        graph,
        ranks,
        op,
        bytes,
        chosen,
        chosen_us,
        best,
        best_us,
        nccl,
        hccl,
        commit,
    ] = fields.as_slice()
    else {
        bail!("{} fields, not 12", fields.len());
    };
    let optional = |field: &str| match field {
        "-" => Ok(None),
        number => number.parse().map(Some),
    };
    Ok(Compared {
        family: (FAMILIES.into_iter().find(|known| *known == family)).context("no such family")?,
        graph: graph.to_owned(),
        ranks: ranks.parse()?,
        op: (OPS.into_iter().find(|known| known.name() == op)).context("no such operation")?,
        bytes: bytes.parse()?,
        chosen: chosen.to_owned(),
        best: best.to_owned(),
        chosen_us: chosen_us.parse()?,
        best_us: best_us.parse()?,
        nccl_us: optional(nccl)?,
        hccl_us: optional(hccl)?,
        commit: commit.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use unisono_plan::Op;

    #[test]
    fn what_is_written_is_read_again_and_a_broken_line_is_named() {
        let one = Compared {
            family: "ring",
            graph: "ring of 4".into(),
            ranks: 4,
            op: Op::AllGather,
            bytes: 4096,
            chosen: "ring in 1".into(),
            best: "trees in 2".into(),
            chosen_us: 3.5,
            best_us: 3.25,
            nccl_us: Some(4.0),
            hccl_us: None,
            commit: "abc".into(),
        };
        let path = std::env::temp_dir().join(format!("unisono-regret-{}", std::process::id()));
        write(&path, std::slice::from_ref(&one)).unwrap();
        assert_eq!(read(&path).unwrap(), [one]);
        std::fs::write(&path, format!("{HEADER}\nring\tx\n")).unwrap();
        let error = format!("{:#}", read(&path).unwrap_err());
        std::fs::remove_file(&path).unwrap();
        assert!(
            error.contains("line 2") && error.contains("2 fields"),
            "{error}"
        );
        assert_eq!(read(&path).unwrap(), []);
    }
}
