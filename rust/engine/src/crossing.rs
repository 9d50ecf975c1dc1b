//! When a request is sent again: the close of its connection crossed it on the way.

use crate::connection::Answer;
use crate::samples::Outcome;
use crate::script::Request;

/// A kept-alive connection that rested this long may have been closed by the server meanwhile.
const RESTED_NS: i64 = 1_000_000;
/// A server that closes after an answer without saying so: its close crosses our next request.
const CROSSING_NS: i64 = 5_000_000;

/// How one sending of a request ended.
pub(crate) enum Attempt {
    Ended(Answer),
    /// The server had closed the connection before it saw the request.
    Crossed(Answer),
}

/// A kept connection was closed without a byte of an answer, at a moment at which the server need
/// not have read the request: what browsers, too, send again on a fresh connection. A request that
/// changes something (POST) only where the close is older than the request, as far as can be told.
pub(crate) fn is_crossed(request: &Request, answer: &Answer, last_used_ns: Option<i64>) -> bool {
    let Some(last_used_ns) = last_used_ns else { return false };
    let is_closed = matches!(answer.fault, Some(Outcome::Reset | Outcome::ClosedEarly));
    let was_resting = answer.sent_ns - last_used_ns >= RESTED_NS;
    let is_crossing = answer.done_ns - answer.sent_ns <= CROSSING_NS;
    let is_unread = request.is_idempotent || was_resting || is_crossing;
    is_closed && answer.first_byte_ns < 0 && is_unread
}
