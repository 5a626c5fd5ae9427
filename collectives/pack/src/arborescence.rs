//! The cheapest tree for given prices of edges.

/// The cheapest spanning out-tree of a root: for each vertex its parent, for the root itself.
/// `cost(from, to)` is infinite where there is no edge. Chu and Liu, Edmonds: each vertex takes its
/// cheapest entry, and a circle is shrunk to one vertex until there is none.
///
/// `None` if some vertex cannot be reached.
pub(crate) fn cheapest(
    n: usize,
    root: usize,
    cost: impl Fn(usize, usize) -> f64,
) -> Option<Vec<usize>> {
    let matrix: Vec<f64> = (0..n * n).map(|at| cost(at / n, at % n)).collect();
    let parents = solve(n, root, &matrix)?;
    Some(parents)
}

fn solve(n: usize, root: usize, cost: &[f64]) -> Option<Vec<usize>> {
    let mut parents = vec![root; n];
    for to in (0..n).filter(|&to| to != root) {
        let entries = (0..n).filter(|&from| from != to);
        let from = entries.min_by(|&a, &b| cost[a * n + to].total_cmp(&cost[b * n + to]))?;
        if cost[from * n + to].is_infinite() {
            return None;
        }
        parents[to] = from;
    }
    let Some(circle) = circle(&parents, root) else {
        return Some(parents);
    };
    // Shrink the circle to one vertex, the last of the smaller problem.
    let mut inside = vec![false; n];
    for &vertex in &circle {
        inside[vertex] = true;
    }
    let outside: Vec<usize> = (0..n).filter(|&vertex| !inside[vertex]).collect();
    let small = outside.len() + 1;
    let hub = outside.len();
    let mut smaller = vec![f64::INFINITY; small * small];
    let mut entry = vec![usize::MAX; small];
    let mut exit = vec![usize::MAX; small];
    for (place, &vertex) in outside.iter().enumerate() {
        for (other, &to) in outside.iter().enumerate() {
            smaller[place * small + other] = cost[vertex * n + to];
        }
        for &member in &circle {
            let saved = cost[parents[member] * n + member];
            let into = cost[vertex * n + member] - saved;
            if into < smaller[place * small + hub] {
                smaller[place * small + hub] = into;
                entry[place] = member;
            }
            let out = cost[member * n + vertex];
            if out < smaller[hub * small + place] {
                smaller[hub * small + place] = out;
                exit[place] = member;
            }
        }
    }
    let small_root = outside.iter().position(|&vertex| vertex == root)?;
    let found = solve(small, small_root, &smaller)?;
    for (place, &vertex) in outside.iter().enumerate() {
        if vertex != root {
            parents[vertex] = match found[place] {
                from if from == hub => exit[place],
                from => outside[from],
            };
        }
    }
    let from = found[hub];
    parents[entry[from]] = outside[from];
    Some(parents)
}

/// A circle of parents, if there is one.
fn circle(parents: &[usize], root: usize) -> Option<Vec<usize>> {
    let mut seen = vec![usize::MAX; parents.len()];
    seen[root] = root;
    for start in 0..parents.len() {
        let mut at = start;
        while seen[at] == usize::MAX {
            seen[at] = start;
            at = parents[at];
        }
        if seen[at] == start && at != root {
            let mut circle = vec![at];
            let mut next = parents[at];
            while next != at {
                circle.push(next);
                next = parents[next];
            }
            return Some(circle);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The cheapest by trying all.
    fn brute(n: usize, root: usize, cost: &[f64]) -> f64 {
        let mut best = f64::INFINITY;
        for code in 0..n.pow(n as u32) {
            let parents: Vec<usize> = (0..n).map(|v| code / n.pow(v as u32) % n).collect();
            let ok = parents[root] == root
                && (0..n).all(|v| v == root || parents[v] != v)
                && circle(&parents, root).is_none();
            if ok {
                best = best.min(total(&parents, root, cost));
            }
        }
        best
    }

    fn total(parents: &[usize], root: usize, cost: &[f64]) -> f64 {
        let n = parents.len();
        let edges = (0..n).filter(|&to| to != root);
        edges.map(|to| cost[parents[to] * n + to]).sum()
    }

    proptest! {
        #[test]
        fn no_tree_is_cheaper(costs in prop::collection::vec(0u8..20, 25), root in 0usize..5) {
            let costs: Vec<f64> = costs
                .into_iter()
                .map(|cost| if cost > 15 { f64::INFINITY } else { f64::from(cost) })
                .collect();
            let best = brute(5, root, &costs);
            match cheapest(5, root, |from, to| costs[from * 5 + to]) {
                Some(parents) => {
                    prop_assert!(circle(&parents, root).is_none());
                    prop_assert_eq!(total(&parents, root, &costs), best);
                }
                None => prop_assert!(best.is_infinite()),
            }
        }
    }
}
