//! What the service refuses, in Keystone's words.

use serde_json::json;

use crate::reply::Reply;

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Fault {
    BadRequest(String),
    Unauthorized,
    /// The action, as Keystone's policy calls it: `identity:create_user`.
    Forbidden(String),
    /// Understood, and refused for its own reason.
    Refused(String),
    NotFound {
        kind: &'static str,
        id: String,
    },
    UnknownToken,
    UnknownUrl,
    MethodNotAllowed,
    Conflict {
        kind: &'static str,
        name: String,
    },
    TooLarge,
    /// It was told to answer errors only.
    Told,
    QueueFull,
    /// The script says so.
    Unavailable,
    /// It waited in the queue too long.
    QueueTimeout,
    /// The rate limiter has no token; the next comes after so long.
    Limited {
        retry_s: f64,
    },
    /// After many failures; it lasts so much longer.
    LockedOut {
        retry_s: f64,
    },
}

impl Fault {
    pub(crate) fn missing(kind: &'static str, id: &str) -> Self {
        Self::NotFound { kind, id: id.to_owned() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::BadRequest(message.into())
    }

    pub(crate) fn reply(self) -> Reply {
        let (status, title) = match &self {
            Self::BadRequest(_) => (400, "Bad Request"),
            Self::Unauthorized => (401, "Unauthorized"),
            Self::Forbidden(_) | Self::Refused(_) | Self::LockedOut { .. } => (403, "Forbidden"),
            Self::NotFound { .. } | Self::UnknownToken | Self::UnknownUrl => (404, "Not Found"),
            Self::MethodNotAllowed => (405, "Method Not Allowed"),
            Self::Conflict { .. } => (409, "Conflict"),
            Self::TooLarge => (413, "Request Entity Too Large"),
            Self::Limited { .. } => (429, "Too Many Requests"),
            Self::Told => (500, "Internal Server Error"),
            Self::QueueFull | Self::QueueTimeout | Self::Unavailable => {
                (503, "Service Unavailable")
            }
        };
        let retry_s = match self {
            Self::Limited { retry_s } | Self::LockedOut { retry_s } => Some(retry_s),
            _ => None,
        };
        let mut reply = Reply::json(
            status,
            &json!({"error": {"code": status, "message": self.message(), "title": title}}),
        );
        reply.asks_for_credentials = status == 401;
        reply.retry_after_s = retry_s;
        reply
    }

    pub(crate) fn message(self) -> String {
        match self {
            Self::BadRequest(message) | Self::Refused(message) => message,
            Self::Unauthorized => "The request you have made requires authentication.".into(),
            Self::Forbidden(action) => {
                format!("You are not authorized to perform the requested action: {action}.")
            }
            Self::NotFound { kind, id } => format!("Could not find {kind}: {id}."),
            Self::UnknownToken => "Failed to validate token".into(),
            Self::UnknownUrl => "The requested URL was not found on the server. If you entered \
                                 the URL manually please check your spelling and try again."
                .into(),
            Self::MethodNotAllowed => "The method is not allowed for the requested URL.".into(),
            Self::Conflict { kind, name } => format!(
                "Conflict occurred attempting to store {kind} - Duplicate entry found with name \
                 {name}."
            ),
            Self::TooLarge => "Request is too large.".into(),
            Self::Told => "An unexpected error prevented the server from fulfilling your \
                           request."
                .into(),
            Self::QueueFull => "The queue is full.".into(),
            Self::Unavailable => "The service is unavailable for a moment.".into(),
            Self::QueueTimeout => "The request waited in the queue too long.".into(),
            Self::Limited { .. } => "The rate limit is exceeded.".into(),
            Self::LockedOut { .. } => "Locked out after too many failures.".into(),
        }
    }
}
