//! Where one engine thread keeps what it measured: in memory, or handed on in chunks.

use crate::clock::SECOND_NS;
use crate::fresh::{Pane, Window};
use crate::samples::{Sample, Samples};
use crate::table::Spill;

/// Rows that a thread hands on at a time.
const CHUNK_ROWS: usize = 1 << 15;
/// Age at which a chunk is handed on although it is not full.
const HAND_OVER_NS: i64 = 2 * SECOND_NS;

/// One thread's samples.
pub(crate) struct Recorder {
    rows: Samples,
    /// Which part of the load this engine sends.
    generator: u16,
    spill: Option<Spill>,
    hand_over_rows: usize,
    hand_over_at_ns: i64,
    pane: Option<Pane>,
}

impl Recorder {
    /// Keeps every row; memory for `expected_rows` is set aside.
    pub(crate) fn keeping(expected_rows: usize, generator: u16) -> Self {
        Self {
            rows: Samples::with_capacity(expected_rows),
            generator,
            spill: None,
            hand_over_rows: usize::MAX,
            hand_over_at_ns: i64::MAX,
            pane: None,
        }
    }

    /// Hands rows on as they come.
    pub(crate) fn spilling(spill: Spill, window: Option<Window>, generator: u16) -> Self {
        Self {
            rows: Samples::with_capacity(CHUNK_ROWS),
            generator,
            spill: Some(spill),
            hand_over_rows: CHUNK_ROWS,
            hand_over_at_ns: HAND_OVER_NS,
            pane: window.map(Pane::of),
        }
    }

    /// Shows rows and keeps none.
    pub(crate) fn showing(window: Window, generator: u16) -> Self {
        Self {
            rows: Samples::with_capacity(CHUNK_ROWS),
            generator,
            spill: None,
            hand_over_rows: CHUNK_ROWS,
            hand_over_at_ns: i64::MAX,
            pane: Some(Pane::of(window)),
        }
    }

    pub(crate) fn push(&mut self, sample: &Sample) {
        self.rows.push(sample, self.generator);
        self.look(sample.done_ns);
    }

    /// Every row of the iteration has been pushed.
    pub(crate) fn ended(&mut self, iteration: u32) {
        if let Some(pane) = &mut self.pane {
            pane.ended(iteration);
        }
    }

    /// Hands on what has become old.
    pub(crate) fn look(&mut self, now_ns: i64) {
        if let Some(pane) = &mut self.pane {
            pane.look(&self.rows, now_ns);
        }
        if self.rows.len() >= self.hand_over_rows || now_ns >= self.hand_over_at_ns {
            self.hand_over_at_ns = now_ns + HAND_OVER_NS;
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if let Some(pane) = &mut self.pane {
            pane.turn_over(&self.rows);
            if self.spill.is_none() {
                self.rows.clear();
            }
        }
        let Some(spill) = &self.spill else { return };
        if !self.rows.is_empty() {
            let rows = std::mem::replace(&mut self.rows, Samples::with_capacity(CHUNK_ROWS));
            // Nobody takes them once the file cannot be written; the run ends for that reason.
            let _ = spill.send(rows);
        }
    }

    /// Returns the rows that were kept: none where they were handed on or shown.
    pub(crate) fn finish(mut self) -> Samples {
        self.hand_over();
        self.rows
    }
}
