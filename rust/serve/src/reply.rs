//! Replies of the API.

use serde::Serialize;

/// Status, body and variable headers of a reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Header X-Subject-Token.
    pub(crate) token: Option<String>,
    /// Whether to add Keystone's header WWW-Authenticate.
    pub(crate) asks_for_credentials: bool,
    /// Header Retry-After, rounded up to whole seconds.
    pub(crate) retry_after_s: Option<f64>,
    /// Other headers. A Content-Type replaces that of JSON.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &impl Serialize) -> Self {
        // Fails only for maps with keys that are not strings, which no reply has.
        Self { status, body: serde_json::to_vec(body).unwrap_or_default(), ..Self::empty() }
    }

    pub(crate) fn empty() -> Self {
        Self {
            status: 204,
            body: Vec::new(),
            token: None,
            asks_for_credentials: false,
            retry_after_s: None,
            headers: Vec::new(),
        }
    }

    /// Creates an HTML page.
    pub(crate) fn page(status: u16, html: String) -> Self {
        let mut reply = Self { status, body: html.into_bytes(), ..Self::empty() };
        reply.headers.push(("content-type", "text/html; charset=utf-8".to_owned()));
        reply
    }

    /// Creates a redirect.
    pub(crate) fn redirect(location: String) -> Self {
        let mut reply = Self { status: 302, ..Self::empty() };
        reply.headers.push(("location", location));
        reply
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}
