//! What a call may cost: instructions of the thread that makes it, from its entry to its return.
//!
//! The fixed cost of a call is what small messages take. A clock cannot tell some nanoseconds more of it from
//! a machine's noise; instructions can be counted. `benches/calls` counts them under valgrind and fails where a
//! call takes more than its budget; `cargo xtask instructions` runs it.
//!
//! A budget is what was counted and 10 %, which is what another compiler or C library may change. To
//! raise one is to make a call slower, and wants a reason in the commit; where a call became cheaper, its
//! budget follows.

/// What each call that is counted may cost.
pub const BUDGETS: [Budget; 33] = [
    Budget::new("send", 4, 540),
    Budget::new("send", 1024, 850),
    Budget::new("recv", 4, 580),
    Budget::new("recv", 1024, 830),
    Budget::new("broadcast_root", 4, 640),
    Budget::new("broadcast_root", 1024, 850),
    Budget::new("broadcast_leaf", 4, 580),
    Budget::new("broadcast_leaf", 1024, 750),
    Budget::new("reduce_root", 4, 800),
    Budget::new("reduce_root", 1024, 970),
    Budget::new("reduce_leaf", 4, 610),
    Budget::new("reduce_leaf", 1024, 830),
    Budget::new("gather_root", 4, 770),
    Budget::new("gather_leaf", 4, 590),
    Budget::new("scatter_root", 4, 740),
    Budget::new("scatter_leaf", 4, 620),
    Budget::new("all_reduce", 4, 920),
    Budget::new("all_reduce", 1024, 1_300),
    Budget::new("all_gather", 4, 880),
    Budget::new("all_gather", 1024, 1_400),
    Budget::new("reduce_scatter", 4, 980),
    Budget::new("reduce_scatter", 1024, 1_320),
    Budget::new("barrier", 0, 700),
    Budget::new("send_tcp", 64, 3_140),
    Budget::new("recv_tcp", 64, 2_410),
    Budget::new("all_reduce_tcp", 64, 5_470),
    Budget::new("barrier_tcp", 0, 4_840),
    Budget::new("all_reduce_of_four", 4, 1_860),
    Budget::new("all_gather_of_four", 4, 1_570),
    Budget::new("reduce_scatter_of_four", 4, 1_930),
    Budget::new("all_to_all_of_four", 4, 1_830),
    Budget::new("barrier_of_four", 0, 1_350),
    Budget::new("all_reduce_alone", 4, 490),
];

/// What one call may cost.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The call, and which of its ranks makes it where they do different things.
    pub call: &'static str,
    /// Bytes of a block: what one rank contributes, or gets from another.
    pub bytes: usize,
    /// The most instructions.
    pub instructions: u64,
}

impl Budget {
    /// The name of the benchmark.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}_{}", self.call, self.bytes)
    }

    const fn new(call: &'static str, bytes: usize, instructions: u64) -> Self {
        Self {
            call,
            bytes,
            instructions,
        }
    }
}

/// The budget of a call of so many bytes, if it has one.
#[must_use]
pub fn budget(call: &str, bytes: usize) -> Option<Budget> {
    BUDGETS
        .into_iter()
        .find(|budget| budget.call == call && budget.bytes == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_some_bytes_has_one_budget() {
        for one in BUDGETS {
            let found = budget(one.call, one.bytes).map(|found| found.instructions);
            assert_eq!(found, Some(one.instructions), "{} has two", one.id());
        }
    }
}
