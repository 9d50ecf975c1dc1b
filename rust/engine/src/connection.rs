//! HTTP/1.1 connections: one request and its response at a time.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{self, CertificateError};

use crate::capture::CaptureSink;
use crate::dial::dial;
use crate::exchange::{Request, Response};
use crate::outcome::Outcome;
use crate::response::{BadHttp, Body, Head, HeadReader, MAX_HEAD};
use crate::target::Target;

const FIRST_BUFFER: usize = 16 * 1024;

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let polled = match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        polled.map_ok(|()| buffer.filled().len())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    /// Writes as much as possible; ready when all was written, or writing failed.
    fn poll_send(&mut self, cx: &mut Context<'_>, sending: &mut Sending<'_>) -> Poll<()> {
        while !sending.rest.is_empty() {
            match ready!(self.poll_write(cx, sending.rest)) {
                Ok(0) => sending.fail(Outcome::ClosedEarly),
                Ok(written) => sending.rest = &sending.rest[written..],
                Err(error) => sending.fail(io_failure(error.kind())),
            }
        }
        if !sending.is_flushed {
            let flushed = ready!(self.poll_flush(cx));
            sending.is_flushed = true;
            if let Err(error) = flushed {
                sending.fail(io_failure(error.kind()));
            }
        }
        Poll::Ready(())
    }
}

/// Progress of writing a request to the socket.
struct Sending<'a> {
    rest: &'a [u8],
    is_flushed: bool,
    /// Reason why the rest cannot be sent. The server may have responded before it closed.
    failure: Option<Outcome>,
}

impl<'a> Sending<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, is_flushed: false, failure: None }
    }

    fn fail(&mut self, failure: Outcome) {
        (self.rest, self.is_flushed, self.failure) = (&[], true, Some(failure));
    }

    fn is_pending(&self) -> bool {
        !self.rest.is_empty() || !self.is_flushed
    }

    fn is_complete(&self) -> bool {
        !self.is_pending() && self.failure.is_none()
    }
}

/// Open connection.
pub(crate) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    /// Completion of the last response; none for a new connection.
    pub last_used_ns: Option<i64>,
    /// Whether another request may follow. Else it must be closed at once: a server may wait for
    /// that before it serves the next connection (RFC 9112, section 9.6).
    pub is_kept: bool,
}

impl Connection {
    /// Opens a connection to the first address that accepts it; `first` is tried first and updated.
    pub(crate) async fn open(
        target: &Target,
        first: &Cell<usize>,
        connect_ns: i64,
    ) -> Result<Self, Outcome> {
        let tcp = dial(target, first, connect_ns).await?;
        let stream = match &target.tls {
            None => Stream::Plain(tcp),
            Some((connector, name)) => {
                let tls = connector.connect(name.clone(), tcp).await;
                Stream::Tls(Box::new(tls.map_err(|error| handshake_failure(&error))?))
            }
        };
        Ok(Self { stream, buffer: vec![0; FIRST_BUFFER], last_used_ns: None, is_kept: true })
    }

    /// Whether the server has neither closed the connection nor sent data that was not requested,
    /// as far as the kernel has reported it. Costs no system call.
    pub(crate) fn is_usable(&mut self) -> bool {
        let mut byte = [0];
        let mut cx = Context::from_waker(Waker::noop());
        self.is_kept && self.stream.poll_read(&mut cx, &mut byte).is_pending()
    }

    /// Sends a request and reads its response, which is passed to `sink`.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request<'_>,
        sink: &mut CaptureSink<'_>,
    ) -> Response {
        let mut response = Response { sent_ns: request.sent_ns, ..Response::none(None, -1) };
        self.is_kept = false;
        match self.send_and_receive(request, &mut response, sink).await {
            Ok(is_kept) => {
                self.is_kept = is_kept;
                self.last_used_ns = Some(response.done_ns);
            }
            Err(failure) => {
                response.failure = Some(failure);
                response.done_ns = request.clock.now_ns();
            }
        }
        response
    }

    async fn send_and_receive(
        &mut self,
        request: &Request<'_>,
        response: &mut Response,
        sink: &mut CaptureSink<'_>,
    ) -> Result<bool, Outcome> {
        let mut sending = Sending::new(request.bytes);
        let (mut head, filled) = self.read_head(request, &mut sending, response, sink).await?;
        response.status = head.status;
        let head = (&mut head, filled);
        let (is_kept, after_body) =
            self.skip_body(request, &mut sending, head, response, sink).await?;
        Ok(is_kept && after_body == 0 && sending.is_complete())
    }

    /// Reads up to the end of the final head. Returns it and the number of bytes in the buffer.
    async fn read_head(
        &mut self,
        request: &Request<'_>,
        sending: &mut Sending<'_>,
        response: &mut Response,
        sink: &mut CaptureSink<'_>,
    ) -> Result<(Head, usize), Outcome> {
        let mut reader = HeadReader::default();
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                // Doubles, up to the longest head that is accepted.
                self.buffer.resize((filled * 2).min(MAX_HEAD + 1), 0);
            }
            let timeout = if filled == 0 && response.first_byte_ns < 0 {
                Outcome::FirstByteTimeout
            } else {
                Outcome::BodyTimeout
            };
            let read = self.read(request, sending, filled, timeout).await?;
            if read == 0 {
                return Err(sending.failure.unwrap_or(Outcome::ClosedEarly));
            }
            response.done_ns = request.clock.now_ns();
            if filled == 0 {
                response.first_byte_ns = response.done_ns;
            }
            filled += read;
            while let Some(head) = reader
                .read(&self.buffer[..filled], request.is_head, |name, value| {
                    sink.header(name, value);
                })
                .map_err(|BadHttp| Outcome::BadHttp)?
            {
                if !head.is_interim() {
                    return Ok((head, filled));
                }
                self.buffer.copy_within(head.length..filled, 0);
                filled -= head.length;
                reader = HeadReader::default();
                if filled == 0 {
                    break;
                }
            }
        }
    }

    /// Reads the body, which is passed to `sink` and discarded. Returns whether the connection may
    /// be kept, and the number of bytes after the body.
    async fn skip_body(
        &mut self,
        request: &Request<'_>,
        sending: &mut Sending<'_>,
        (head, filled): (&mut Head, usize),
        response: &mut Response,
        sink: &mut CaptureSink<'_>,
    ) -> Result<(bool, usize), Outcome> {
        let mut range = head.length..filled;
        loop {
            let skipped = head.body.consume(&self.buffer[range.clone()], |bytes| sink.body(bytes));
            range.start += skipped.map_err(|BadHttp| Outcome::BadHttp)?;
            if head.body.is_complete() {
                return Ok((head.keep_alive, range.len()));
            }
            let read = self.read(request, sending, 0, Outcome::BodyTimeout).await?;
            response.done_ns = request.clock.now_ns();
            if read == 0 {
                let is_end = head.body == Body::UntilClose;
                return if is_end { Ok((false, 0)) } else { Err(Outcome::ClosedEarly) };
            }
            range = 0..read;
        }
    }

    /// Reads while writing the rest of the request: a server may respond before it has read it all.
    async fn read(
        &mut self,
        request: &Request<'_>,
        sending: &mut Sending<'_>,
        from: usize,
        timeout: Outcome,
    ) -> Result<usize, Outcome> {
        let (stream, buffer) = (&mut self.stream, &mut self.buffer[from..]);
        let read = poll_fn(|cx| {
            request.deadline.poll(cx, |cx| {
                let _ = stream.poll_send(cx, sending);
                stream.poll_read(cx, buffer)
            })
        });
        match read.await {
            Ok(Ok(read)) => Ok(read),
            // TLS closed without close_notify.
            Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Ok(Err(error)) => Err(io_failure(error.kind())),
            Err(elapsed) if timeout == Outcome::FirstByteTimeout && sending.is_pending() => {
                Err(elapsed.outcome(Outcome::WriteTimeout))
            }
            Err(elapsed) => Err(elapsed.outcome(timeout)),
        }
    }
}

/// Maps an error of a TLS handshake to an outcome.
pub(crate) fn handshake_failure(error: &io::Error) -> Outcome {
    let tls_error = error.get_ref().and_then(|error| error.downcast_ref());
    match tls_error {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => Outcome::CertificateExpired,
        _ => Outcome::TlsFailed,
    }
}

/// Maps an I/O error of an open connection to an outcome.
pub(crate) fn io_failure(kind: ErrorKind) -> Outcome {
    match kind {
        // rustls: the client certificate was rejected after the handshake, or the data is not TLS.
        ErrorKind::InvalidData => Outcome::TlsFailed,
        ErrorKind::WriteZero | ErrorKind::UnexpectedEof => Outcome::ClosedEarly,
        _ => Outcome::Reset,
    }
}
