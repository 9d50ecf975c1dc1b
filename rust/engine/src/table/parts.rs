//! A sample file that grows while a run goes on, readable at every moment.
//!
//! A Parquet file can be read only once it is complete, so what was measured so far lies beside it
//! in a folder of complete files; at the end they become one.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::{BadFile, Columns, GROUP_ROWS, TableWriter, group_rows, read_group};
use crate::samples::Samples;

/// Age at which rows are written although they are few: what a kill may cost at most, with
/// `recorder::HAND_OVER_NS`.
const PART_AGE: Duration = Duration::from_secs(7);
/// Chunks that may wait for the disk. Beyond it the generator waits, and its lag says so.
const MOST_WAITING: usize = 32;

/// Where the engine's threads send what they recorded.
pub(crate) type Spill = SyncSender<Samples>;

/// The folder of complete files beside the file that they become.
pub(crate) struct Parts {
    path: PathBuf,
    folder: PathBuf,
    written: Vec<PathBuf>,
    waiting: Samples,
    began: Instant,
}

impl Parts {
    /// Makes the folder; an older one is what a killed run measured, and is left alone.
    pub(crate) fn create(path: &Path) -> Result<Self, BadFile> {
        let folder = folder_of(path);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(|error| BadFile::new(&folder, "cannot be made", &error.to_string()))?;
        let (path, written, waiting) = (path.to_owned(), Vec::new(), Samples::default());
        Ok(Self { path, folder, written, waiting, began: Instant::now() })
    }

    /// The way for chunks from the engine's threads to `take`.
    pub(crate) fn channel() -> (Spill, Receiver<Samples>) {
        sync_channel(MOST_WAITING)
    }

    /// Writes what arrives until nothing more can. Owns its end of the channel: once writing has
    /// failed, nobody may wait for it.
    #[expect(clippy::needless_pass_by_value, reason = "see above")]
    pub(crate) fn take(&mut self, chunks: Receiver<Samples>) -> Result<(), BadFile> {
        loop {
            match chunks.recv_timeout(PART_AGE) {
                Ok(chunk) => self.waiting.extend(&chunk),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.write_waiting(),
            }
            if self.waiting.len() >= GROUP_ROWS || self.began.elapsed() >= PART_AGE {
                self.write_waiting()?;
            }
        }
    }

    fn write_waiting(&mut self) -> Result<(), BadFile> {
        self.began = Instant::now();
        if self.waiting.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(format!("{:06}.parquet", self.written.len()));
        let mut writer = TableWriter::create(&path)?;
        writer.append_sorted(&mut self.waiting)?;
        writer.finish()?;
        self.written.push(path);
        Ok(())
    }

    /// Joins the parts to the file, in row groups as large as in any other, and removes them: the
    /// number of rows.
    pub(crate) fn join(mut self) -> Result<u64, BadFile> {
        let rows = match self.written.as_slice() {
            // A short run's only part is the whole file as it stands.
            [only] => {
                let rows = group_rows(only)?.into_iter().map(|rows| rows as u64).sum();
                fs::rename(only, &self.path).map_err(|error| {
                    BadFile::new(&self.path, "cannot be written", &error.to_string())
                })?;
                rows
            }
            _ => self.write_again()?,
        };
        fs::remove_dir_all(&self.folder)
            .map_err(|error| BadFile::new(&self.folder, "cannot be removed", &error.to_string()))?;
        Ok(rows)
    }

    fn write_again(&mut self) -> Result<u64, BadFile> {
        let mut writer = TableWriter::create(&self.path)?;
        let mut rows = 0;
        for part in &self.written {
            for index in 0..group_rows(part)?.len() {
                let group = read_group(part, index)?;
                rows += group.len() as u64;
                self.waiting.extend(&group);
                if self.waiting.len() >= GROUP_ROWS {
                    writer.append_sorted(&mut self.waiting)?;
                }
            }
        }
        if !self.waiting.is_empty() {
            writer.append_sorted(&mut self.waiting)?;
        }
        writer.finish()?;
        Ok(rows)
    }
}

/// Joins the files in the folder beside `path`, in the order of their names, to the file at `path`.
pub fn join(path: &Path) -> Result<u64, BadFile> {
    let folder = folder_of(path);
    let refuse =
        |error: std::io::Error| BadFile::new(&folder, "cannot be read", &error.to_string());
    let mut written = Vec::new();
    for entry in fs::read_dir(&folder).map_err(refuse)? {
        let file = entry.map_err(refuse)?.path();
        if file.extension().is_some_and(|extension| extension == "parquet") {
            written.push(file);
        }
    }
    written.sort();
    let (path, waiting, began) = (path.to_owned(), Samples::default(), Instant::now());
    Parts { path, folder, written, waiting, began }.join()
}

fn folder_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}

impl TableWriter {
    /// Adds rows as one group in the order of completion, and empties the table.
    fn append_sorted(&mut self, rows: &mut Samples) -> Result<(), BadFile> {
        rows.sort();
        let columns: Columns<'_> = rows.columns();
        let written = self.append_group(&columns, 0, columns.rows());
        written.map_err(|error| {
            BadFile::new(&self.path, "cannot be written", &super::reason(error))
        })?;
        rows.clear();
        Ok(())
    }
}
