//! Settings of the service, read from JSON.

use serde::{Deserialize, Serialize};

use crate::Error;

/// Settings of the service. They hold secrets, so they do not implement Debug.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// IP address to listen on.
    pub host: String,
    /// TCP port; 0 for any free one.
    pub port: u16,
    /// Number of threads that serve connections.
    pub threads: usize,
    /// Administrator.
    pub admin: Admin,
    /// Lifetime of tokens.
    pub token_life_s: f64,
    /// Limit on valid tokens; those that expire first are evicted.
    pub max_tokens: usize,
    /// Whether all token requests fail with 500.
    pub only_errors: bool,
    /// Share of token requests that fail with 500.
    #[serde(default)]
    pub error_share: f64,
    /// Capacity for token requests; by default only limited by the machine.
    pub capacity: Option<Capacity>,
    /// Rate limiter for token requests.
    pub limit: Option<Limit>,
    /// Lockout after failed token requests.
    pub lockout: Option<Lockout>,
    /// Idle time after which connections are closed.
    pub idle_timeout_s: f64,
    /// Limit on open connections.
    pub connections: Option<Connections>,
    /// OpenID provider.
    #[serde(default)]
    pub oidc: Option<OidcSettings>,
    /// Scripted faults, in order and without overlap.
    #[serde(default)]
    pub script: Vec<ScriptedFault>,
}

/// Client and users of the OpenID provider.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// Id of the client.
    pub client_id: String,
    /// In clear text.
    pub client_secret: String,
    /// URL that logins and logouts redirect to.
    pub redirect_uri: String,
    /// Names and passwords of users.
    pub users: Vec<(String, String)>,
}

/// Fault at a given time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Seconds after the service's start.
    pub at_s: f64,
    /// Duration.
    pub lasts_s: f64,
    /// Factor of slowness, or refused share; unused if dark.
    pub amount: f64,
}

/// Kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The port and all connections are closed.
    Dark,
    /// Token requests take longer.
    Slow,
    /// A share of token requests fails with 503.
    Refuse,
}

/// Administrator, and the project in which it has the role admin.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Name of the user.
    pub user: String,
    /// In clear text.
    pub password: String,
    /// Name of the project.
    pub project: String,
}

/// Capacity of a queue with workers: `workers` / `service_s` requests per second.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Number of workers.
    pub workers: usize,
    /// Mean service time.
    pub service_s: f64,
    /// Distribution of service times.
    pub law: Law,
    /// Number of successive service times whose mean is exact; 0 for independent ones.
    pub even_over: usize,
    /// Period of stalls; 0 for none.
    pub stall_every_s: f64,
    /// Duration of a stall, in which no work begins.
    pub stall_s: f64,
    /// Time from which service times are doubled.
    pub halve_at_s: Option<f64>,
    /// Share by which service times grow every 1,000 requests.
    #[serde(default)]
    pub decline: f64,
    /// Number of requests above which an arriving one takes `collapse_by` times as long.
    #[serde(default)]
    pub collapse_above: Option<usize>,
    /// Factor of a collapse.
    #[serde(default = "one")]
    pub collapse_by: f64,
    /// Limit on waiting requests; others fail with 503.
    pub max_queue: Option<usize>,
    /// Waiting time after which a request fails with 503.
    pub queue_timeout_s: Option<f64>,
    /// Seed of the service times.
    pub seed: u64,
}

/// Distribution of service times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Constant.
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
    /// Tokens per second and bucket.
    pub rate_rps: f64,
    /// Time in which an empty bucket fills.
    pub burst_s: f64,
    /// Treatment of requests without a token.
    pub mode: LimitMode,
    /// Requests that share a bucket.
    pub per: LimitPer,
}

/// Treatment of requests without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitMode {
    /// Refuse with 429 and Retry-After.
    Refuse,
    /// Delay until there is a token.
    Delay,
}

/// Requests that share a bucket of the rate limiter.
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
    /// Number of failures.
    pub after: usize,
    /// Duration.
    pub lasts_s: f64,
}

/// A limit on open connections.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Limit.
    pub most: usize,
    /// Treatment of connections above the limit.
    pub over: OverConnections,
}

/// Treatment of connections above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverConnections {
    /// The port is closed until a connection ends.
    Refuse,
    /// Connections are accepted and reset.
    Reset,
    /// Connections stay in the accept queue until another one ends.
    Wait,
}

/// Limit on times in settings. Messages name settings by their options.
const YEAR_S: f64 = 365.0 * 86_400.0;

impl Settings {
    /// Parses and checks settings.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let settings: Self =
            serde_json::from_str(text).map_err(|error| Error::Settings(error.to_string()))?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), Error> {
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

    fn check_script(&self) -> Result<(), Error> {
        let mut free_s = 0.0;
        for (number, fault) in self.script.iter().enumerate() {
            let name = format!("--script: fault {}", number + 1);
            time(&format!("{name}: at"), fault.at_s, 0.0)?;
            time(&format!("{name}: for"), fault.lasts_s, 1e-3)?;
            let wrong = match fault.kind {
                _ if fault.at_s < free_s => "begins before the one before it has ended",
                FaultKind::Slow if self.capacity.is_none() => {
                    "slow needs --capacity: without it nothing takes time"
                }
                FaultKind::Slow if !(0.01..=1e6).contains(&fault.amount) => {
                    "slow must be a factor from 0.01 to 1000000"
                }
                FaultKind::Refuse if !(0.0..=1.0).contains(&fault.amount) => {
                    "refuse must be a share from 0 to 1"
                }
                _ => "",
            };
            if !wrong.is_empty() {
                return Err(Error::Settings(format!("{name}: {wrong}")));
            }
            free_s = fault.at_s + fault.lasts_s;
        }
        Ok(())
    }
}

impl Limit {
    fn check(&self) -> Result<(), Error> {
        if !(1e-3..=1e6).contains(&self.rate_rps) {
            return Err(Error::Settings(format!(
                "--limit must be from 0.001 to 1000000 a second, not {}",
                self.rate_rps
            )));
        }
        time("--burst", self.burst_s, 0.0)
    }
}

impl Capacity {
    fn check(&self) -> Result<(), Error> {
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
            return Err(Error::Settings("--stall must be shorter than --stall-every".into()));
        }
        Ok(())
    }
}

fn count(name: &str, value: usize, most: usize) -> Result<(), Error> {
    if !(1..=most).contains(&value) {
        return Err(Error::Settings(format!("{name} must be from 1 to {most}, not {value}")));
    }
    Ok(())
}

fn number(name: &str, value: f64, least: f64, most: f64) -> Result<(), Error> {
    if !(least..=most).contains(&value) {
        return Err(Error::Settings(format!("{name} must be from {least} to {most}, not {value}")));
    }
    Ok(())
}

/// Default of a factor.
fn one() -> f64 {
    1.0
}

fn time(name: &str, value_s: f64, least_s: f64) -> Result<(), Error> {
    if !(least_s..=YEAR_S).contains(&value_s) {
        return Err(Error::Settings(format!(
            "{name} must be from {least_s} to {YEAR_S} seconds, not {value_s}"
        )));
    }
    Ok(())
}
