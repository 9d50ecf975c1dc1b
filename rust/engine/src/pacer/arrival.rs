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
}
