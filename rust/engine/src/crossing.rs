//! When a request is sent a second time: the server closed the kept connection before it can have
//! read the request.

use crate::connection::Answer;
use crate::samples::Outcome;

/// A close that follows the send within this time was on its way before the server can have read
/// the request and worked on it. A later one may be a worker that died over the request.
const CROSSING_NS: i64 = 5_000_000;

/// How one sending of a request ended.
pub(crate) enum Attempt {
    Ended(Answer),
    /// The server had closed the connection before it saw the request.
    Crossed(Answer),
}

/// Whether a kept connection was closed without a byte of an answer at the moment of the send.
/// Browsers and HTTP libraries send such a request again on a fresh connection.
pub(crate) fn is_crossed(answer: &Answer, last_used_ns: Option<i64>) -> bool {
    let is_closed = matches!(answer.fault, Some(Outcome::Reset | Outcome::ClosedEarly));
    let is_at_once = answer.done_ns - answer.sent_ns <= CROSSING_NS;
    last_used_ns.is_some() && is_closed && answer.first_byte_ns < 0 && is_at_once
}
