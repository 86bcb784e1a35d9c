// SPDX-License-Identifier: GPL-2.0-only
//! A spinlock in virtual time.

use crate::counters::counters;
use crate::time::Ns;

/// Knows until when it is held; earlier callers spin.
#[derive(Clone, Debug, Default)]
pub struct Lock {
    free_at: Ns,
}

counters! {
    /// Acquisitions and waits of all locks.
    pub struct LockStats {
        /// Acquisitions.
        pub taken: u64,
        /// Acquisitions that had to wait.
        pub contended: u64,
        /// Total wait, nanoseconds.
        pub wait: u64,
    }
}

impl Lock {
    /// Takes the lock at `at` for `hold`. Returns when it is released again.
    pub fn take(&mut self, at: Ns, hold: Ns, stats: &mut LockStats) -> Ns {
        let begin = at.max(self.free_at);
        stats.taken += 1;
        stats.contended += u64::from(begin > at);
        stats.wait += begin - at;
        self.free_at = begin + hold;
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_callers_wait() {
        let (mut lock, mut stats) = (Lock::default(), LockStats::default());
        assert_eq!(lock.take(100, 10, &mut stats), 110);
        assert_eq!(lock.take(105, 10, &mut stats), 120);
        assert_eq!(lock.take(200, 10, &mut stats), 210);
        assert_eq!(stats, LockStats { taken: 3, contended: 1, wait: 5 });
    }
}
