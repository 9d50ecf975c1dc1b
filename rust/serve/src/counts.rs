//! Counters of the service.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::fault_script::InjectedFault;
use crate::lateness::CapacityKept;
use crate::request::segments;

/// Words in paths of the API; other segments are ids.
#[rustfmt::skip]
const WORDS: [&str; 27] = [
    "v3", "auth", "tokens", "catalog", "projects", "domains", "users", "roles", "password",
    "role_assignments", "services", "endpoints", "regions", "groups", "credentials", "loadstone",
    "counts", ".well-known", "openid-configuration", "oidc", "authorize", "login", "logout",
    "token", "introspect", "userinfo", "jwks",
];
/// Limit on kinds of requests; others are counted together.
const MAX_KINDS: usize = 500;

/// Counters of requests, responses and the work of the workers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Counts {
    /// Requests by method and path, such as "GET /v3/users/{id}".
    pub requests: BTreeMap<String, u64>,
    /// Responses by status.
    pub answers: BTreeMap<u16, u64>,
    /// Requests that workers processed.
    pub worked: u64,
    /// Service time of these requests.
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
    /// Accepted connections.
    pub connections: u64,
    /// Connections reset because too many were open.
    pub connections_reset: u64,
    /// Valid tokens that were evicted because there were more than `max_tokens`.
    pub tokens_evicted: u64,
    /// Whether the capacity was kept, if there is one.
    pub kept: Option<CapacityKept>,
    /// Requests that the script refused.
    pub refused_by_script: u64,
    /// With OpenID Connect: grants by type, logins and logouts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<&'static str, u64>,
    /// Scripted faults that have begun.
    pub script: Vec<InjectedFault>,
}

impl Counts {
    pub(crate) fn count_request(&mut self, method: &str, path: &str) {
        let mut kind = method.to_owned();
        kind.push(' ');
        for part in segments(path) {
            kind.push('/');
            kind.push_str(if WORDS.contains(&part) { part } else { "{id}" });
        }
        if kind.ends_with(' ') {
            kind.push('/');
        }
        if self.requests.len() >= MAX_KINDS && !self.requests.contains_key(&kind) {
            kind = "other".into();
        }
        *self.requests.entry(kind).or_default() += 1;
    }
}
