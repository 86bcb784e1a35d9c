// SPDX-License-Identifier: GPL-2.0-only
//! The CPU time that other programs took during a measurement: an emulated CPU is only
//! as fast as the share of a real one that it gets.

use std::fs;

/// Shares up to this cause no warning.
const NEGLIGIBLE: f64 = 0.05;

/// CPU time in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    total: u64,
    busy: u64,
    /// CPU time of children that have ended, and of their children.
    own: u64,
}

impl Load {
    pub fn now() -> Option<Load> {
        let all = fs::read_to_string("/proc/stat").ok()?;
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        parse(&all, &own)
    }

    /// The share of the machine, 0 to 1, that other programs took since `before`.
    pub fn others_since(&self, before: &Load) -> f64 {
        let busy = self.busy.saturating_sub(before.busy) as f64;
        let own = self.own.saturating_sub(before.own) as f64;
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        ((busy - own) / total).clamp(0.0, 1.0)
    }
}

/// Parses /proc/stat and the process's own stat file.
fn parse(all: &str, own: &str) -> Option<Load> {
    let line = all.lines().find_map(|l| l.strip_prefix("cpu "))?;
    // user, nice, system, idle, iowait, irq, softirq, steal. The guest time that follows
    // is part of user.
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|n| n.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let total: u64 = ticks.iter().sum();
    // The program's name, in parentheses, may contain anything.
    let mut fields = own.rsplit_once(") ")?.1.split_whitespace();
    let children: u64 = fields.nth(13)?.parse().ok()?;
    let children_system: u64 = fields.next()?.parse().ok()?;
    Some(Load { total, busy: total - idle, own: children + children_system })
}

/// Prints results, the measurements that failed, and a warning on a busy machine.
pub fn show(results: &str, problems: &[String], others: Option<f64>) {
    println!("\n{results}");
    for problem in problems {
        println!("Not measured: {problem}");
    }
    if let Some(warning) = warning(others) {
        println!("{warning}");
    }
}

/// Warns if other programs took more than a negligible share.
fn warning(others: Option<f64>) -> Option<String> {
    let share = others.filter(|&s| s > NEGLIGIBLE)?;
    Some(format!(
        "Other programs took {:.0} % of this machine's CPU time meanwhile; idle, it would measure better.",
        100.0 * share
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 30 20 15 16";

    #[test]
    fn own_children_do_not_count_as_others() {
        let before = parse("cpu  100 0 0 900 0 0 0 0 0 0\n", STAT).unwrap();
        assert_eq!(before, Load { total: 1000, busy: 100, own: 50 });
        let after = Load { total: 1200, busy: 200, own: 100 };
        assert_eq!(after.others_since(&before), 0.25);
        assert_eq!(before.others_since(&before), 0.0);
    }

    #[test]
    fn small_shares_cause_no_warning() {
        assert!(warning(None).is_none());
        assert!(warning(Some(0.01)).is_none());
        assert!(warning(Some(0.25)).unwrap().contains("25 %"));
    }
}
