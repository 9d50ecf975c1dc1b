//! Requests of the API.

use crate::api_error::{ApiError, Result};

/// Request of the API.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// Header X-Auth-Token.
    pub(crate) token: Option<&'a str>,
    /// Header X-Subject-Token.
    pub(crate) subject: Option<&'a str>,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) cookie: Option<&'a str>,
    pub(crate) body: &'a [u8],
    /// Scheme, host and port that the client uses.
    pub(crate) base: &'a str,
    /// Number of its connection.
    pub(crate) connection: u64,
    pub(crate) now_us: i64,
}

impl Request<'_> {
    /// Returns the parameters of the query.
    pub(crate) fn query_pairs(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}/v3{path}", self.base)
    }
}

/// Splits a path into segments, without empty ones.
pub(crate) fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty()).collect()
}

/// Refuses other methods.
pub(crate) fn allow(request: &Request<'_>, methods: &[&str]) -> Result<()> {
    if methods.contains(&request.method) { Ok(()) } else { Err(ApiError::MethodNotAllowed) }
}
