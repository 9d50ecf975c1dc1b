//! Part files of a sample file during a run.
//!
//! A Parquet file can be read only once it is complete. Until then the samples are in a folder of
//! complete files, which are joined at the end.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::file::BadFile;
use super::read::{group_rows, read_group};
use super::write::{GROUP_ROWS, TableWriter};
use crate::samples::Samples;

/// Age at which rows are written although they are few. With `recorder::FLUSH_NS` it bounds what is
/// lost if the process is killed.
const PART_AGE: Duration = Duration::from_secs(7);
/// Limit on chunks that wait for the disk. Above it the generator waits, which its lag shows.
const MAX_WAITING: usize = 32;

/// Channel from the engine's threads to the file writer.
pub(crate) type ChunkSender = SyncSender<Samples>;

/// Folder of part files beside the final file.
pub(crate) struct PartFiles {
    path: PathBuf,
    folder: PathBuf,
    written: Vec<PathBuf>,
    waiting: Samples,
    began: Instant,
}

impl PartFiles {
    /// Creates the folder. Fails if there is one, which has the samples of a killed run.
    pub(crate) fn create(path: &Path) -> Result<Self, BadFile> {
        let folder = folder_of(path);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(|error| BadFile::new(&folder, "cannot be made", &error.to_string()))?;
        let (path, written, waiting) = (path.to_owned(), Vec::new(), Samples::default());
        Ok(Self { path, folder, written, waiting, began: Instant::now() })
    }

    /// Creates the channel to `write_all`.
    pub(crate) fn channel() -> (ChunkSender, Receiver<Samples>) {
        sync_channel(MAX_WAITING)
    }

    /// Writes chunks until all senders are dropped. It owns the receiver: once writing has failed,
    /// no sender may wait for it.
    #[expect(clippy::needless_pass_by_value, reason = "see above")]
    pub(crate) fn write_all(&mut self, chunks: Receiver<Samples>) -> Result<(), BadFile> {
        loop {
            let left = PART_AGE.saturating_sub(self.began.elapsed());
            match chunks.recv_timeout(left) {
                Ok(chunk) => {
                    if self.waiting.len() + chunk.len() > GROUP_ROWS {
                        self.write_waiting()?;
                    }
                    self.waiting.extend(&chunk);
                }
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

    /// Removes the folder of a run that failed before it wrote anything.
    pub(crate) fn remove_if_empty(&self) {
        drop(fs::remove_dir(&self.folder)); // It fails if there are parts.
    }

    /// Joins the parts to the final file, and removes them. Returns the number of rows.
    pub(crate) fn join(mut self) -> Result<u64, BadFile> {
        let rows = match self.written.as_slice() {
            // The only part of a short run is the final file.
            [only] => {
                let rows = group_rows(only)?.into_iter().map(|rows| rows as u64).sum();
                fs::rename(only, &self.path).map_err(|error| {
                    BadFile::new(&self.path, "cannot be written", &error.to_string())
                })?;
                rows
            }
            _ => self.rewrite()?,
        };
        fs::remove_dir_all(&self.folder)
            .map_err(|error| BadFile::new(&self.folder, "cannot be removed", &error.to_string()))?;
        Ok(rows)
    }

    fn rewrite(&mut self) -> Result<u64, BadFile> {
        let mut writer = TableWriter::create(&self.path)?;
        let mut rows = 0;
        for part in &self.written {
            for index in 0..group_rows(part)?.len() {
                let group = read_group(part, index)?;
                rows += group.len() as u64;
                if !self.waiting.is_empty() && self.waiting.len() + group.len() > GROUP_ROWS {
                    writer.append_sorted(&mut self.waiting)?;
                }
                self.waiting.extend(&group);
            }
        }
        if !self.waiting.is_empty() {
            writer.append_sorted(&mut self.waiting)?;
        }
        writer.finish()?;
        Ok(rows)
    }
}

/// Joins the part files of `path`, in the order of their names. Returns the number of rows.
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
    PartFiles { path, folder, written, waiting, began }.join()
}

fn folder_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".parts");
    PathBuf::from(name)
}
