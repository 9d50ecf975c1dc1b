//! Errors and helpers of Parquet files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;

/// Error of a file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct BadFile {
    path: PathBuf,
    reason: String,
}

impl BadFile {
    pub(super) fn new(path: &Path, doing: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: format!("{doing}: {reason}") }
    }
}

/// Returns the text of an error without its kind.
pub(super) fn reason(error: ParquetError) -> String {
    match error {
        ParquetError::External(error) => error.to_string(),
        ParquetError::General(text) => text,
        other => other.to_string(),
    }
}

pub(super) fn general(text: &str) -> ParquetError {
    ParquetError::General(text.to_owned())
}

/// Creates a file that only its owner may read.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

pub(super) type RowGroup<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

/// Writes the next column of a row group in batches.
pub(super) fn write_column<T: DataType>(
    group: &mut RowGroup<'_>,
    batches: impl Iterator<Item = impl AsRef<[T::T]>>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(general("the schema has too few columns"));
    };
    for batch in batches {
        column.typed::<T>().write_batch(batch.as_ref(), None, None)?;
    }
    column.close()
}
