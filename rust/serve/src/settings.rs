//! What the service is started with, as one value read from JSON.

use serde::{Deserialize, Serialize};

use crate::Refusal;

/// Where the service listens, whom it knows, what it bears. Holds a secret: it cannot be printed.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// An address of this machine, as digits.
    pub host: String,
    /// 0 takes a free one.
    pub port: u16,
    /// Threads that serve.
    pub threads: usize,
    /// The first user.
    pub admin: Admin,
    /// How long a token lives.
    pub token_life_s: f64,
    /// How many tokens are kept; the oldest go first.
    pub max_tokens: usize,
    /// Token requests are answered with 500.
    pub only_errors: bool,
    /// Share of the token requests that are answered with 500, at any rate.
    #[serde(default)]
    pub error_share: f64,
    /// What token requests take; nothing but their own cost when absent.
    pub capacity: Option<Capacity>,
    /// A rate limiter in front of token requests.
    pub limit: Option<Limit>,
    /// Token requests are refused for a while after many failures.
    pub lockout: Option<Lockout>,
    /// A connection is closed when its client has sent nothing to answer for so long.
    pub idle_timeout_s: f64,
    /// How many connections may be open.
    pub connections: Option<Connections>,
    /// The service also speaks OpenID Connect.
    #[serde(default)]
    pub oidc: Option<OidcSettings>,
    /// Faults, in the order of time; they do not overlap.
    #[serde(default)]
    pub script: Vec<Scripted>,
}

/// The one client of the OpenID provider, and its users.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// The client's id.
    pub client_id: String,
    /// In clear; it is compared as it stands.
    pub client_secret: String,
    /// Where logins and logouts lead back to.
    pub redirect_uri: String,
    /// Names and passwords.
    pub users: Vec<(String, String)>,
}

/// A fault at a given instant.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scripted {
    /// What happens.
    pub kind: Kind,
    /// Seconds after the service's start.
    pub at_s: f64,
    /// How long it lasts.
    pub lasts_s: f64,
    /// By which factor it is slower, or which share it refuses; nothing else while it is dark.
    pub amount: f64,
}

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The port is closed, and every connection.
    Dark,
    /// Token requests take longer.
    Slow,
    /// Token requests are answered with 503.
    Refuse,
}

/// The user that may do everything, and the project in which it has the role admin.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Its name.
    pub user: String,
    /// In clear; it is compared as it stands.
    pub password: String,
    /// The project's name.
    pub project: String,
}

/// Workers behind one queue: `workers` / `service_s` requests a second.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Requests served at once.
    pub workers: usize,
    /// Mean service time.
    pub service_s: f64,
    /// How service times vary.
    pub law: Law,
    /// Every so many service times in a row have exactly the mean; 0 leaves them to chance.
    pub even_over: usize,
    /// Begins a stall every so often; 0 for none.
    pub stall_every_s: f64,
    /// How long nothing begins.
    pub stall_s: f64,
    /// From then on service takes twice as long.
    pub halve_at_s: Option<f64>,
    /// By which share every 1,000 requests lengthen the next ones' service.
    #[serde(default)]
    pub decline: f64,
    /// With more requests inside, an arriving one takes `collapse_by` times as long.
    #[serde(default)]
    pub collapse_above: Option<usize>,
    /// The factor of a collapse.
    #[serde(default = "one")]
    pub collapse_by: f64,
    /// Requests that may wait; further ones are answered with 503.
    pub max_queue: Option<usize>,
    /// A request that has waited so long is answered with 503.
    pub queue_timeout_s: Option<f64>,
    /// Of the service times.
    pub seed: u64,
}

/// The distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// All alike.
    Fixed,
    /// Exponential.
    Exponential,
    /// Hyperexponential, squared coefficient of variation 4: many short, a few long.
    Bursty,
}

/// Token buckets: each holds `rate_rps` * `burst_s` tokens, at least one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Tokens that a bucket gets a second.
    pub rate_rps: f64,
    /// Time in which an empty bucket fills.
    pub burst_s: f64,
    /// What becomes of a request without a token.
    pub mode: LimitMode,
    /// Who shares a bucket.
    pub per: LimitPer,
}

/// What a limiter does with a request for which it has no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitMode {
    /// 429 with Retry-After.
    Refuse,
    /// It waits for its token.
    Delay,
}

/// Who shares a bucket of the limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPer {
    /// All requests.
    Service,
    /// Those of one connection.
    Connection,
    /// Those of one user.
    User,
}

/// `after` failed token requests within `lasts_s` lock all token requests out for `lasts_s`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lockout {
    /// Failures that begin it.
    pub after: usize,
    /// How long it lasts.
    pub lasts_s: f64,
}

/// A limit on open connections.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Open at once.
    pub most: usize,
    /// What becomes of the next one.
    pub over: OverConnections,
}

/// What becomes of a connection above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverConnections {
    /// The port is closed until a connection ends.
    Refuse,
    /// It is accepted and reset.
    Reset,
    /// It stays in the kernel's listen queue until a connection ends.
    Wait,
}

/// The longest time that settings may name. Messages call settings by their options.
const YEAR_S: f64 = 365.0 * 86_400.0;

impl Settings {
    /// Reads and checks settings.
    pub fn from_json(text: &str) -> Result<Self, Refusal> {
        let settings: Self =
            serde_json::from_str(text).map_err(|error| Refusal::Settings(error.to_string()))?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Refusal> {
        count("--threads", self.threads, 256)?;
        count("--max-tokens", self.max_tokens, 10_000_000)?;
        time("--token-life", self.token_life_s, 1.0)?;
        time("--idle-timeout", self.idle_timeout_s, 0.1)?;
        number("--error-share", self.error_share, 0.0, 1.0)?;
        if let Some(limit) = &self.limit {
            limit.check()?;
        }
        if let Some(lockout) = &self.lockout {
            count("--lockout-after", lockout.after, 1_000_000)?;
            time("--lockout-for", lockout.lasts_s, 1e-3)?;
        }
        if let Some(connections) = &self.connections {
            count("--max-connections", connections.most, 1_000_000)?;
        }
        self.check_script()?;
        self.capacity.as_ref().map_or(Ok(()), Capacity::check)
    }

    fn check_script(&self) -> Result<(), Refusal> {
        let mut free_s = 0.0;
        for (number, fault) in self.script.iter().enumerate() {
            let name = format!("--script: fault {}", number + 1);
            time(&format!("{name}: at"), fault.at_s, 0.0)?;
            time(&format!("{name}: for"), fault.lasts_s, 1e-3)?;
            let wrong = match fault.kind {
                _ if fault.at_s < free_s => "begins before the one before it has ended",
                Kind::Slow if self.capacity.is_none() => {
                    "slow needs --capacity: without it nothing takes time"
                }
                Kind::Slow if !(0.01..=1e6).contains(&fault.amount) => {
                    "slow must be a factor from 0.01 to 1000000"
                }
                Kind::Refuse if !(0.0..=1.0).contains(&fault.amount) => {
                    "refuse must be a share from 0 to 1"
                }
                _ => "",
            };
            if !wrong.is_empty() {
                return Err(Refusal::Settings(format!("{name}: {wrong}")));
            }
            free_s = fault.at_s + fault.lasts_s;
        }
        Ok(())
    }
}

impl Limit {
    fn check(&self) -> Result<(), Refusal> {
        if !(1e-3..=1e6).contains(&self.rate_rps) {
            return Err(Refusal::Settings(format!(
                "--limit must be from 0.001 to 1000000 a second, not {}",
                self.rate_rps
            )));
        }
        time("--burst", self.burst_s, 0.0)
    }
}

impl Capacity {
    fn check(&self) -> Result<(), Refusal> {
        count("--workers", self.workers, 10_000)?;
        count("--even-over", self.even_over.max(1), 100_000)?;
        count("--max-queue", self.max_queue.unwrap_or(1).max(1), 1_000_000)?;
        time("the service time (--workers / --capacity)", self.service_s, 1e-6)?;
        time("--stall-every", self.stall_every_s, 0.0)?;
        time("--stall", self.stall_s, 0.0)?;
        time("--halve-at", self.halve_at_s.unwrap_or(0.0), 0.0)?;
        number("--decline", self.decline, 0.0, 1.0)?;
        count("--collapse-above", self.collapse_above.unwrap_or(1), 1_000_000)?;
        number("--collapse-by", self.collapse_by, 1.0, 1000.0)?;
        time("--queue-timeout", self.queue_timeout_s.unwrap_or(1.0), 1e-3)?;
        if self.stall_s > 0.0 && self.stall_s >= self.stall_every_s {
            return Err(Refusal::Settings("--stall must be shorter than --stall-every".into()));
        }
        Ok(())
    }
}

fn count(name: &str, value: usize, most: usize) -> Result<(), Refusal> {
    if !(1..=most).contains(&value) {
        return Err(Refusal::Settings(format!("{name} must be from 1 to {most}, not {value}")));
    }
    Ok(())
}

fn number(name: &str, value: f64, least: f64, most: f64) -> Result<(), Refusal> {
    if !(least..=most).contains(&value) {
        return Err(Refusal::Settings(format!(
            "{name} must be from {least} to {most}, not {value}"
        )));
    }
    Ok(())
}

/// The default of a factor.
fn one() -> f64 {
    1.0
}

fn time(name: &str, value_s: f64, least_s: f64) -> Result<(), Refusal> {
    if !(least_s..=YEAR_S).contains(&value_s) {
        return Err(Refusal::Settings(format!(
            "{name} must be from {least_s} to {YEAR_S} seconds, not {value_s}"
        )));
    }
    Ok(())
}
