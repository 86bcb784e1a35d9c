// SPDX-License-Identifier: GPL-2.0-only
//! Mean, median, percentiles.

/// The mean; None of an empty sample.
pub fn mean(sample: &[f64]) -> Option<f64> {
    (!sample.is_empty()).then(|| sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The median; None of an empty sample. Of an even number of values it is the mean of the
/// middle two.
pub fn median(sample: &[f64]) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Some(sorted[middle]),
        _ => mean(sorted.get(middle.checked_sub(1)?..=middle)?),
    }
}

/// The smallest value that `share` of the sample, from 0 to 1, do not exceed; None of an
/// empty sample.
pub fn percentile(sample: &[f64], share: f64) -> Option<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.clamp(1, sorted.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_percentiles_are_of_the_sorted_sample() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!((mean(&[1.0, 2.0]), mean(&[])), (Some(1.5), None));
        assert_eq!((median(&[]), percentile(&[], 0.5)), (None, None));
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (share, value) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (0.991, 100.0), (1.0, 100.0)]
        {
            assert_eq!(percentile(&hundred, share), Some(value), "{share}");
        }
    }
}
