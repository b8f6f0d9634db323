//! The benchmark's words for how bad a hotspot is.

/// How much more a hotspot's link is offered than it takes (IBM/802 benchmark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Less than 2 times.
    Mild,
    /// 2 to 10 times.
    Moderate,
    /// More than 10 times.
    Severe,
}

/// How many of the sources send hot traffic (IBM/802 benchmark).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degree {
    /// Few: the benchmark says below 10%, and calls 4 of 32 small; here below 20%.
    Small,
    /// The benchmark says 20 to 60%; here 20 to 90%.
    Medium,
    /// More than 90%.
    Large,
}

impl Severity {
    /// The level of a ratio of offered to accepted traffic; `None` where all is accepted, which is no hotspot.
    pub fn of(ratio: f64) -> Option<Self> {
        match ratio {
            ..=1.0 => None,
            ..2.0 => Some(Severity::Mild),
            ..=10.0 => Some(Severity::Moderate),
            _ => Some(Severity::Severe),
        }
    }
}

impl Degree {
    /// The level of a share of sources, 0 to 1.
    pub fn of(share: f64) -> Self {
        match share {
            ..0.2 => Degree::Small,
            ..=0.9 => Degree::Medium,
            _ => Degree::Large,
        }
    }
}
