//! An answer before it becomes HTTP.

use serde::Serialize;

/// Status, body and the headers that differ from answer to answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// X-Subject-Token.
    pub(crate) token: Option<String>,
    /// WWW-Authenticate.
    pub(crate) asks_for_credentials: bool,
    /// Retry-After, rounded up to whole seconds.
    pub(crate) retry_after_s: Option<f64>,
    /// Further headers. A Content-Type takes the place of JSON's.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &impl Serialize) -> Self {
        Self {
            status,
            // Fails only for maps with keys that are no text, which no answer has.
            body: serde_json::to_vec(body).unwrap_or_default(),
            token: None,
            asks_for_credentials: false,
            retry_after_s: None,
            headers: Vec::new(),
        }
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

    /// An HTML page.
    pub(crate) fn page(status: u16, html: String) -> Self {
        let mut reply = Self { status, body: html.into_bytes(), ..Self::empty() };
        reply.headers.push(("content-type", "text/html; charset=utf-8".to_owned()));
        reply
    }

    /// A redirect.
    pub(crate) fn redirect(location: String) -> Self {
        let mut reply = Self { status: 302, ..Self::empty() };
        reply.headers.push(("location", location));
        reply
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}
