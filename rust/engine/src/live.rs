//! Samples for observers of a run that goes on.

use std::sync::{Arc, Mutex, PoisonError};

use crate::clock::SECOND_NS;
use crate::samples::Samples;

/// Interval at which threads publish samples; observers look as often.
const PUBLISH_NS: i64 = SECOND_NS / 10;

/// Samples and iterations since an observer last took them.
#[derive(Debug, Default)]
pub struct LiveSamples {
    /// Samples, in the order of completion per thread.
    pub rows: Samples,
    /// Completed iterations, in order per thread. Their samples were published before or with them.
    pub ended: Vec<u32>,
}

/// Buffer of published samples that all threads share.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveBuffer(Arc<Mutex<LiveSamples>>);

impl LiveBuffer {
    /// Takes what was published since the last call.
    pub(crate) fn take(&self) -> LiveSamples {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Publisher of one thread. It takes the lock ten times a second, not for each request.
pub(crate) struct LivePublisher {
    buffer: LiveBuffer,
    ended: Vec<u32>,
    published_rows: usize,
    publish_at_ns: i64,
}

impl LivePublisher {
    pub(crate) fn new(buffer: LiveBuffer) -> Self {
        Self { buffer, ended: Vec::new(), published_rows: 0, publish_at_ns: PUBLISH_NS }
    }

    pub(crate) fn iteration_ended(&mut self, iteration: u32) {
        self.ended.push(iteration);
    }

    pub(crate) fn publish_if_due(&mut self, rows: &Samples, now_ns: i64) {
        if now_ns >= self.publish_at_ns {
            self.publish_at_ns = now_ns + PUBLISH_NS;
            self.publish(rows);
        }
    }

    /// Returns when rows are to be published.
    pub(crate) fn due_ns(&self) -> i64 {
        self.publish_at_ns
    }

    /// Publishes the rows that were not published yet.
    pub(crate) fn publish(&mut self, rows: &Samples) {
        let mut live = self.buffer.0.lock().unwrap_or_else(PoisonError::into_inner);
        live.rows.extend_from(rows, self.published_rows);
        live.ended.append(&mut self.ended);
        self.published_rows = rows.len();
    }

    /// Publishes the last rows of a table before the thread starts an empty one.
    pub(crate) fn finish_table(&mut self, rows: &Samples) {
        self.publish(rows);
        self.published_rows = 0;
    }
}
