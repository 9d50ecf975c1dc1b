//! What was measured since somebody last looked, for a watch that judges iterations.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::SECOND_NS;
use crate::samples::Samples;

/// How often a thread shows what it recorded; a watch looks as often.
const SHOW_NS: i64 = SECOND_NS / 10;

/// Rows, and which iterations have ended since.
#[derive(Debug, Default)]
pub struct Fresh {
    /// In the order of completion of each thread.
    pub rows: Samples,
    /// In the order in which each thread saw them end; their rows have all been shown.
    pub ended: Vec<u32>,
}

/// Where the threads show what they recorded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Window(Arc<Mutex<Fresh>>);

impl Window {
    /// Takes what was shown since the last look.
    pub(crate) fn take(&self) -> Fresh {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thread's side of the window. The lock is taken ten times a second, not for each request.
pub(crate) struct Pane {
    window: Window,
    ended: Vec<u32>,
    shown_rows: usize,
    show_at_ns: i64,
}

impl Pane {
    pub(crate) fn of(window: Window) -> Self {
        Self { window, ended: Vec::new(), shown_rows: 0, show_at_ns: SHOW_NS }
    }

    pub(crate) fn ended(&mut self, iteration: u32) {
        self.ended.push(iteration);
    }

    pub(crate) fn look(&mut self, rows: &Samples, now_ns: i64) {
        if now_ns >= self.show_at_ns {
            self.show_at_ns = now_ns + SHOW_NS;
            self.show(rows);
        }
    }

    /// Shows what was not shown yet.
    pub(crate) fn show(&mut self, rows: &Samples) {
        let mut fresh = self.window.0.lock().unwrap_or_else(PoisonError::into_inner);
        fresh.rows.extend_from(rows, self.shown_rows);
        fresh.ended.append(&mut self.ended);
        self.shown_rows = rows.len();
    }

    /// The thread begins an empty table.
    pub(crate) fn turn_over(&mut self, rows: &Samples) {
        self.show(rows);
        self.shown_rows = 0;
    }
}
