//! The sample table on disk: Parquet, so that any tool reads it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

mod metrics;
mod parts;
mod read;

pub use crate::samples::Columns;
pub use metrics::{Metrics, Name, read_metrics, write_metrics};
pub use parts::join;
pub(crate) use parts::{Parts, Spill};
pub use read::{group_rows, read, read_group};

const SCHEMA: &str = "message samples {
    required int64 due_ns;
    required int64 sent_ns;
    required int64 done_ns;
    required int32 first_byte_us (INTEGER(32, false));
    required int32 iteration (INTEGER(32, false));
    required int32 connection (INTEGER(32, false));
    required int32 status (INTEGER(16, false));
    required int32 outcome (INTEGER(8, false));
    required int32 action (INTEGER(8, false));
    required int32 retried (INTEGER(8, false));
    required int32 generator (INTEGER(16, false));
}";
/// The schema of files from before the column `generator`; they are still read.
const SECOND_SCHEMA: &str = "message samples {
    required int64 due_ns;
    required int64 sent_ns;
    required int64 done_ns;
    required int32 first_byte_us (INTEGER(32, false));
    required int32 iteration (INTEGER(32, false));
    required int32 connection (INTEGER(32, false));
    required int32 status (INTEGER(16, false));
    required int32 outcome (INTEGER(8, false));
    required int32 action (INTEGER(8, false));
    required int32 retried (INTEGER(8, false));
}";
/// The schema of files from before the column `retried`; they are still read.
const FIRST_SCHEMA: &str = "message samples {
    required int64 due_ns;
    required int64 sent_ns;
    required int64 done_ns;
    required int32 first_byte_us (INTEGER(32, false));
    required int32 iteration (INTEGER(32, false));
    required int32 connection (INTEGER(16, false));
    required int32 status (INTEGER(16, false));
    required int32 outcome (INTEGER(8, false));
    required int32 action (INTEGER(8, false));
}";
/// These repeat: a dictionary and run lengths say them in a few bits.
const REPEATING: [&str; 6] = ["connection", "status", "outcome", "action", "retried", "generator"];
/// Rows of a row group: what a reader holds in memory at once.
const GROUP_ROWS: usize = 1 << 18;
/// Rows that are converted at a time.
const BATCH_ROWS: usize = 1 << 14;

/// A sample file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct BadFile {
    path: PathBuf,
    reason: String,
}

impl BadFile {
    fn new(path: &Path, doing: &str, reason: &str) -> Self {
        Self { path: path.to_owned(), reason: format!("{doing}: {reason}") }
    }
}

fn reason(error: ParquetError) -> String {
    match error {
        ParquetError::External(error) => error.to_string(),
        ParquetError::General(text) => text,
        other => other.to_string(),
    }
}

fn general(text: &str) -> ParquetError {
    ParquetError::General(text.to_owned())
}

/// Creates a file that only its owner may read.
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// A sample file being written, under another name until it is complete.
pub struct TableWriter {
    path: PathBuf,
    part: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
}

impl TableWriter {
    /// Begins the file that `finish` will leave at `path`.
    pub fn create(path: &Path) -> Result<Self, BadFile> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let refuse = |text: String| BadFile::new(path, "cannot be written", &text);
        let file = create_private(&part).map_err(|error| refuse(error.to_string()))?;
        let schema = parse_message_type(SCHEMA).map_err(|error| refuse(reason(error)))?;
        let writer = SerializedFileWriter::new(
            BufWriter::new(file),
            Arc::new(schema),
            Arc::new(properties()),
        );
        let writer = writer.map_err(|error| refuse(reason(error)))?;
        Ok(Self { path: path.to_owned(), part, writer })
    }

    /// Adds rows, in groups of at most a quarter of a million.
    pub fn append(&mut self, columns: &Columns<'_>) -> Result<(), BadFile> {
        if !columns.are_even() {
            return Err(BadFile::new(&self.path, "cannot be written", "columns differ in length"));
        }
        for from in (0..columns.rows()).step_by(GROUP_ROWS) {
            let to = columns.rows().min(from + GROUP_ROWS);
            self.append_group(columns, from, to)
                .map_err(|error| BadFile::new(&self.path, "cannot be written", &reason(error)))?;
        }
        Ok(())
    }

    fn append_group(
        &mut self,
        columns: &Columns<'_>,
        from: usize,
        to: usize,
    ) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in [columns.due_ns, columns.sent_ns, columns.done_ns] {
            write_times(&mut group, &column[from..to])?;
        }
        write_codes(&mut group, &columns.first_byte_us[from..to], u32::cast_signed)?;
        write_codes(&mut group, &columns.iteration[from..to], u32::cast_signed)?;
        write_codes(&mut group, &columns.connection[from..to], u32::cast_signed)?;
        write_codes(&mut group, &columns.status[from..to], i32::from)?;
        write_codes(&mut group, &columns.outcome[from..to], i32::from)?;
        write_codes(&mut group, &columns.action[from..to], i32::from)?;
        write_codes(&mut group, &columns.retried[from..to], i32::from)?;
        write_codes(&mut group, &columns.generator[from..to], i32::from)?;
        group.close()?;
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(mut self) -> Result<(), BadFile> {
        let refuse = |text: String| BadFile::new(&self.path, "cannot be written", &text);
        self.writer.finish().map_err(|error| refuse(reason(error)))?;
        let file = self.writer.inner().get_ref();
        // Some file systems tell only here that the disk is full.
        file.sync_all().map_err(|error| refuse(error.to_string()))?;
        fs::rename(&self.part, &self.path).map_err(|error| refuse(error.to_string()))
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        // After `finish` there is none.
        let _ = fs::remove_file(&self.part);
    }
}

fn properties() -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("loadstone ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None)
        // Times follow each other closely.
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED);
    let repeat = |builder: parquet::file::properties::WriterPropertiesBuilder, name: &&str| {
        builder.set_column_dictionary_enabled((*name).into(), true)
    };
    REPEATING.iter().fold(builder, repeat).build()
}

type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn write_times(group: &mut Group<'_>, values: &[i64]) -> Result<(), ParquetError> {
    write_column::<Int64Type>(group, std::iter::once(values))
}

fn write_codes<T: Copy>(
    group: &mut Group<'_>,
    values: &[T],
    convert: impl Fn(T) -> i32,
) -> Result<(), ParquetError> {
    let converted = values
        .chunks(BATCH_ROWS)
        .map(|batch| batch.iter().map(|&value| convert(value)).collect::<Vec<_>>());
    write_column::<Int32Type>(group, converted)
}

fn write_column<T: DataType>(
    group: &mut Group<'_>,
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

/// Writes a sample file: all of it, or none.
pub fn write(path: &Path, columns: &Columns<'_>) -> Result<(), BadFile> {
    let mut writer = TableWriter::create(path)?;
    writer.append(columns)?;
    writer.finish()
}
