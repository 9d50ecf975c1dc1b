//! Service without its sockets, which all threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
use crate::api_error::ApiError;
use crate::auth;
use crate::counts::Counts;
use crate::directory::Directory;
use crate::fault_script::FaultScript;
use crate::lateness::Lateness;
use crate::limiter::{Key, Limiter, Verdict};
use crate::lockout::Lockout;
use crate::oidc::{self, Oidc};
use crate::reply::Reply;
use crate::request::Request;
use crate::settings::{Limit, LimitMode, LimitPer, Settings};
use crate::state::State;
use crate::tokens::Tokens;
use crate::workers::{Rejected, Workers};
use crate::{route, timestamp};

/// Bound on rounding errors of sums of shares.
const ROUNDING: f64 = 1e-9;

/// State of the service, its limits and its counters.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    only_errors: bool,
    error_share: f64,
    has_oidc: bool,
    /// The rate limiter delays requests.
    delays: bool,
    began: Instant,
    pub(crate) lateness: Lateness,
    pub(crate) script: FaultScript,
}

/// State that the lock protects.
struct Inner {
    state: State,
    limiter: Option<Limiter>,
    lockout: Option<Lockout>,
    workers: Option<Workers>,
    counts: Counts,
    /// Sum of refused shares: above 1 a request is refused, so that refusals are evenly spread.
    to_refuse: f64,
    /// Sum of shares that fail with 500.
    to_fail: f64,
}

/// Reply, and when it is to be sent.
pub(crate) struct DueReply {
    pub(crate) reply: Reply,
    pub(crate) due: Option<Instant>,
}

impl Shared {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let directory = Directory::new(&settings.admin, timestamp::now_us()).map_err(|error| {
            Error::Settings(format!("user or project of the administrator: {}", error.message()))
        })?;
        let state = State {
            directory,
            tokens: Tokens::new(settings.max_tokens),
            token_life_us: timestamp::micros(settings.token_life_s),
            oidc: settings.oidc.as_ref().map(|it| Oidc::new(it, settings)).transpose()?,
        };
        let inner = Inner {
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
            inner: Mutex::new(inner),
            only_errors: settings.only_errors,
            error_share: settings.error_share,
            has_oidc: settings.oidc.is_some(),
            delays: settings.limit.as_ref().is_some_and(is_delay),
            began,
            lateness: Lateness::default(),
            script: FaultScript::new(&settings.script, began),
        })
    }

    /// Returns until when the rate limiter delays a request.
    pub(crate) fn delay(&self, request: &Request<'_>) -> Option<Instant> {
        if !self.delays || !self.needs_worker(request) {
            return None;
        }
        let mut inner = self.lock();
        let now = self.began.elapsed();
        let Verdict::Delay(wait_s) = inner.limit(request, now) else { return None };
        inner.counts.delayed += 1;
        Some(self.began + now + Duration::from_secs_f64(wait_s))
    }

    /// Executes a request.
    pub(crate) fn handle(&self, request: &Request<'_>) -> DueReply {
        let mut inner = self.lock();
        // The clock is read under the lock, so that arrivals are in the order of their times.
        let now = self.began.elapsed();
        inner.counts.count_request(request.method, request.path);
        let needs_worker = self.needs_worker(request);
        let (result, due) = match if needs_worker {
            self.assign_worker(&mut inner, request, now)
        } else {
            Ok(None)
        } {
            Ok(due) => (route::handle(&mut inner.state, request), due),
            Err(Refused { error, due }) => (Err(error), due),
        };
        let reply = result.unwrap_or_else(ApiError::reply);
        let is_failed = needs_worker && reply.status >= 400;
        if let Some(lockout) = inner.lockout.as_mut().filter(|_| is_failed) {
            lockout.failed(now.as_secs_f64());
        }
        *inner.counts.answers.entry(reply.status).or_default() += 1;
        DueReply { reply, due: due.map(|due_ns| self.began + Duration::from_nanos(due_ns)) }
    }

    /// Whether a request needs a worker.
    fn needs_worker(&self, request: &Request<'_>) -> bool {
        route::is_token_request(request.path) || self.has_oidc && oidc::needs_worker(request)
    }

    /// Returns the idle time and the number of workers.
    pub(crate) fn idle_s(&self) -> Option<(f64, usize)> {
        self.lock().workers.as_ref().map(|workers| (workers.idle_s, workers.number()))
    }

    /// Records whether a thread was the limit in the last second.
    pub(crate) fn record_check(&self, is_thread_limit: bool) {
        let mut inner = self.lock();
        let report = inner.counts.kept.get_or_insert_default();
        report.seconds += 1;
        report.short_seconds += u64::from(is_thread_limit);
    }

    /// Counts a request that could not be read, and returns its reply.
    pub(crate) fn refuse(&self, method: &str, path: &str, error: ApiError) -> Reply {
        let mut inner = self.lock();
        let reply = error.reply();
        inner.counts.count_request(method, path);
        *inner.counts.answers.entry(reply.status).or_default() += 1;
        reply
    }

    /// Counts a connection and returns its number.
    pub(crate) fn count_connection(&self) -> u64 {
        let mut inner = self.lock();
        inner.counts.connections += 1;
        inner.counts.connections
    }

    pub(crate) fn count_reset(&self) {
        self.lock().counts.connections_reset += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        let inner = self.lock();
        let mut counts = inner.counts.clone();
        counts.script = self.script.injected();
        counts.tokens_evicted = inner.state.tokens.evicted();
        if let Some(oidc) = &inner.state.oidc {
            counts.tokens_evicted += oidc.evicted();
            counts.grants.clone_from(&oidc.grants);
        }
        if let Some(workers) = &inner.workers {
            (counts.worked, counts.busy_s) = (workers.taken, workers.busy_s);
            self.lateness.report(counts.kept.get_or_insert_default());
        }
        counts
    }

    /// Applies limits and faults, then assigns a worker. Returns when the request will be done.
    fn assign_worker(
        &self,
        inner: &mut Inner,
        request: &Request<'_>,
        now: Duration,
    ) -> Result<Option<u64>, Refused> {
        let now_s = now.as_secs_f64();
        if let Some(retry_s) = inner.lockout.as_ref().and_then(|lockout| lockout.left_s(now_s)) {
            inner.counts.locked_out += 1;
            return Err(ApiError::LockedOut { retry_s }.into());
        }
        if !self.delays
            && let Verdict::Refuse(retry_s) = inner.limit(request, now)
        {
            inner.counts.limited += 1;
            return Err(ApiError::Limited { retry_s }.into());
        }
        if self.only_errors {
            return Err(ApiError::Simulated.into());
        }
        inner.to_fail += self.error_share;
        if inner.to_fail > 1.0 - ROUNDING {
            inner.to_fail -= 1.0;
            return Err(ApiError::Simulated.into());
        }
        inner.to_refuse += self.script.refused_share(now);
        if inner.to_refuse > 1.0 - ROUNDING {
            inner.to_refuse -= 1.0;
            inner.counts.refused_by_script += 1;
            return Err(ApiError::Unavailable.into());
        }
        let Some(workers) = &mut inner.workers else { return Ok(None) };
        let at_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let slowness = |at_ns| self.script.slowness(Duration::from_nanos(at_ns));
        match workers.done_ns(at_ns, slowness) {
            Ok(done_ns) => Ok(Some(done_ns)),
            Err(Rejected::QueueFull) => {
                inner.counts.turned_away += 1;
                Err(ApiError::QueueFull.into())
            }
            Err(Rejected::TimedOut(at_ns)) => {
                inner.counts.queue_timeouts += 1;
                Err(Refused { error: ApiError::QueueTimeout, due: Some(at_ns) })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Applies the rate limiter to a request.
    fn limit(&mut self, request: &Request<'_>, now: Duration) -> Verdict {
        let Some(limiter) = &mut self.limiter else { return Verdict::Pass };
        let key = match limiter.per {
            LimitPer::Service => Key::Service,
            LimitPer::Connection => Key::Connection(request.connection),
            LimitPer::User => Key::User(
                auth::claimed_user(&self.state, request)
                    .map(|id| id.to_string())
                    .or_else(|| self.state.oidc.as_ref()?.claimed_user(request))
                    .unwrap_or_default(),
            ),
        };
        limiter.take(key, now.as_secs_f64())
    }
}

/// Reason why a token request is refused, and when to reply: at once if `due` is none.
struct Refused {
    error: ApiError,
    due: Option<u64>,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self { error, due: None }
    }
}
