//! What the service is started with, as one value read from JSON.

use serde::Deserialize;

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
    /// What token requests take; nothing but their own cost when absent.
    pub capacity: Option<Capacity>,
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
    /// Requests that may wait; further ones are answered with 503.
    pub queue: Option<usize>,
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

/// The longest time that settings may name.
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
        at_least_one("threads", self.threads)?;
        at_least_one("max_tokens", self.max_tokens)?;
        time("token_life_s", self.token_life_s, 1.0)?;
        let Some(capacity) = &self.capacity else { return Ok(()) };
        at_least_one("workers", capacity.workers)?;
        time("service_s", capacity.service_s, 1e-6)?;
        time("stall_every_s", capacity.stall_every_s, 0.0)?;
        time("stall_s", capacity.stall_s, 0.0)?;
        time("halve_at_s", capacity.halve_at_s.unwrap_or(0.0), 0.0)?;
        if capacity.stall_s > 0.0 && capacity.stall_s >= capacity.stall_every_s {
            return Err(Refusal::Settings("stall_s must be less than stall_every_s".into()));
        }
        Ok(())
    }
}

fn at_least_one(name: &str, value: usize) -> Result<(), Refusal> {
    if value == 0 {
        return Err(Refusal::Settings(format!("{name} must be at least 1")));
    }
    Ok(())
}

fn time(name: &str, value_s: f64, least_s: f64) -> Result<(), Refusal> {
    if !(least_s..=YEAR_S).contains(&value_s) {
        return Err(Refusal::Settings(format!(
            "{name} must be from {least_s} to {YEAR_S} seconds, not {value_s}"
        )));
    }
    Ok(())
}
