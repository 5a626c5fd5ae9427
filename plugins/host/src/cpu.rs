//! Which vector instructions this CPU has.

/// A set of vector instructions that kernels are compiled for.
///
/// `Baseline` is what every CPU of the architecture has (SSE2 on x86-64, NEON on AArch64): the
/// compiler vectorises the same loops for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// What the architecture guarantees.
    Baseline,
    /// AVX2 and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// Every set that this build has kernels for, the widest last.
    pub const ALL: &'static [Self] = &[
        Self::Baseline,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
    ];

    /// Whether the CPU that runs this has the set.
    ///
    /// Under ThreadSanitizer none but the baseline counts: it sees no access wider than 16 bytes
    /// and no streaming store, so the kernels of the wide sets would race unseen.
    #[must_use]
    pub fn available(self) -> bool {
        match self {
            Self::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                !cfg!(tsan) && is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }

    /// The widest set that this CPU has.
    #[must_use]
    pub fn best() -> Self {
        let mut best = Self::Baseline;
        for &isa in Self::ALL {
            if isa.available() {
                best = isa;
            }
        }
        best
    }
}
