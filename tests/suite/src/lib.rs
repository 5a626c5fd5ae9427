//! What the multi-process tests have in common: ranks as threads and as processes, seeds, counts,
//! data with known results, and skips that are counted.

mod ahead;
mod count;
mod everything;
pub mod footprint;
mod header;
mod measure;
mod port;
mod processes;
mod random;
mod rng;
mod skip;
mod threads;
mod typed;
mod values;
mod watchdog;

pub use ahead::{WITHOUT, do_without, few_broadcasts, over_all_links};
pub use count::{Count, soaking};
pub use everything::{everything, everything_there_is};
pub use footprint::{Footprint, peak_bytes};
pub use header::header_functions;
pub use measure::{CpuShare, Held, cpu_time, descriptors, preemptions, quantiles, resident_bytes};
pub use port::free_address;
pub use processes::{Exit, Job, Rank, Running};
pub use random::random_collectives;
pub use rng::Rng;
pub use skip::skip;
pub use threads::{options, threads};
pub use typed::{Collective, Try};
pub use values::{Fold, Value, input, reduced};
pub use watchdog::{Watchdog, watchdog};
