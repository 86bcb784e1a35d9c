// SPDX-License-Identifier: GPL-2.0-only
//! Virtual time.
//!
//! Nanoseconds since the start of a run, as an integer: additions are exact,
//! so that the order of events does not depend on a machine's arithmetic. The
//! range, 584 years, is not reached.

/// A point in virtual time, or a span of it, in nanoseconds.
pub type Ns = u64;

/// A microsecond.
pub const US: Ns = 1_000;
/// A millisecond.
pub const MS: Ns = 1_000_000;
/// A second.
pub const SEC: Ns = 1_000_000_000;

/// Bytes of a page, which is also a block of every device.
pub const BLOCK: u64 = 4096;

/// Microseconds as nanoseconds, rounded; negative ones and NaN become 0.
///
/// For parameters at load: nothing that is ordered by time is computed in
/// floating point.
pub fn from_us(us: f64) -> Ns {
    (us * US as f64).round() as Ns
}

/// Nanoseconds as microseconds, for reports.
pub fn to_us(ns: Ns) -> f64 {
    ns as f64 / US as f64
}

/// Nanoseconds as seconds, for reports.
pub fn to_secs(ns: Ns) -> f64 {
    ns as f64 / SEC as f64
}

/// How long `bytes` take at a rate of `per_second` bytes a second, rounded up.
///
/// ```
/// # use znsage_sim::time::{transfer, MS};
/// assert_eq!(transfer(1_205_000, 1_205_000_000), MS);
/// ```
pub fn transfer(bytes: u64, per_second: u64) -> Ns {
    (bytes as u128 * SEC as u128).div_ceil(per_second as u128) as Ns
}
