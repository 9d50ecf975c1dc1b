//! An answer before it becomes HTTP.

use serde_json::Value;

/// Status, body and the headers that differ from answer to answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// X-Subject-Token.
    pub(crate) token: Option<String>,
    /// WWW-Authenticate.
    pub(crate) asks_for_credentials: bool,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            body: body.to_string().into_bytes(),
            token: None,
            asks_for_credentials: false,
        }
    }

    pub(crate) fn empty() -> Self {
        Self { status: 204, body: Vec::new(), token: None, asks_for_credentials: false }
    }
}
