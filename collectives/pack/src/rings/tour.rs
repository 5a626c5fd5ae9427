//! The cheapest tour through all ranks for given costs of steps.

/// Up to so many ranks the cheapest tour is found for sure.
const EXACT: usize = 10;

/// A cheap tour, by places; it begins with 0.
pub(super) fn cheapest(n: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    let costs: Vec<f64> = (0..n * n).map(|at| cost(at / n, at % n)).collect();
    if n <= EXACT {
        exact(n, &costs)
    } else {
        let starts = (0..n.min(8)).map(|start| local(n, &costs, start));
        let length = |tour: &Vec<usize>| length(n, &costs, tour);
        let best = starts.min_by(|one, other| length(one).total_cmp(&length(other)));
        best.unwrap_or_default()
    }
}

pub(super) fn length(n: usize, costs: &[f64], tour: &[usize]) -> f64 {
    let next = tour.iter().cycle().skip(1);
    tour.iter()
        .zip(next)
        .map(|(&from, &to)| costs[from * n + to])
        .sum()
}

/// Held and Karp: the cheapest way through each set of ranks to each of its members.
fn exact(n: usize, costs: &[f64]) -> Vec<usize> {
    if n < 3 {
        return (0..n).collect();
    }
    let m = n - 1;
    let mut best = vec![f64::INFINITY; (1 << m) * m];
    let mut before = vec![0u8; (1 << m) * m];
    for last in 0..m {
        best[(1 << last) * m + last] = costs[last + 1];
    }
    for set in 1..1usize << m {
        for last in (0..m).filter(|last| set & (1 << last) != 0) {
            let here = best[set * m + last];
            if here.is_infinite() {
                continue;
            }
            for next in (0..m).filter(|next| set & (1 << next) == 0) {
                let to = (set | 1 << next) * m + next;
                let length = here + costs[(last + 1) * n + next + 1];
                if length < best[to] {
                    best[to] = length;
                    before[to] = last as u8;
                }
            }
        }
    }
    let mut set = (1 << m) - 1;
    let closed = |last: usize| best[set * m + last] + costs[(last + 1) * n];
    let mut last = (0..m)
        .min_by(|&a, &b| closed(a).total_cmp(&closed(b)))
        .unwrap_or(0);
    let mut tour = Vec::with_capacity(n);
    while set != 0 {
        tour.push(last + 1);
        let previous = before[set * m + last] as usize;
        set &= !(1 << last);
        last = previous;
    }
    tour.push(0);
    tour.reverse();
    tour
}

/// The nearest neighbour first, then parts turned around and moved while that helps.
fn local(n: usize, costs: &[f64], start: usize) -> Vec<usize> {
    let mut tour = vec![start];
    let mut left: Vec<usize> = (0..n).filter(|&rank| rank != start).collect();
    while !left.is_empty() {
        let at = tour[tour.len() - 1] * n;
        let nearest =
            (0..left.len()).min_by(|&a, &b| costs[at + left[a]].total_cmp(&costs[at + left[b]]));
        tour.push(left.swap_remove(nearest.unwrap_or(0)));
    }
    let mut best = length(n, costs, &tour);
    /// More passes than this are not needed on so few ranks.
    const PASSES: usize = 50;
    for _ in 0..PASSES {
        let before = best;
        for from in 0..n {
            for to in from + 1..n {
                tour[from..=to].reverse();
                let turned = length(n, costs, &tour);
                if turned < best - 1e-12 * best.abs() {
                    best = turned;
                } else {
                    tour[from..=to].reverse();
                }
            }
        }
        for from in 0..n {
            for to in 0..n {
                let rank = tour.remove(from);
                tour.insert(to, rank);
                let moved = length(n, costs, &tour);
                if moved < best - 1e-12 * best.abs() {
                    best = moved;
                } else {
                    let rank = tour.remove(to);
                    tour.insert(from, rank);
                }
            }
        }
        if best >= before {
            break;
        }
    }
    tour
}
