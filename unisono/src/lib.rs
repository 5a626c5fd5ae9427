//! unisono: collective communication between accelerators of several vendors in one job.

pub use unisono_bootstrap as bootstrap;
pub use unisono_cluster as cluster;
pub use unisono_collectives::*;
pub use unisono_graph as graph;
pub use unisono_hal as hal;
pub use unisono_plan as plan;
