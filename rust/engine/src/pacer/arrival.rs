//! Arrivals, and their partition among threads.

use crate::plan::Placement;

/// Iteration that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub iteration: u32,
    pub due_ns: i64,
}

/// One of `count` equal partitions of a load, such as that of a thread.
///
/// Partition i has the iterations i, i + count, ... of the schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partition {
    pub index: u16,
    pub count: u16,
}

impl Partition {
    /// Returns the partition of a thread: part p of k has the threads p, p + k, ... of the load.
    pub(crate) fn of_thread(thread: u16, placement: &Placement) -> Self {
        let Placement { threads, part, parts, .. } = *placement;
        Self { index: thread * parts + part, count: threads * parts }
    }

    /// Returns this partition's share of a number.
    pub(crate) fn share_of(self, total: u32) -> u32 {
        let (count, index) = (u32::from(self.count), u32::from(self.index));
        total / count + u32::from(index < total % count)
    }

    /// Returns this part's share of the iterations of a closed loop. Iteration i is that of worker
    /// i mod `workers`, so parts with unequal numbers of workers end together.
    pub(crate) fn closed_share_of(self, iterations: u32, workers: u32) -> u64 {
        let rounds = u64::from(iterations / workers);
        let rest = self.share_of(iterations % workers);
        rounds * u64::from(self.share_of(workers)) + u64::from(rest)
    }

    /// Returns the number of this part's nth iteration of a closed loop, from 0.
    pub(crate) fn closed_number(self, nth: u64, workers: u32) -> u64 {
        let own = u64::from(self.share_of(workers));
        let worker = nth % own * u64::from(self.count) + u64::from(self.index);
        nth / own * u64::from(workers) + worker
    }
}
