//! The simplest max-min fair simulator: all rates anew at every event, all flows one by one.

/// A flow: the resources that it uses, and its own limit.
pub struct Flow {
    /// Resources; one that comes twice is used twice.
    pub route: Vec<u32>,
    /// Its own limit in bytes a second.
    pub limit: Option<u64>,
}

fn rates(capacities: &[u64], flows: &[Flow], active: &[usize]) -> Vec<f64> {
    let mut rate = vec![0.0; flows.len()];
    let mut open: Vec<usize> = active.to_vec();
    let mut left: Vec<f64> = capacities.iter().map(|&c| c as f64).collect();
    while !open.is_empty() {
        let uses = |r: usize| -> usize {
            let of = |&f: &usize| flows[f].route.iter().filter(|&&x| x as usize == r).count();
            open.iter().map(of).sum()
        };
        let mut least = f64::INFINITY;
        for (r, left) in left.iter().enumerate() {
            if uses(r) > 0 {
                least = least.min(left / uses(r) as f64);
            }
        }
        for &f in &open {
            if let Some(limit) = flows[f].limit {
                least = least.min(limit as f64);
            }
        }
        if least == f64::INFINITY {
            open.iter().for_each(|&f| rate[f] = f64::INFINITY);
            break;
        }
        let full: Vec<bool> = (0..left.len())
            .map(|r| uses(r) > 0 && left[r] / uses(r) as f64 <= least * (1.0 + 1e-12))
            .collect();
        let (fixed, rest): (Vec<usize>, Vec<usize>) = open.iter().partition(|&&f| {
            let limited = flows[f]
                .limit
                .is_some_and(|l| l as f64 <= least * (1.0 + 1e-12));
            limited || flows[f].route.iter().any(|&r| full[r as usize])
        });
        for &f in &fixed {
            rate[f] = least;
            flows[f]
                .route
                .iter()
                .for_each(|&r| left[r as usize] = (left[r as usize] - least).max(0.0));
        }
        open = rest;
    }
    rate
}

/// When each task ends. A task waits for others, then for its delay, then moves its bytes.
pub fn simulate(capacities: &[u64], flows: &[Flow], tasks: &[(Vec<usize>, f64, f64)]) -> Vec<f64> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        Waits,
        Delayed(f64),
        Flows(f64),
        Ended(f64),
    }
    let mut state = vec![State::Waits; tasks.len()];
    let mut now = 0.0f64;
    loop {
        let mut moved = true;
        while moved {
            moved = false;
            for (index, (after, delay, bytes)) in tasks.iter().enumerate() {
                let next = match state[index] {
                    State::Waits if after.iter().all(|&a| matches!(state[a], State::Ended(_))) => {
                        State::Delayed(now + delay)
                    }
                    State::Delayed(until) if until <= now + 1e-2 => State::Flows(*bytes),
                    State::Flows(left) if left <= 1e-6 => State::Ended(now),
                    State::Flows(_)
                        if flows[index].route.is_empty() && flows[index].limit.is_none() =>
                    {
                        State::Ended(now)
                    }
                    same => same,
                };
                moved |= next != state[index];
                state[index] = next;
            }
        }
        let active: Vec<usize> = (0..tasks.len())
            .filter(|&t| matches!(state[t], State::Flows(_)))
            .collect();
        let rate = rates(capacities, flows, &active);
        let next = (0..tasks.len())
            .filter_map(|t| match state[t] {
                State::Delayed(until) => Some(until),
                State::Flows(left) => Some(now + left / rate[t] * 1e12),
                _ => None,
            })
            .fold(f64::INFINITY, f64::min);
        if next == f64::INFINITY {
            break;
        }
        for &t in &active {
            if let State::Flows(left) = &mut state[t] {
                *left -= rate[t] * (next - now) / 1e12;
                if *left < 1e-6 {
                    *left = 0.0;
                }
            }
        }
        now = next;
    }
    let end = |state: &State| match state {
        State::Ended(end) => *end,
        _ => f64::INFINITY,
    };
    state.iter().map(end).collect()
}
