//! Writer of sample files.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::file::{BadFile, RowGroup, create_private, reason, write_column};
use crate::samples::{Columns, Samples};

pub(super) const SCHEMA: &str = "message samples {
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
/// Schema of files without the column `generator`, which are still read.
pub(super) const SECOND_SCHEMA: &str = "message samples {
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
/// Schema of files without the columns `retried` and `generator`, which are still read.
pub(super) const FIRST_SCHEMA: &str = "message samples {
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
/// Columns with few distinct values, which a dictionary and run lengths encode in a few bits.
const REPEATING: [&str; 6] = ["connection", "status", "outcome", "action", "retried", "generator"];
/// Rows per row group: what a reader holds in memory at once.
pub(super) const GROUP_ROWS: usize = 1 << 18;
/// Rows per batch of a conversion.
const BATCH_ROWS: usize = 1 << 14;

/// Writer of a sample file, which has another name until it is complete.
pub struct TableWriter {
    path: PathBuf,
    part: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
}

impl TableWriter {
    /// Creates a writer of the file that `finish` will leave at `path`.
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

    /// Appends rows in groups of at most `GROUP_ROWS`.
    pub fn append(&mut self, columns: &Columns<'_>) -> Result<(), BadFile> {
        if !columns.have_equal_lengths() {
            return Err(BadFile::new(&self.path, "cannot be written", "columns differ in length"));
        }
        for from in (0..columns.rows()).step_by(GROUP_ROWS) {
            let to = columns.rows().min(from + GROUP_ROWS);
            self.append_group(columns, from, to)
                .map_err(|error| BadFile::new(&self.path, "cannot be written", &reason(error)))?;
        }
        Ok(())
    }

    /// Appends rows as one group, sorted by completion, and clears the table.
    pub(super) fn append_sorted(&mut self, rows: &mut Samples) -> Result<(), BadFile> {
        rows.sort();
        let columns = rows.columns();
        let written = self.append_group(&columns, 0, columns.rows());
        written.map_err(|error| BadFile::new(&self.path, "cannot be written", &reason(error)))?;
        rows.clear();
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

    /// Completes the file and renames it.
    pub fn finish(mut self) -> Result<(), BadFile> {
        let refuse = |text: String| BadFile::new(&self.path, "cannot be written", &text);
        self.writer.finish().map_err(|error| refuse(reason(error)))?;
        let file = self.writer.inner().get_ref();
        // Some file systems report a full disk only here.
        file.sync_all().map_err(|error| refuse(error.to_string()))?;
        fs::rename(&self.part, &self.path).map_err(|error| refuse(error.to_string()))
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        // There is none after `finish`.
        let _ = fs::remove_file(&self.part);
    }
}

fn properties() -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("loadstone ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None)
        // Successive times differ little.
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::DELTA_BINARY_PACKED);
    let repeat = |builder: parquet::file::properties::WriterPropertiesBuilder, name: &&str| {
        builder.set_column_dictionary_enabled((*name).into(), true)
    };
    REPEATING.iter().fold(builder, repeat).build()
}

fn write_times(group: &mut RowGroup<'_>, values: &[i64]) -> Result<(), ParquetError> {
    write_column::<Int64Type>(group, std::iter::once(values))
}

fn write_codes<T: Copy>(
    group: &mut RowGroup<'_>,
    values: &[T],
    convert: impl Fn(T) -> i32,
) -> Result<(), ParquetError> {
    let converted = values
        .chunks(BATCH_ROWS)
        .map(|batch| batch.iter().map(|&value| convert(value)).collect::<Vec<_>>());
    write_column::<Int32Type>(group, converted)
}

/// Writes a sample file atomically.
pub fn write(path: &Path, columns: &Columns<'_>) -> Result<(), BadFile> {
    let mut writer = TableWriter::create(path)?;
    writer.append(columns)?;
    writer.finish()
}
