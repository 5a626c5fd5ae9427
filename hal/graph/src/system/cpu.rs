//! NUMA nodes, sockets and cores.

use std::collections::BTreeSet;
use std::path::Path;

use super::{NumaReport, memory_of, names, number, text};

/// More hardware threads than this in one list is taken for rubbish.
const MAX_CPUS: u32 = 1 << 16;

pub(super) fn numa(root: &Path, memory_bytes: u64) -> Vec<NumaReport> {
    let cpus = root.join("sys/devices/system/cpu");
    let nodes = root.join("sys/devices/system/node");
    let mut found: Vec<NumaReport> = names(&nodes)
        .iter()
        .filter_map(|name| {
            let index = name.strip_prefix("node")?.parse().ok()?;
            let folder = nodes.join(name);
            let list = list(&text(&folder.join("cpulist"))?)?;
            Some(report(
                &cpus,
                index,
                &list,
                memory_of(&folder.join("meminfo")),
            ))
        })
        .collect();
    found.sort_by_key(|numa| numa.index);
    if found.is_empty()
        && let Some(list) = text(&cpus.join("online")).as_deref().and_then(list)
    {
        found.push(report(&cpus, 0, &list, memory_bytes));
    }
    found
}

fn report(folder: &Path, index: u32, cpus: &[u32], memory_bytes: u64) -> NumaReport {
    let mut cores = BTreeSet::new();
    let mut socket = None;
    for cpu in cpus {
        let topology = folder.join(format!("cpu{cpu}/topology"));
        let package: Option<u32> = number(&topology.join("physical_package_id"));
        let die: Option<u32> = number(&topology.join("die_id"));
        let core: Option<u32> = number(&topology.join("core_id"));
        socket = socket.or(package);
        // A thread of which nothing is known counts as a core of its own.
        cores.insert((
            package,
            die,
            core,
            if core.is_none() { Some(*cpu) } else { None },
        ));
    }
    let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    NumaReport {
        index,
        socket,
        cores: count(cores.len()),
        threads: count(cpus.len()),
        memory_bytes,
    }
}

/// A list as the kernel writes it: `0-3,8,10-11`. Empty for a NUMA node of memory alone.
fn list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn lists_as_the_kernel_writes_them() {
        assert_eq!(list("0-3,8,10-11"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("3-1"), None);
        assert_eq!(list("0-4294967295"), None);
        assert_eq!(list("a"), None);
    }
}
