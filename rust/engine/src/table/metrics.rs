//! Readings of monitors on disk: a Parquet file with a row per reading.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::file::{BadFile, create_private, general, reason, write_column};

const SCHEMA: &str = "message metrics {
    required int64 time (TIMESTAMP(MICROS, true));
    required binary source (STRING);
    required binary metric (STRING);
    required double value;
    required binary unit (STRING);
}";

/// Source, metric and unit of a series.
pub type Name = (String, String, String);

/// Readings as columns.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Metrics {
    /// Unix time in microseconds.
    pub time_us: Vec<i64>,
    /// Index into `names`.
    pub series: Vec<u32>,
    /// Value of each reading.
    pub value: Vec<f64>,
    /// Names of the series.
    pub names: Vec<Name>,
}

/// Writes a file of readings atomically.
pub fn write_metrics(path: &Path, metrics: &Metrics) -> Result<(), BadFile> {
    let refuse = |text: &str| BadFile::new(path, "cannot be written", text);
    let rows = metrics.time_us.len();
    if metrics.series.len() != rows || metrics.value.len() != rows {
        return Err(refuse("columns differ in length"));
    }
    if metrics.series.iter().any(|&index| index as usize >= metrics.names.len()) {
        return Err(refuse("a series has no name"));
    }
    let part = PathBuf::from({
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        name
    });
    let written = write_file(&part, metrics).and_then(|()| Ok(fs::rename(&part, path)?));
    written.map_err(|error| {
        // It may not exist.
        let _ = fs::remove_file(&part);
        refuse(&reason(error))
    })
}

fn write_file(part: &Path, metrics: &Metrics) -> Result<(), ParquetError> {
    let created = concat!("loadstone ", env!("CARGO_PKG_VERSION")).to_owned();
    let properties =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(created);
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let file = BufWriter::new(create_private(part)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let texts = |pick: fn(&Name) -> &String| -> Vec<ByteArray> {
        let all: Vec<ByteArray> =
            metrics.names.iter().map(|name| pick(name).as_bytes().to_vec().into()).collect();
        metrics.series.iter().map(|&index| all[index as usize].clone()).collect()
    };
    write_column::<Int64Type>(&mut group, std::iter::once(&metrics.time_us))?;
    write_column::<ByteArrayType>(&mut group, std::iter::once(texts(|name| &name.0)))?;
    write_column::<ByteArrayType>(&mut group, std::iter::once(texts(|name| &name.1)))?;
    write_column::<DoubleType>(&mut group, std::iter::once(&metrics.value))?;
    write_column::<ByteArrayType>(&mut group, std::iter::once(texts(|name| &name.2)))?;
    group.close()?;
    writer.finish()?;
    // Some file systems report a full disk only here.
    writer.inner().get_ref().sync_all()?;
    Ok(())
}

/// Reads a file of readings.
pub fn read_metrics(path: &Path) -> Result<Metrics, BadFile> {
    let refuse = |text: &str| BadFile::new(path, "cannot be read", text);
    // The parquet crate has panicked on randomly damaged files.
    let read = std::panic::catch_unwind(|| read_file(path));
    let read = read.map_err(|_| refuse("it is damaged"))?;
    read.map_err(|error| refuse(&reason(error)))
}

fn read_file(path: &Path) -> Result<Metrics, ParquetError> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let schema = reader.metadata().file_metadata().schema();
    if schema.get_fields() != parse_message_type(SCHEMA)?.get_fields() {
        return Err(general("it is a Parquet file, but no table of readings"));
    }
    let mut metrics = Metrics::default();
    let mut index = HashMap::new();
    for number in 0..reader.num_row_groups() {
        append_group(&*reader.get_row_group(number)?, &mut metrics, &mut index)?;
    }
    Ok(metrics)
}

fn append_group(
    group: &dyn RowGroupReader,
    into: &mut Metrics,
    index: &mut HashMap<Name, u32>,
) -> Result<(), ParquetError> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let mut texts: Vec<Vec<ByteArray>> = Vec::new();
    for column in 0..group.num_columns() {
        match group.get_column_reader(column)? {
            ColumnReader::Int64ColumnReader(mut reader) => {
                while reader.read_records(rows, None, None, &mut into.time_us)?.0 > 0 {}
            }
            ColumnReader::DoubleColumnReader(mut reader) => {
                while reader.read_records(rows, None, None, &mut into.value)?.0 > 0 {}
            }
            ColumnReader::ByteArrayColumnReader(mut reader) => {
                let mut values = Vec::new();
                while reader.read_records(rows, None, None, &mut values)?.0 > 0 {}
                texts.push(values);
            }
            _ => return Err(general("a column has another type")),
        }
    }
    let [sources, names, units] = texts.as_slice() else {
        return Err(general("it has other columns"));
    };
    for ((source, metric), unit) in sources.iter().zip(names).zip(units) {
        let name = (text(source)?, text(metric)?, text(unit)?);
        let next = u32::try_from(index.len())?;
        let series = *index.entry(name.clone()).or_insert(next);
        if series == next {
            into.names.push(name);
        }
        into.series.push(series);
    }
    if into.series.len() == into.time_us.len() && into.value.len() == into.time_us.len() {
        return Ok(());
    }
    Err(general("it is damaged: its columns differ in length"))
}

fn text(value: &ByteArray) -> Result<String, ParquetError> {
    Ok(value.as_utf8()?.to_owned())
}
