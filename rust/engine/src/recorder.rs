//! Recorder: samples of an engine thread, in memory or sent to the file writer in chunks.

use crate::clock::SECOND_NS;
use crate::live::{LiveBuffer, LivePublisher};
use crate::samples::{Sample, Samples};
use crate::table::ChunkSender;

/// Rows per chunk.
const CHUNK_ROWS: usize = 1 << 15;
/// Age at which a chunk is sent although it is not full.
const FLUSH_NS: i64 = 2 * SECOND_NS;

/// Samples of a thread.
pub(crate) struct Recorder {
    rows: Samples,
    /// Part of the load that this engine sends.
    generator: u16,
    chunks: Option<ChunkSender>,
    flush_rows: usize,
    flush_at_ns: i64,
    live: Option<LivePublisher>,
}

impl Recorder {
    /// Creates a recorder that sends rows to a file writer and to observers. Without either it
    /// keeps all rows, and reserves memory for `expected_rows`.
    pub(crate) fn new(
        expected_rows: usize,
        generator: u16,
        chunks: Option<ChunkSender>,
        live: Option<LiveBuffer>,
    ) -> Self {
        let is_kept = chunks.is_none() && live.is_none();
        Self {
            rows: Samples::with_capacity(if is_kept { expected_rows } else { CHUNK_ROWS }),
            generator,
            flush_rows: if is_kept { usize::MAX } else { CHUNK_ROWS },
            flush_at_ns: if chunks.is_some() { FLUSH_NS } else { i64::MAX },
            chunks,
            live: live.map(LivePublisher::new),
        }
    }

    pub(crate) fn push(&mut self, sample: &Sample) {
        self.rows.push(sample, self.generator);
        self.flush_if_due(sample.done_ns);
    }

    /// Reports that all rows of an iteration have been pushed.
    pub(crate) fn iteration_ended(&mut self, iteration: u32) {
        if let Some(live) = &mut self.live {
            live.iteration_ended(iteration);
        }
    }

    /// Sends and publishes rows that are old enough.
    pub(crate) fn flush_if_due(&mut self, now_ns: i64) {
        if let Some(live) = &mut self.live {
            live.publish_if_due(&self.rows, now_ns);
        }
        if self.rows.len() >= self.flush_rows || now_ns >= self.flush_at_ns {
            self.flush_at_ns = now_ns + FLUSH_NS;
            self.flush();
        }
    }

    /// Returns when `flush_if_due` has something to do, even if no more rows come.
    pub(crate) fn due_ns(&self) -> i64 {
        let publish_at_ns = self.live.as_ref().map_or(i64::MAX, LivePublisher::due_ns);
        self.flush_at_ns.min(publish_at_ns)
    }

    fn flush(&mut self) {
        if let Some(live) = &mut self.live {
            live.finish_table(&self.rows);
            if self.chunks.is_none() {
                self.rows.clear();
            }
        }
        let Some(chunks) = &self.chunks else { return };
        if !self.rows.is_empty() {
            let rows = std::mem::replace(&mut self.rows, Samples::with_capacity(CHUNK_ROWS));
            // Fails once the file cannot be written; the run ends for that reason.
            let _ = chunks.send(rows);
        }
    }

    /// Returns the rows in memory; none if they were sent or only published.
    pub(crate) fn finish(mut self) -> Samples {
        self.flush();
        self.rows
    }
}
