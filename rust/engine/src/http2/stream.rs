//! One request and its answer, in a stream of its own.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::Response;

use super::{Connection, closed, head};
use crate::capture::Listener;
use crate::connection::{Answer, Question};
use crate::deadline::Passed;
use crate::response::MAX_HEADERS;
use crate::samples::Outcome;

/// How a stream failed.
struct Failed {
    outcome: Outcome,
    /// The server has said that it did not read the request (RFC 9113 8.7), or never got it.
    is_untouched: bool,
}

impl From<Outcome> for Failed {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, is_untouched: false }
    }
}

impl From<h2::Error> for Failed {
    fn from(error: h2::Error) -> Self {
        // Of a server that goes away, only streams that it has not looked at end for that reason.
        let is_refused = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
        Self { outcome: fault(&error), is_untouched: error.is_remote() && is_refused }
    }
}

/// What an error of the library is called in samples.
pub(super) fn fault(error: &h2::Error) -> Outcome {
    match error.get_io() {
        Some(error) => closed(error),
        None if error.is_remote() && error.is_go_away() => Outcome::ClosedEarly,
        None if error.is_remote() => Outcome::Reset,
        None => Outcome::BadHttp,
    }
}

impl Connection {
    /// Sends a request and reads its answer to the end; `listener` sees it go by. Also whether the
    /// server never looked at the request, so that it may be sent again.
    pub(crate) async fn exchange(
        &mut self,
        question: &Question<'_>,
        listener: &mut Listener<'_>,
    ) -> (Answer, bool) {
        let mut answer = Answer::none(None, -1);
        match self.converse(question, &mut answer, listener).await {
            Ok(()) => {
                self.last_used_ns.set(Some(answer.done_ns));
                (answer, false)
            }
            // What was given up is reset as it is dropped.
            Err(failed) => {
                answer.fault = Some(failed.outcome);
                answer.done_ns = question.clock.now_ns();
                (answer, failed.is_untouched)
            }
        }
    }

    async fn converse(
        &mut self,
        question: &Question<'_>,
        answer: &mut Answer,
        listener: &mut Listener<'_>,
    ) -> Result<(), Failed> {
        let read = match question.heads {
            Some(heads) => heads.of(question.bytes, self.scheme),
            None => head::of(question.bytes, self.scheme),
        };
        let (request, body) = read.ok_or(Outcome::BadHttp)?;
        let (mut response, stream) = self.requests.send_request(request, body.is_empty())?;
        // Where the server allows no further stream, the request waits for one to end.
        let begun = poll_fn(|cx| question.deadline.poll(cx, |cx| self.requests.poll_ready(cx)));
        begun.await.map_err(|_: Passed| Outcome::WriteTimeout)??;
        answer.sent_ns = question.clock.now_ns();
        let early = if body.is_empty() {
            None
        } else {
            send(question, stream, Bytes::copy_from_slice(body), &mut response).await?
        };
        let response = match early {
            Some(response) => response,
            None => question
                .deadline
                .within(response)
                .await
                .map_err(|_: Passed| Outcome::FirstByteTimeout)??,
        };
        let body = read_head(question, response, answer, listener)?;
        read_body(question, body, answer, listener).await
    }
}

/// What a sender waits for.
enum Next {
    /// So many bytes may be sent; none when the server wants no more of them.
    Window(Option<usize>),
    Response(Result<Response<RecvStream>, h2::Error>),
}

/// Sends the body; gives the response where it comes before all of the body was sent.
async fn send(
    question: &Question<'_>,
    mut stream: SendStream<Bytes>,
    mut body: Bytes,
    response: &mut ResponseFuture,
) -> Result<Option<Response<RecvStream>>, Failed> {
    stream.reserve_capacity(body.len());
    while !body.is_empty() {
        let next = poll_fn(|cx| {
            question.deadline.poll(cx, |cx| {
                let window = match stream.capacity() {
                    0 => stream.poll_capacity(cx),
                    window => Poll::Ready(Some(Ok(window))),
                };
                match window {
                    Poll::Ready(window) => Poll::Ready(Next::Window(window.and_then(Result::ok))),
                    Poll::Pending => Pin::new(&mut *response).poll(cx).map(Next::Response),
                }
            })
        });
        match next.await.map_err(|_: Passed| Outcome::WriteTimeout)? {
            Next::Window(Some(window)) => {
                let piece = body.split_to(window.min(body.len()));
                stream.send_data(piece, body.is_empty())?;
            }
            // A server that has answered may not want the rest; the answer says how it went.
            Next::Window(None) => return Ok(None),
            Next::Response(response) => return Ok(Some(response?)),
        }
    }
    Ok(None)
}

fn read_head(
    question: &Question<'_>,
    response: Response<RecvStream>,
    answer: &mut Answer,
    listener: &mut Listener<'_>,
) -> Result<RecvStream, Failed> {
    answer.first_byte_ns = question.clock.now_ns();
    answer.done_ns = answer.first_byte_ns;
    answer.status = response.status().as_u16();
    if response.headers().len() > MAX_HEADERS {
        return Err(Outcome::BadHttp.into());
    }
    for (name, value) in response.headers() {
        listener.header(name.as_str(), value.as_bytes());
    }
    Ok(response.into_body())
}

/// Reads the body past `listener` and drops it, as fast as it comes.
async fn read_body(
    question: &Question<'_>,
    mut body: RecvStream,
    answer: &mut Answer,
    listener: &mut Listener<'_>,
) -> Result<(), Failed> {
    while !body.is_end_stream() {
        let piece = poll_fn(|cx| question.deadline.poll(cx, |cx| body.poll_data(cx))).await;
        let piece = piece.map_err(|_: Passed| Outcome::BodyTimeout)?;
        answer.done_ns = question.clock.now_ns();
        let Some(piece) = piece.transpose()? else { break };
        listener.body(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(())
}
