//! HTTP/2 streams: one request and its response.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};

use super::head::{self, HeadCache};
use crate::capture::CaptureSink;
use crate::connection::io_failure;
use crate::exchange::{Request, Response, was_closed_before_read};
use crate::outcome::Outcome;
use crate::plan::Scheme;
use crate::response::MAX_HEADERS;

/// Failure of a stream.
struct Failure {
    outcome: Outcome,
    /// The server stated that it did not process the request (RFC 9113 8.7).
    is_unprocessed: bool,
    /// The stream was reset, not the connection.
    is_reset: bool,
}

impl From<Outcome> for Failure {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, is_unprocessed: false, is_reset: false }
    }
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        // GOAWAY ends only streams that the server has not processed.
        let is_refused = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
        Self {
            outcome: outcome_of(&error),
            is_unprocessed: error.is_remote() && is_refused,
            is_reset: error.is_reset(),
        }
    }
}

/// Maps an error of h2 to an outcome.
pub(super) fn outcome_of(error: &h2::Error) -> Outcome {
    match error.get_io() {
        // h2 reports a closed connection with these kinds.
        Some(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Other) => {
            Outcome::ClosedEarly
        }
        Some(error) => io_failure(error.kind()),
        None if error.is_remote() && error.is_go_away() => Outcome::ClosedEarly,
        None if error.is_remote() => Outcome::Reset,
        None => Outcome::BadHttp,
    }
}

/// Handle of an open connection.
#[derive(Clone)]
pub(crate) struct Connection {
    requests: SendRequest<Bytes>,
    scheme: Scheme,
    /// Completion of the last response; none for a new connection.
    last_used_ns: Rc<Cell<Option<i64>>>,
}

impl Connection {
    pub(super) fn new(requests: SendRequest<Bytes>, scheme: Scheme) -> Self {
        Self { requests, scheme, last_used_ns: Rc::default() }
    }

    /// Polls until the server allows another stream.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        self.requests.poll_ready(cx)
    }

    /// Sends a request and reads its response, which is passed to `sink`. Also returns whether the
    /// server did not read or process the request, so that it may be sent again.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request<'_>,
        heads: Option<&HeadCache>,
        sink: &mut CaptureSink<'_>,
    ) -> (Response, bool) {
        let last_used_ns = self.last_used_ns.get();
        let mut response = Response::none(None, -1);
        match self.send_and_receive(request, heads, &mut response, sink).await {
            Ok(()) => {
                self.last_used_ns.set(Some(response.done_ns));
                (response, false)
            }
            // Dropping an incomplete stream resets it.
            Err(failure) => {
                response.failure = Some(failure.outcome);
                response.done_ns = request.clock.now_ns();
                // A server that resets a stream has read its request.
                let is_unread =
                    !failure.is_reset && was_closed_before_read(&response, last_used_ns);
                (response, is_unread || failure.is_unprocessed)
            }
        }
    }

    async fn send_and_receive(
        &mut self,
        request: &Request<'_>,
        heads: Option<&HeadCache>,
        response: &mut Response,
        sink: &mut CaptureSink<'_>,
    ) -> Result<(), Failure> {
        let parsed = match heads {
            Some(heads) => heads.parse(request.bytes, self.scheme),
            None => head::parse(request.bytes, self.scheme),
        };
        let (head, body) = parsed.ok_or(Outcome::BadHttp)?;
        let (mut incoming, stream) = self.requests.send_request(head, body.is_empty())?;
        // If the server allows no further stream, the request waits for one to end.
        let ready = poll_fn(|cx| request.deadline.poll(cx, |cx| self.requests.poll_ready(cx)));
        ready.await.map_err(|elapsed| elapsed.outcome(Outcome::WriteTimeout))??;
        response.sent_ns = request.clock.now_ns();
        let early = if body.is_empty() {
            None
        } else {
            send_body(request, stream, Bytes::copy_from_slice(body), &mut incoming).await?
        };
        let incoming = match early {
            Some(incoming) => incoming,
            None => request
                .deadline
                .within(incoming)
                .await
                .map_err(|elapsed| elapsed.outcome(Outcome::FirstByteTimeout))??,
        };
        let body = read_head(request, incoming, response, sink)?;
        read_body(request, body, response, sink).await
    }
}

/// Event while a body is sent.
enum Event {
    /// This many bytes may be sent; none if the server accepts no more.
    Window(Option<usize>),
    Response(Result<http::Response<RecvStream>, h2::Error>),
}

/// Sends a body. Returns the response if it arrives before all of the body was sent.
async fn send_body(
    request: &Request<'_>,
    mut stream: SendStream<Bytes>,
    mut body: Bytes,
    incoming: &mut ResponseFuture,
) -> Result<Option<http::Response<RecvStream>>, Failure> {
    stream.reserve_capacity(body.len());
    while !body.is_empty() {
        let event = poll_fn(|cx| {
            request.deadline.poll(cx, |cx| {
                let window = match stream.capacity() {
                    0 => stream.poll_capacity(cx),
                    window => Poll::Ready(Some(Ok(window))),
                };
                match window {
                    Poll::Ready(window) => Poll::Ready(Event::Window(window.and_then(Result::ok))),
                    Poll::Pending => Pin::new(&mut *incoming).poll(cx).map(Event::Response),
                }
            })
        });
        match event.await.map_err(|elapsed| elapsed.outcome(Outcome::WriteTimeout))? {
            Event::Window(Some(window)) => {
                let chunk = body.split_to(window.min(body.len()));
                stream.send_data(chunk, body.is_empty())?;
            }
            // A server that has responded may not want the rest; its response says how it went.
            Event::Window(None) => return Ok(None),
            Event::Response(incoming) => return Ok(Some(incoming?)),
        }
    }
    Ok(None)
}

fn read_head(
    request: &Request<'_>,
    incoming: http::Response<RecvStream>,
    response: &mut Response,
    sink: &mut CaptureSink<'_>,
) -> Result<RecvStream, Failure> {
    response.first_byte_ns = request.clock.now_ns();
    response.done_ns = response.first_byte_ns;
    response.status = incoming.status().as_u16();
    if incoming.headers().len() > MAX_HEADERS {
        return Err(Outcome::BadHttp.into());
    }
    for (name, value) in incoming.headers() {
        sink.header(name.as_str(), value.as_bytes());
    }
    Ok(incoming.into_body())
}

/// Reads the body, which is passed to `sink` and discarded, as fast as it arrives.
async fn read_body(
    request: &Request<'_>,
    mut body: RecvStream,
    response: &mut Response,
    sink: &mut CaptureSink<'_>,
) -> Result<(), Failure> {
    while !body.is_end_stream() {
        let chunk = poll_fn(|cx| request.deadline.poll(cx, |cx| body.poll_data(cx))).await;
        let chunk = chunk.map_err(|elapsed| elapsed.outcome(Outcome::BodyTimeout))?;
        response.done_ns = request.clock.now_ns();
        let Some(chunk) = chunk.transpose()? else { break };
        sink.body(&chunk);
        body.flow_control().release_capacity(chunk.len())?;
    }
    Ok(())
}
