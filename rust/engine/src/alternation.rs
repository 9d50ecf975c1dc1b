//! Alternation of two runs that load two targets: while one sends, the other waits.
//!
//! Noise that lasts longer than a turn slows both alike, so it cancels in the ratio of two adjacent
//! turns (duet benchmarking: Bulej et al., arXiv 2001.05811).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::random::uniform;

/// State that both sides share. Turns come in pairs: each side has one, in random order.
pub(crate) struct Alternation {
    state: Mutex<State>,
    /// Number of the current turn, over both sides.
    number: AtomicU64,
    is_closed: AtomicBool,
    changed: [Notify; 2],
    /// Iterations in each turn.
    length: u32,
    seed: u64,
}

struct State {
    pair: u32,
    is_second: bool,
    active: usize,
    started: u32,
    ended: u32,
}

/// One of the two runs.
#[derive(Clone)]
pub(crate) struct Side {
    shared: Arc<Alternation>,
    index: usize,
}

impl Alternation {
    /// Creates two sides that alternate after `length` iterations.
    pub(crate) fn sides(length: u32, seed: u64) -> [Side; 2] {
        let active = first_side(seed, 0);
        let state = State { pair: 0, is_second: false, active, started: 0, ended: 0 };
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            number: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            changed: [Notify::new(), Notify::new()],
            length,
            seed,
        });
        [0, 1].map(|index| Side { shared: shared.clone(), index })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the side that comes first in a pair.
fn first_side(seed: u64, pair: u32) -> usize {
    usize::from(uniform(seed, ORDER_STREAM, pair) < 0.5)
}

/// Random stream, other than those of pauses and mixes.
const ORDER_STREAM: u64 = 0x5455_524E;

impl Side {
    /// Returns the number of this side's current turn while it may start iterations.
    pub(crate) fn current_turn(&self) -> Option<u64> {
        let state = self.shared.state();
        let is_open = state.active == self.index && state.started < self.shared.length;
        is_open.then(|| self.shared.number.load(Ordering::Relaxed))
    }

    /// Starts an iteration; false if it is not this side's turn.
    pub(crate) fn try_begin(&self) -> bool {
        let mut state = self.shared.state();
        let is_open = state.active == self.index && state.started < self.shared.length;
        state.started += u32::from(is_open);
        is_open
    }

    /// Counts an iteration that has ended. The last one of a turn ends the turn.
    pub(crate) fn iteration_ended(&self) {
        let shared = &*self.shared;
        let mut state = shared.state();
        state.ended += 1;
        if state.ended < shared.length {
            return;
        }
        if state.is_second {
            state.pair += 1;
            state.active = first_side(shared.seed, state.pair);
        } else {
            state.active = 1 - state.active;
        }
        state.is_second = !state.is_second;
        (state.started, state.ended) = (0, 0);
        shared.number.fetch_add(1, Ordering::Relaxed);
        shared.changed[state.active].notify_one();
    }

    /// Waits until it may be this side's turn.
    pub(crate) async fn changed(&self) {
        self.shared.changed[self.index].notified().await;
    }

    /// Ends both sides.
    pub(crate) fn close(&self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        self.shared.changed.iter().for_each(Notify::notify_one);
    }

    /// Whether one of the sides has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_turn_of_each_side_in_an_order_that_varies() {
        let sides = Alternation::sides(3, 7);
        let mut order = Vec::new();
        for _ in 0..200 {
            let side = usize::from(sides[1].current_turn().is_some());
            assert!(sides[1 - side].current_turn().is_none() && !sides[1 - side].try_begin());
            for _ in 0..3 {
                assert!(sides[side].try_begin());
            }
            assert!(!sides[side].try_begin());
            for _ in 0..3 {
                sides[side].iteration_ended();
            }
            order.push(side);
        }
        let firsts: usize = order.chunks(2).map(|pair| pair[0]).sum();
        assert!(order.chunks(2).all(|pair| pair[0] + pair[1] == 1));
        assert!((30..70).contains(&firsts), "{firsts} of 100 pairs begin with the second side");
    }

    #[test]
    fn closing_one_side_ends_the_other() {
        let [one, other] = Alternation::sides(1, 0);
        assert!(!other.is_closed());
        one.close();
        assert!(other.is_closed());
    }
}
