//! Errors of the API, with Keystone's messages.

use serde_json::json;

use crate::reply::Reply;

/// Result of executing a request.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

/// Reason why a request fails.
#[derive(Debug)]
pub(crate) enum ApiError {
    BadRequest(String),
    Unauthorized,
    /// Action in Keystone's policy, such as `identity:create_user`.
    Forbidden(String),
    /// Refused for the reason in the message.
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
    /// Error that the settings ask for.
    Simulated,
    QueueFull,
    /// Scripted fault.
    Unavailable,
    /// The request waited in the queue too long.
    QueueTimeout,
    /// The rate limiter has no token for this long.
    Limited {
        retry_s: f64,
    },
    /// Lockout after many failures, for this long.
    LockedOut {
        retry_s: f64,
    },
}

impl ApiError {
    pub(crate) fn not_found(kind: &'static str, id: &str) -> Self {
        Self::NotFound { kind, id: id.to_owned() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
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
            Self::Simulated => (500, "Internal Server Error"),
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
            Self::Simulated => "An unexpected error prevented the server from fulfilling your \
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
