//! Reductions: `dst[i] = a[i] op b[i]`, at the rate of memory.
//!
//! [`Kernel::new`] picks the loops for a type, a reduction and this CPU; [`Kernel::run`] runs them
//! on addresses. Results do not depend on the instruction set: floats are rounded to nearest even
//! once (`f16`, `bf16` and `fp8` are computed in `f32`), `min` and `max` give NaN if either operand
//! is NaN and order -0 before +0, integers wrap.

mod element;
#[cfg(target_arch = "x86_64")]
mod half_x86;
mod kernel;
mod op;
#[cfg(test)]
mod oracle;
mod run;
mod small_float;
mod table;
#[cfg(test)]
mod tests;
mod types;

pub use run::Kernel;
pub use types::{Dtype, Reduction};
