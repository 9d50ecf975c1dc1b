//! What all threads share, under one lock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Refusal;
use crate::auth;
use crate::counts::Counts;
use crate::directory::Directory;
use crate::fault::Fault;
use crate::lateness::Lateness;
use crate::limiter::{Key, Limiter, Verdict};
use crate::lockout::Lockout;
use crate::oidc::{self, Oidc};
use crate::reply::Reply;
use crate::route::{self, Call, State};
use crate::script::Script;
use crate::settings::{Limit, LimitMode, LimitPer, Settings};
use crate::stamp;
use crate::tokens::Tokens;
use crate::workers::{Turned, Workers};

/// Of sums of shares.
const ROUNDING: f64 = 1e-9;

/// The service without its sockets.
pub(crate) struct Shared {
    kept: Mutex<Kept>,
    only_errors: bool,
    error_share: f64,
    has_oidc: bool,
    delays: bool,
    began: Instant,
    pub(crate) lateness: Lateness,
    pub(crate) script: Script,
}

struct Kept {
    state: State,
    limiter: Option<Limiter>,
    lockout: Option<Lockout>,
    workers: Option<Workers>,
    counts: Counts,
    /// What the script refuses, in requests: above 1 one is refused, so that shares are even.
    to_refuse: f64,
    /// The same of what is answered with 500.
    to_fail: f64,
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
            oidc: settings.oidc.as_ref().map(|it| Oidc::new(it, settings)).transpose()?,
        };
        let kept = Kept {
            state,
            limiter: settings.limit.as_ref().map(Limiter::new),
            lockout: settings.lockout.as_ref().map(Lockout::new),
            workers: settings.capacity.as_ref().map(Workers::new),
            counts: Counts::default(),
            to_refuse: 0.0,
            to_fail: 0.0,
        };
        let began = Instant::now();
        let is_delay = |limit: &Limit| limit.mode == LimitMode::Delay;
        Ok(Self {
            kept: Mutex::new(kept),
            only_errors: settings.only_errors,
            error_share: settings.error_share,
            has_oidc: settings.oidc.is_some(),
            delays: settings.limit.as_ref().is_some_and(is_delay),
            began,
            lateness: Lateness::default(),
            script: Script::new(&settings.script, began),
        })
    }

    /// Until when the rate limiter delays a request.
    pub(crate) fn delay(&self, call: &Call<'_>) -> Option<Instant> {
        if !self.delays || !self.is_work(call) {
            return None;
        }
        let mut kept = self.lock();
        let now = self.began.elapsed();
        let Verdict::Delay(wait_s) = kept.limit(call, now) else { return None };
        kept.counts.delayed += 1;
        Some(self.began + now + Duration::from_secs_f64(wait_s))
    }

    pub(crate) fn answer(&self, call: &Call<'_>) -> Answer {
        let mut kept = self.lock();
        // Read under the lock, so that arrivals come in the order of their times.
        let now = self.began.elapsed();
        kept.counts.saw(call.method, call.path);
        let is_work = self.is_work(call);
        let (result, due) = match if is_work { self.work(&mut kept, call, now) } else { Ok(None) } {
            Ok(due) => (route::answer(&mut kept.state, call), due),
            Err(Refused { fault, due }) => (Err(fault), due),
        };
        let is_failed = is_work && result.is_err();
        let reply = result.unwrap_or_else(Fault::reply);
        if let Some(lockout) = kept.lockout.as_mut().filter(|_| is_failed) {
            lockout.failed(now.as_secs_f64());
        }
        *kept.counts.answers.entry(reply.status).or_default() += 1;
        Answer { reply, due: due.map(|due_ns| self.began + Duration::from_nanos(due_ns)) }
    }

    /// Whether a request takes a worker.
    fn is_work(&self, call: &Call<'_>) -> bool {
        route::is_token_request(call.path) || self.has_oidc && oidc::is_work(call)
    }

    /// Time in which workers had nothing to do, and how many there are.
    pub(crate) fn idle_s(&self) -> Option<(f64, usize)> {
        self.lock().workers.as_ref().map(|workers| (workers.idle_s, workers.number()))
    }

    /// Takes down whether a thread was the limit in a stretch of time.
    pub(crate) fn looked(&self, is_short: bool) {
        let mut kept = self.lock();
        let told = kept.counts.kept.get_or_insert_default();
        told.seconds += 1;
        told.short_seconds += u64::from(is_short);
    }

    /// What cannot even be read as a request of the API.
    pub(crate) fn refuse(&self, method: &str, path: &str, fault: Fault) -> Reply {
        let mut kept = self.lock();
        let reply = fault.reply();
        kept.counts.saw(method, path);
        *kept.counts.answers.entry(reply.status).or_default() += 1;
        reply
    }

    /// Counts a connection; gives its number.
    pub(crate) fn took_connection(&self) -> u64 {
        let mut kept = self.lock();
        kept.counts.connections += 1;
        kept.counts.connections
    }

    pub(crate) fn reset_connection(&self) {
        self.lock().counts.connections_reset += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        let kept = self.lock();
        let mut counts = kept.counts.clone();
        counts.script = self.script.happened();
        counts.tokens_evicted = kept.state.tokens.evicted;
        if let Some(oidc) = &kept.state.oidc {
            counts.tokens_evicted += oidc.evicted();
            counts.grants.clone_from(&oidc.grants);
        }
        if let Some(workers) = &kept.workers {
            (counts.worked, counts.busy_s) = (workers.taken, workers.busy_s);
            self.lateness.tell(counts.kept.get_or_insert_default());
        }
        counts
    }

    /// Passes a token request by what stands before the workers, then gives it to one of them.
    /// Returns when it will be done.
    fn work(
        &self,
        kept: &mut Kept,
        call: &Call<'_>,
        now: Duration,
    ) -> Result<Option<u64>, Refused> {
        let now_s = now.as_secs_f64();
        if let Some(retry_s) = kept.lockout.as_ref().and_then(|lockout| lockout.left_s(now_s)) {
            kept.counts.locked_out += 1;
            return Err(Fault::LockedOut { retry_s }.into());
        }
        if !self.delays
            && let Verdict::Refuse(retry_s) = kept.limit(call, now)
        {
            kept.counts.limited += 1;
            return Err(Fault::Limited { retry_s }.into());
        }
        if self.only_errors {
            return Err(Fault::Told.into());
        }
        kept.to_fail += self.error_share;
        if kept.to_fail > 1.0 - ROUNDING {
            kept.to_fail -= 1.0;
            return Err(Fault::Told.into());
        }
        kept.to_refuse += self.script.refused_share(now);
        if kept.to_refuse > 1.0 - ROUNDING {
            kept.to_refuse -= 1.0;
            kept.counts.refused_by_script += 1;
            return Err(Fault::Unavailable.into());
        }
        let Some(workers) = &mut kept.workers else { return Ok(None) };
        let at_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let slowness = |at_ns| self.script.slowness(Duration::from_nanos(at_ns));
        match workers.done_ns(at_ns, slowness) {
            Ok(done_ns) => Ok(Some(done_ns)),
            Err(Turned::Full) => {
                kept.counts.turned_away += 1;
                Err(Fault::QueueFull.into())
            }
            Err(Turned::TimedOut(at_ns)) => {
                kept.counts.queue_timeouts += 1;
                Err(Refused { fault: Fault::QueueTimeout, due: Some(at_ns) })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// What the rate limiter makes of a request.
    fn limit(&mut self, call: &Call<'_>, now: Duration) -> Verdict {
        let Some(limiter) = &mut self.limiter else { return Verdict::Pass };
        let key = match limiter.per {
            LimitPer::Service => Key::Service,
            LimitPer::Connection => Key::Connection(call.connection),
            LimitPer::User => Key::User(
                auth::claimed_user(&self.state, call)
                    .map(|id| id.to_string())
                    .or_else(|| oidc::claimed_user(call))
                    .unwrap_or_default(),
            ),
        };
        limiter.take(key, now.as_secs_f64())
    }
}

/// Why a token request is not carried out, and when that is told: at once where `due` is absent.
struct Refused {
    fault: Fault,
    due: Option<u64>,
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self { fault, due: None }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "settings are checked to be at most a year")]
pub(crate) fn micros(seconds: f64) -> i64 {
    (seconds * 1e6) as i64
}
