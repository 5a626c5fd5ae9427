//! Exact fractions: bandwidths that are shares of sums of capacities.

/// An exact fraction. Capacities are below 2^50 and networks have less than 2^32 edges and ranks,
/// so what bounds divide fits with room to spare.
pub type Rational = num_rational::Ratio<i128>;

/// A floating-point number that differs by rounding only, for people and for drawings; nothing decides on it.
pub fn to_f64(value: Rational) -> f64 {
    *value.numer() as f64 / *value.denom() as f64
}
