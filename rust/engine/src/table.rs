//! Sample tables and readings on disk, as Parquet files.

mod file;
mod metrics;
mod parts;
mod read;
mod write;

pub use crate::samples::Columns;
pub use file::BadFile;
pub use metrics::{Metrics, Name, read_metrics, write_metrics};
pub use parts::join;
pub(crate) use parts::{ChunkSender, PartFiles};
pub use read::{group_rows, read, read_group};
pub use write::{TableWriter, write};
