//! What the service has seen and answered.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::lateness::Kept;
use crate::route::segments;
use crate::script::Happened;

/// Words of the API; what else stands in a path is an id.
const WORDS: [&str; 27] = [
    "v3",
    "auth",
    "tokens",
    "catalog",
    "projects",
    "domains",
    "users",
    "roles",
    "password",
    "role_assignments",
    "services",
    "endpoints",
    "regions",
    "groups",
    "credentials",
    "loadstone",
    "counts",
    ".well-known",
    "openid-configuration",
    "oidc",
    "authorize",
    "login",
    "logout",
    "token",
    "introspect",
    "userinfo",
    "jwks",
];
/// Further kinds of request are counted together.
const MOST_KINDS: usize = 500;

/// Requests by method and path, answers by status, and the work of the workers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counts {
    /// "GET /v3/users/{id}" to how many.
    pub requests: BTreeMap<String, u64>,
    /// Status to how many.
    pub answers: BTreeMap<u16, u64>,
    /// Requests that the workers took.
    pub worked: u64,
    /// Service time of these.
    pub busy_s: f64,
    /// Requests that found the queue full.
    pub turned_away: u64,
    /// Requests that waited in the queue too long.
    pub queue_timeouts: u64,
    /// Requests that the rate limiter refused.
    pub limited: u64,
    /// Requests that the rate limiter delayed.
    pub delayed: u64,
    /// Requests refused during a lockout.
    pub locked_out: u64,
    /// Connections taken.
    pub connections: u64,
    /// Connections reset because too many were open.
    pub connections_reset: u64,
    /// Tokens forgotten while valid, because more than `max_tokens` were.
    pub tokens_evicted: u64,
    /// With a capacity: whether it was kept.
    pub kept: Option<Kept>,
    /// Requests that the script refused.
    pub refused_by_script: u64,
    /// With OpenID Connect: what was granted, by grant type, and logins and logouts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<&'static str, u64>,
    /// Faults of the script that have begun.
    pub script: Vec<Happened>,
}

impl Counts {
    pub(crate) fn saw(&mut self, method: &str, path: &str) {
        let mut kind = method.to_owned();
        kind.push(' ');
        for part in segments(path) {
            kind.push('/');
            kind.push_str(if WORDS.contains(&part) { part } else { "{id}" });
        }
        if kind.ends_with(' ') {
            kind.push('/');
        }
        if self.requests.len() >= MOST_KINDS && !self.requests.contains_key(&kind) {
            kind = "other".into();
        }
        *self.requests.entry(kind).or_default() += 1;
    }
}
