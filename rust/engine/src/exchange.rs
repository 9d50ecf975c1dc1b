//! A request as it is sent on a connection, its response, and the rule for sending it again.

use crate::clock::Clock;
use crate::deadline::Deadline;
use crate::outcome::Outcome;

/// Request that is ready to be sent.
pub(crate) struct Request<'a> {
    pub bytes: &'a [u8],
    /// Its method is HEAD.
    pub is_head: bool,
    pub sent_ns: i64,
    pub deadline: &'a Deadline,
    pub clock: Clock,
}

/// Response, or why there is none; times as in the sample table.
pub(crate) struct Response {
    pub sent_ns: i64,
    pub first_byte_ns: i64,
    pub done_ns: i64,
    pub status: u16,
    /// None when the response is complete.
    pub failure: Option<Outcome>,
    /// The request was sent twice: the server had closed the first connection.
    pub is_retried: bool,
}

impl Response {
    /// A response of which nothing has arrived.
    pub(crate) fn none(failure: Option<Outcome>, done_ns: i64) -> Self {
        Self { sent_ns: -1, first_byte_ns: -1, done_ns, status: 0, failure, is_retried: false }
    }
}

/// Result of sending a request once.
pub(crate) enum Attempt {
    Done(Response),
    /// The server had closed the connection before it read the request.
    ClosedBeforeRead(Response),
}

/// Longest time between a send and a close that crossed it on the way: the server cannot have read
/// the request and worked on it. A later close may be a worker that died while it handled the
/// request.
const CLOSE_RACE_NS: i64 = 5_000_000;

/// Whether a kept-alive connection was closed at the moment of the send, without a byte of a
/// response. Browsers and HTTP libraries send such a request again on a new connection.
pub(crate) fn was_closed_before_read(response: &Response, last_used_ns: Option<i64>) -> bool {
    let is_closed = matches!(response.failure, Some(Outcome::Reset | Outcome::ClosedEarly));
    let is_immediate = response.done_ns - response.sent_ns <= CLOSE_RACE_NS;
    last_used_ns.is_some() && is_closed && response.first_byte_ns < 0 && is_immediate
}
