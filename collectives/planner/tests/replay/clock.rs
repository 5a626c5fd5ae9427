//! How long the steps take, event by event, all rates anew each time.

use serde_json::Value;

use super::Step;

/// The links of a graph file.
pub struct Graph {
    ends: Vec<(Value, Value)>,
    bytes_per_second: Vec<f64>,
    latency: Vec<f64>,
}

impl Graph {
    /// From a graph file in the short format.
    pub fn new(text: &str) -> Self {
        let file: Value = serde_json::from_str(text).expect("a graph");
        let edges = file["edges"].as_array().expect("edges");
        let number = |edge: &Value, key: &str| edge[key].as_f64().unwrap_or(0.0);
        Self {
            ends: edges
                .iter()
                .map(|e| (e["src"].clone(), e["dst"].clone()))
                .collect(),
            bytes_per_second: edges.iter().map(|e| number(e, "GBps") * 1e9).collect(),
            latency: edges
                .iter()
                .map(|e| number(e, "latency_us") * 1e-6)
                .collect(),
        }
    }

    /// The place of a link that a step names.
    pub fn edge(&self, link: &Value) -> usize {
        let ends = (link[0].clone(), link[1].clone());
        let index = link.get(2).and_then(Value::as_u64).unwrap_or(0);
        let mut same = (0..self.ends.len()).filter(|&edge| self.ends[edge] == ends);
        same.nth(index as usize)
            .unwrap_or_else(|| panic!("no link {link}"))
    }

    /// The seconds until the last step has ended.
    pub fn seconds(&self, steps: &[Step], befores: &[Vec<usize>]) -> f64 {
        #[derive(Clone, Copy)]
        enum State {
            Waits,
            Delayed(f64),
            Flows(f64),
            Ended,
        }
        let mut state = vec![State::Waits; steps.len()];
        let mut waits: Vec<usize> = befores.iter().map(Vec::len).collect();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
        for (id, befores) in befores.iter().enumerate() {
            befores.iter().for_each(|&before| after[before].push(id));
        }
        let mut now = 0.0f64;
        let mut ready: Vec<usize> = (0..steps.len()).filter(|&id| waits[id] == 0).collect();
        let mut active: Vec<usize> = Vec::new();
        loop {
            // What takes no time more happens at once.
            while let Some(id) = ready.pop() {
                let latency: f64 = steps[id].path.iter().map(|&edge| self.latency[edge]).sum();
                state[id] = State::Delayed(now + latency);
                active.push(id);
            }
            let close = now * (1.0 + 1e-10) + 1e-15;
            let mut still = Vec::new();
            for id in active.drain(..) {
                if let State::Delayed(until) = state[id]
                    && until <= close
                {
                    let moves = steps[id].kind == "put";
                    state[id] = State::Flows(if moves { steps[id].bytes() as f64 } else { 0.0 });
                }
                if let State::Flows(left) = state[id]
                    && left <= 1e-6
                {
                    state[id] = State::Ended;
                    for &next in &after[id] {
                        waits[next] -= 1;
                        if waits[next] == 0 {
                            ready.push(next);
                        }
                    }
                } else {
                    still.push(id);
                }
            }
            active = still;
            if !ready.is_empty() {
                continue;
            }
            if active.is_empty() {
                break;
            }
            let flows: Vec<usize> = (active.iter().copied())
                .filter(|&id| matches!(state[id], State::Flows(_)))
                .collect();
            let rates = self.rates(steps, &flows);
            let mut next = f64::INFINITY;
            for &id in &active {
                if let State::Delayed(until) = state[id] {
                    next = next.min(until);
                }
            }
            for (&id, rate) in flows.iter().zip(&rates) {
                if let State::Flows(left) = state[id] {
                    next = next.min(now + left / rate);
                }
            }
            for (&id, rate) in flows.iter().zip(&rates) {
                if let State::Flows(left) = &mut state[id] {
                    *left -= rate * (next - now);
                    // Less than a billionth of a second's worth is rounding.
                    if *left < rate * 1e-10 * next + 1e-6 {
                        *left = 0.0;
                    }
                }
            }
            now = next;
        }
        assert!(
            state.iter().all(|state| matches!(state, State::Ended)),
            "not all steps ran"
        );
        now
    }

    /// Max-min fair rates, by filling the narrowest link again and again.
    fn rates(&self, steps: &[Step], flows: &[usize]) -> Vec<f64> {
        let mut left = self.bytes_per_second.clone();
        let mut users = vec![0u32; left.len()];
        for &id in flows {
            steps[id].path.iter().for_each(|&edge| users[edge] += 1);
        }
        let mut rates = vec![f64::INFINITY; flows.len()];
        loop {
            let share = |edge: usize| left[edge] / f64::from(users[edge]);
            let narrowest = (0..left.len())
                .filter(|&edge| users[edge] > 0)
                .min_by(|&a, &b| share(a).total_cmp(&share(b)));
            let Some(narrowest) = narrowest else {
                return rates;
            };
            let rate = share(narrowest);
            for (place, &id) in flows.iter().enumerate() {
                let path = &steps[id].path;
                if rates[place].is_infinite() && path.contains(&narrowest) {
                    rates[place] = rate;
                    for &edge in path {
                        left[edge] = (left[edge] - rate).max(0.0);
                        users[edge] -= 1;
                    }
                }
            }
        }
    }
}
