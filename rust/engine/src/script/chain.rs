//! Values that an iteration takes and gives back renewed, such as refresh tokens that can be used
//! once.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Queue of free values, oldest first.
pub(super) struct Chain {
    free: Mutex<VecDeque<Vec<u8>>>,
}

impl Chain {
    /// Creates a chain with this part's share of the values: each engine of a load uses others.
    pub(super) fn new(values: &[String], (part, parts): (usize, usize)) -> Self {
        let own = values.iter().skip(part).step_by(parts.max(1));
        Self { free: Mutex::new(own.map(|value| value.clone().into_bytes()).collect()) }
    }

    pub(super) fn take(&self) -> Option<Vec<u8>> {
        self.lock().pop_front()
    }

    pub(super) fn give_back(&self, value: Vec<u8>) {
        self.lock().push_back(value);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
