//! Two runs that load two targets in turns: one of them sends, the other waits.
//!
//! Whatever slows the machine for longer than a turn slows both alike, so that it cancels in the
//! ratio of two turns that follow each other (duet benchmarking: Bulej et al., arXiv 2001.05811).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::random::draw;

/// Whose turn it is. Turns come in pairs: each side has one, in random order.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Counts the turns of both sides.
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
    side: usize,
    begun: u32,
    ended: u32,
}

/// One side's place in the order of turns.
#[derive(Clone)]
pub(crate) struct Seat {
    turns: Arc<Turns>,
    side: usize,
}

impl Turns {
    /// The seats of two sides that take turns of `length` iterations.
    pub(crate) fn seats(length: u32, seed: u64) -> [Seat; 2] {
        let side = first(seed, 0);
        let state = State { pair: 0, is_second: false, side, begun: 0, ended: 0 };
        let turns = Arc::new(Self {
            state: Mutex::new(state),
            number: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            changed: [Notify::new(), Notify::new()],
            length,
            seed,
        });
        [0, 1].map(|side| Seat { turns: turns.clone(), side })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The side that comes first in a pair.
fn first(seed: u64, pair: u32) -> usize {
    usize::from(draw(seed, ORDER, pair) < 0.5)
}

/// Keeps these draws apart from those of pauses and mixes.
const ORDER: u64 = 0x5455_524E;

impl Seat {
    /// The number of this side's present turn, while iterations of it have not begun.
    pub(crate) fn turn(&self) -> Option<u64> {
        let state = self.turns.state();
        let is_open = state.side == self.side && state.begun < self.turns.length;
        is_open.then(|| self.turns.number.load(Ordering::Relaxed))
    }

    /// Takes one iteration of the present turn; false where it is not this side's.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.turns.state();
        let is_open = state.side == self.side && state.begun < self.turns.length;
        state.begun += u32::from(is_open);
        is_open
    }

    /// An iteration has ended. The last one of a turn passes it on.
    pub(crate) fn ended(&self) {
        let turns = &*self.turns;
        let mut state = turns.state();
        state.ended += 1;
        if state.ended < turns.length {
            return;
        }
        if state.is_second {
            state.pair += 1;
            state.side = first(turns.seed, state.pair);
        } else {
            state.side = 1 - state.side;
        }
        state.is_second = !state.is_second;
        (state.begun, state.ended) = (0, 0);
        turns.number.fetch_add(1, Ordering::Relaxed);
        turns.changed[state.side].notify_one();
    }

    /// Returns when this side's turn may have come.
    pub(crate) async fn changed(&self) {
        self.turns.changed[self.side].notified().await;
    }

    /// Leaves: the other side ends, too.
    pub(crate) fn close(&self) {
        self.turns.is_closed.store(true, Ordering::SeqCst);
        self.turns.changed.iter().for_each(Notify::notify_one);
    }

    /// A side has left.
    pub(crate) fn is_closed(&self) -> bool {
        self.turns.is_closed.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_a_turn_of_each_side_in_an_order_that_varies() {
        let seats = Turns::seats(3, 7);
        let mut order = Vec::new();
        for _ in 0..200 {
            let side = usize::from(seats[1].turn().is_some());
            assert!(seats[1 - side].turn().is_none() && !seats[1 - side].begin());
            for _ in 0..3 {
                assert!(seats[side].begin());
            }
            assert!(!seats[side].begin());
            for _ in 0..3 {
                seats[side].ended();
            }
            order.push(side);
        }
        let firsts: usize = order.chunks(2).map(|pair| pair[0]).sum();
        assert!(order.chunks(2).all(|pair| pair[0] + pair[1] == 1));
        assert!((30..70).contains(&firsts), "{firsts} of 100 pairs begin with the second side");
    }

    #[test]
    fn a_side_that_leaves_ends_the_other() {
        let [one, other] = Turns::seats(1, 0);
        assert!(!other.is_closed());
        one.close();
        assert!(other.is_closed());
    }
}
