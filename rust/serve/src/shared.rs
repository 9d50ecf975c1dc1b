//! What all threads share, under one lock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Refusal;
use crate::counts::Counts;
use crate::directory::Directory;
use crate::fault::Fault;
use crate::reply::Reply;
use crate::route::{self, Call, State};
use crate::settings::Settings;
use crate::stamp;
use crate::tokens::Tokens;
use crate::workers::Workers;

/// The service without its sockets.
pub(crate) struct Shared {
    kept: Mutex<Kept>,
    only_errors: bool,
    began: Instant,
}

struct Kept {
    state: State,
    workers: Option<Workers>,
    counts: Counts,
}

/// An answer, and when it is due.
pub(crate) struct Answer {
    pub(crate) reply: Reply,
    pub(crate) due: Option<Instant>,
}

impl Shared {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Refusal> {
        let directory = Directory::new(&settings.admin, stamp::now_us()).map_err(|fault| {
            Refusal::Settings(format!("user or project of the administrator: {}", fault.message()))
        })?;
        let state = State {
            directory,
            tokens: Tokens::new(settings.max_tokens),
            token_life_us: micros(settings.token_life_s),
        };
        let workers = settings.capacity.as_ref().map(Workers::new);
        let kept = Kept { state, workers, counts: Counts::default() };
        Ok(Self {
            kept: Mutex::new(kept),
            only_errors: settings.only_errors,
            began: Instant::now(),
        })
    }

    pub(crate) fn answer(&self, call: &Call<'_>) -> Answer {
        let mut kept = self.lock();
        kept.counts.saw(call.method, call.path);
        let is_work = call.path.starts_with("/v3/auth/");
        let (result, due) = match self.work(&mut kept, is_work) {
            Ok(due) => (route::answer(&mut kept.state, call), due),
            Err(fault) => (Err(fault), None),
        };
        let reply = result.unwrap_or_else(Fault::reply);
        *kept.counts.answers.entry(reply.status).or_default() += 1;
        Answer { reply, due }
    }

    /// What cannot even be read as a request of the API.
    pub(crate) fn refuse(&self, method: &str, path: &str, fault: Fault) -> Reply {
        let mut kept = self.lock();
        let reply = fault.reply();
        kept.counts.saw(method, path);
        *kept.counts.answers.entry(reply.status).or_default() += 1;
        reply
    }

    pub(crate) fn counts(&self) -> Counts {
        let kept = self.lock();
        let mut counts = kept.counts.clone();
        if let Some(workers) = &kept.workers {
            (counts.worked, counts.busy_s) = (workers.taken, workers.busy_s);
        }
        counts
    }

    /// Gives the request to a worker; when it will be done.
    fn work(&self, kept: &mut Kept, is_work: bool) -> Result<Option<Instant>, Fault> {
        if !is_work {
            return Ok(None);
        }
        if self.only_errors {
            return Err(Fault::Told);
        }
        let Some(workers) = &mut kept.workers else { return Ok(None) };
        // Read under the lock, so that arrivals come in the order of their times.
        let arrived_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let Ok(done_ns) = workers.done_ns(arrived_ns) else {
            kept.counts.turned_away += 1;
            return Err(Fault::QueueFull);
        };
        Ok(Some(self.began + Duration::from_nanos(done_ns)))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "settings are checked to be at most a year")]
fn micros(seconds: f64) -> i64 {
    (seconds * 1e6) as i64
}
