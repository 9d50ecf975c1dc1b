//! A run in two steps: made ready, then started at an instant.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime};

use crate::Refusal;
use crate::fresh::Fresh;
use crate::health::Health;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::run::Run;
use crate::samples::Samples;

/// Where the rows of a run are.
#[derive(Debug)]
pub enum Kept {
    /// Here.
    Columns(Box<Samples>),
    /// In the file, so many.
    File(u64),
}

/// Options of a prepared run.
#[derive(Debug, Default)]
pub struct Preparation {
    /// The file that its samples go to; without one they stay in memory.
    pub path: Option<PathBuf>,
    /// Show what is measured while the run goes on (`Prepared::fresh`); without a file, none of it
    /// is kept.
    pub is_shown: bool,
    /// Open connections before the start, and refuse a target that cannot be connected to.
    pub is_connected: bool,
}

/// A run whose threads wait for its start: the host is looked up, the requests are laid out, memory
/// is set aside and connections are open. Dropped, it is given up.
pub struct Prepared {
    run: Arc<Run>,
    execution: Mutex<Option<Execution>>,
    ended: Mutex<Receiver<()>>,
}

type Execution = JoinHandle<Result<(Kept, Health), Refusal>>;

impl Prepared {
    /// Makes two plans ready that take turns: the load of each waits while the other's is under way.
    pub fn pair(plans: [&Plan; 2], preparations: [Preparation; 2]) -> Result<[Self; 2], Refusal> {
        let ([run, other], [own, others]) = (Run::prepare_pair(plans)?, preparations);
        Ok([Self::of(run, own)?, Self::of(other, others)?])
    }

    /// Makes a plan ready; returns when all threads are.
    pub fn new(plan: &Plan, preparation: Preparation) -> Result<Self, Refusal> {
        Self::of(Run::prepare(plan)?, preparation)
    }

    fn of(run: Run, preparation: Preparation) -> Result<Self, Refusal> {
        let mut run = run.held();
        if preparation.is_shown {
            run = run.shown();
        }
        if preparation.is_connected {
            run = run.connected();
        }
        let run = Arc::new(run);
        let (told, ended) = channel();
        let execute = {
            let (run, path) = (run.clone(), preparation.path);
            let ending = Ending { run: run.clone(), _told: told };
            move || {
                let _ending = ending;
                match path {
                    None => run
                        .execute()
                        .map(|done| (Kept::Columns(Box::new(done.samples)), done.health)),
                    Some(path) => {
                        run.execute_into(&path).map(|done| (Kept::File(done.rows), done.health))
                    }
                }
            }
        };
        let execution = Builder::new()
            .spawn(execute)
            .map_err(|error| Refusal::Environment(format!("no thread can be started: {error}")))?;
        let execution = Mutex::new(Some(execution));
        let prepared = Self { run, execution, ended: Mutex::new(ended) };
        if prepared.run.wait_until_ready()? {
            return Ok(prepared);
        }
        match prepared.finish() {
            Err(refusal) => Err(refusal),
            Ok(_) => Err(Refusal::Environment("the run ended before its start".to_owned())),
        }
    }

    /// Starts the load at an instant, or at once. An instant in the past is refused.
    pub fn start(&self, at: Option<SystemTime>) -> Result<(), Refusal> {
        self.run.start(at)
    }

    /// Starts the load together with that of another run.
    pub fn start_with(&self, other: &Self) -> Result<(), Refusal> {
        Run::start_both([&self.run, &other.run])
    }

    /// Takes up nothing that is due at or after `due_ns` (nanoseconds since the start), and all
    /// that is due before. An instant that has come is refused: iterations after it may have begun.
    pub fn stop_at(&self, due_ns: i64) -> Result<(), Refusal> {
        self.run.stop_at(due_ns)
    }

    /// Takes up nothing more; what is under way goes on to its end or the drain's.
    pub fn stop(&self) {
        self.run.stop();
    }

    /// Gives up what is under way, too; before the start, the run itself.
    pub fn abandon(&self) {
        self.run.abandon();
    }

    /// `start` was called.
    pub fn is_started(&self) -> bool {
        self.run.is_started()
    }

    /// Counts so far.
    pub fn progress(&self) -> Progress {
        self.run.progress()
    }

    /// Latencies of the iterations that have ended well, per bucket.
    pub fn latencies(&self) -> Vec<u64> {
        self.run.latencies()
    }

    /// Rows measured since the last look, if they are shown; also after the end.
    pub fn fresh(&self) -> Option<Fresh> {
        self.run.fresh()
    }

    /// Waits for the end, so long at most: whether it has come.
    pub fn wait(&self, most: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(most) != Err(RecvTimeoutError::Timeout)
    }

    /// Waits for the end: what was measured. A second time there is nothing.
    pub fn finish(&self) -> Result<(Kept, Health), Refusal> {
        let Some(execution) = self.execution() else {
            return Err(Refusal::Environment("the run has ended before".to_owned()));
        };
        execution.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn execution(&self) -> Option<Execution> {
        self.execution.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Dropped when the run ends, also by a panic: nobody waits for its threads any longer.
struct Ending {
    run: Arc<Run>,
    _told: Sender<()>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.run.abandon();
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(execution) = self.execution() {
            self.run.abandon();
            // What it measured, or why it failed, nobody wants.
            let _ = execution.join();
        }
    }
}
