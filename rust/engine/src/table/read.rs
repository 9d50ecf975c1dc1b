//! Reader of sample files.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;

use super::file::{BadFile, general, reason};
use super::write::{FIRST_SCHEMA, GROUP_ROWS, SCHEMA, SECOND_SCHEMA};
use crate::samples::Samples;

/// Reads a sample file.
pub fn read(path: &Path) -> Result<Samples, BadFile> {
    guarded(path, |reader| {
        // The number of rows is not trusted: the file may be damaged.
        let rows = usize::try_from(reader.metadata().file_metadata().num_rows())?;
        let mut samples = Samples::with_capacity(rows.min(GROUP_ROWS));
        for index in 0..reader.num_row_groups() {
            append_group(&*reader.get_row_group(index)?, &mut samples)?;
        }
        whole(samples, rows)
    })
}

/// Reads one row group of a sample file.
pub fn read_group(path: &Path, index: usize) -> Result<Samples, BadFile> {
    guarded(path, |reader| {
        if index >= reader.num_row_groups() {
            return Err(general("it has fewer row groups"));
        }
        let group = reader.get_row_group(index)?;
        let rows = usize::try_from(group.metadata().num_rows())?;
        let mut samples = Samples::with_capacity(rows.min(GROUP_ROWS));
        append_group(&*group, &mut samples)?;
        whole(samples, rows)
    })
}

/// Returns the number of rows of each row group of a sample file.
pub fn group_rows(path: &Path) -> Result<Vec<usize>, BadFile> {
    guarded(path, |reader| {
        let groups = reader.metadata().row_groups().iter();
        groups.map(|group| Ok(usize::try_from(group.num_rows())?)).collect()
    })
}

/// Opens a sample file and reads from it. A damaged file is an error.
fn guarded<T>(
    path: &Path,
    read: impl FnOnce(&SerializedFileReader<File>) -> Result<T, ParquetError>,
) -> Result<T, BadFile> {
    let refuse = |text: &str| BadFile::new(path, "cannot be read", text);
    let read = || {
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let fields = reader.metadata().file_metadata().schema().get_fields();
        for schema in [SCHEMA, SECOND_SCHEMA, FIRST_SCHEMA] {
            if fields == parse_message_type(schema)?.get_fields() {
                return read(&reader);
            }
        }
        Err(general("it is a Parquet file, but no sample table"))
    };
    // The parquet crate has panicked on randomly damaged files.
    let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    let read = read.map_err(|_| refuse("it is damaged"))?;
    read.map_err(|error| refuse(&reason(error)))
}

fn whole(samples: Samples, rows: usize) -> Result<Samples, ParquetError> {
    if samples.columns().have_equal_lengths() && samples.len() == rows {
        return Ok(samples);
    }
    Err(general("it is damaged: its columns differ in length"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schema says how many bits are used"
)]
fn append_group(group: &dyn RowGroupReader, into: &mut Samples) -> Result<(), ParquetError> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let mut codes: Vec<i32> = Vec::new();
    for index in 0..group.num_columns() {
        let times = match index {
            0 => &mut into.due_ns,
            1 => &mut into.sent_ns,
            _ => &mut into.done_ns,
        };
        codes.clear();
        match group.get_column_reader(index)? {
            ColumnReader::Int64ColumnReader(mut reader) => {
                while reader.read_records(rows, None, None, times)?.0 > 0 {}
            }
            ColumnReader::Int32ColumnReader(mut reader) => {
                while reader.read_records(rows, None, None, &mut codes)?.0 > 0 {}
            }
            _ => return Err(general("a column has another type")),
        }
        let codes = codes.iter();
        match index {
            3 => into.first_byte_us.extend(codes.map(|&code| code as u32)),
            4 => into.iteration.extend(codes.map(|&code| code as u32)),
            5 => into.connection.extend(codes.map(|&code| code as u32)),
            6 => into.status.extend(codes.map(|&code| code as u16)),
            7 => into.outcome.extend(codes.map(|&code| code as u8)),
            8 => into.action.extend(codes.map(|&code| code as u8)),
            9 => into.retried.extend(codes.map(|&code| code as u8)),
            10 => into.generator.extend(codes.map(|&code| code as u16)),
            _ => {}
        }
    }
    // Older files lack these columns: requests were sent once, by one generator.
    into.retried.resize(into.action.len(), 0);
    into.generator.resize(into.action.len(), 0);
    Ok(())
}
