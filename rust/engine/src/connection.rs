//! One connection: opened, then one request and its answer at a time.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{self, CertificateError};

use crate::capture::Listener;
use crate::clock::Clock;
use crate::deadline::{Deadline, Passed};
use crate::dial::dial;
use crate::http2::Heads;
use crate::response::{BadHttp, Body, Head, HeadReader, MAX_HEAD};
use crate::samples::Outcome;
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

    /// Sends as much as can be sent; ready when all of it was sent, or the rest cannot be.
    fn poll_send(&mut self, cx: &mut Context<'_>, sending: &mut Sending<'_>) -> Poll<()> {
        while !sending.rest.is_empty() {
            match ready!(self.poll_write(cx, sending.rest)) {
                Ok(0) => sending.fail(Outcome::ClosedEarly),
                Ok(written) => sending.rest = &sending.rest[written..],
                Err(error) => sending.fail(io_fault(error.kind())),
            }
        }
        if !sending.is_flushed {
            let flushed = ready!(self.poll_flush(cx));
            sending.is_flushed = true;
            if let Err(error) = flushed {
                sending.fail(io_fault(error.kind()));
            }
        }
        Poll::Ready(())
    }
}

/// How much of a request was written to the socket.
struct Sending<'a> {
    rest: &'a [u8],
    is_flushed: bool,
    /// Why the rest cannot be sent. The server may have answered before it closed.
    fault: Option<Outcome>,
}

impl<'a> Sending<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, is_flushed: false, fault: None }
    }

    fn fail(&mut self, fault: Outcome) {
        (self.rest, self.is_flushed, self.fault) = (&[], true, Some(fault));
    }

    fn is_pending(&self) -> bool {
        !self.rest.is_empty() || !self.is_flushed
    }

    fn is_complete(&self) -> bool {
        !self.is_pending() && self.fault.is_none()
    }
}

/// What is asked of the connection.
pub(crate) struct Question<'a> {
    pub bytes: &'a [u8],
    pub is_head: bool,
    /// The moment of sending.
    pub sent_ns: i64,
    pub deadline: &'a Deadline,
    pub clock: Clock,
    /// Where HTTP/2 keeps the head for the next iteration; none for one that will not come again.
    pub heads: Option<&'a Heads>,
}

/// How it ended; times as in the sample table.
pub(crate) struct Answer {
    pub sent_ns: i64,
    pub first_byte_ns: i64,
    pub done_ns: i64,
    pub status: u16,
    /// None when the answer is complete.
    pub fault: Option<Outcome>,
    /// Of a second sending: the first met a connection that the server had closed.
    pub is_retried: bool,
}

impl Answer {
    /// There is none.
    pub(crate) fn none(fault: Option<Outcome>, done_ns: i64) -> Self {
        Self { sent_ns: -1, first_byte_ns: -1, done_ns, status: 0, fault, is_retried: false }
    }
}

/// An open connection.
pub(crate) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    /// When its last answer was complete; none for a fresh connection.
    pub last_used_ns: Option<i64>,
    is_kept: bool,
}

impl Connection {
    /// Opens a connection to the first address that answers; `first` is tried first and updated.
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
                Stream::Tls(Box::new(tls.map_err(|error| handshake_fault(&error))?))
            }
        };
        Ok(Self { stream, buffer: vec![0; FIRST_BUFFER], last_used_ns: None, is_kept: true })
    }

    /// The server has neither closed it nor said anything unasked, as far as is known: what the
    /// kernel reported is looked at, which costs no system call.
    pub(crate) fn is_usable(&mut self) -> bool {
        let mut byte = [0];
        let mut cx = Context::from_waker(Waker::noop());
        self.is_kept && self.stream.poll_read(&mut cx, &mut byte).is_pending()
    }

    /// Sends a request and reads its answer to the end; `listener` sees it go by.
    pub(crate) async fn exchange(
        &mut self,
        question: &Question<'_>,
        listener: &mut Listener<'_>,
    ) -> Answer {
        let mut answer = Answer { sent_ns: question.sent_ns, ..Answer::none(None, -1) };
        self.is_kept = false;
        match self.converse(question, &mut answer, listener).await {
            Ok(is_kept) => {
                self.is_kept = is_kept;
                self.last_used_ns = Some(answer.done_ns);
            }
            Err(fault) => {
                answer.fault = Some(fault);
                answer.done_ns = question.clock.now_ns();
            }
        }
        answer
    }

    async fn converse(
        &mut self,
        question: &Question<'_>,
        answer: &mut Answer,
        listener: &mut Listener<'_>,
    ) -> Result<bool, Outcome> {
        let mut sending = Sending::new(question.bytes);
        let (mut head, filled) = self.read_head(question, &mut sending, answer, listener).await?;
        answer.status = head.status;
        let head = (&mut head, filled);
        let (is_kept, after_body) =
            self.skip_body(question, &mut sending, head, answer, listener).await?;
        Ok(is_kept && after_body == 0 && sending.is_complete())
    }

    /// Reads up to the end of the final head: the head, and how far the buffer is filled.
    async fn read_head(
        &mut self,
        question: &Question<'_>,
        sending: &mut Sending<'_>,
        answer: &mut Answer,
        listener: &mut Listener<'_>,
    ) -> Result<(Head, usize), Outcome> {
        let mut reader = HeadReader::default();
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                // Doubles up to the longest head that is read at all.
                self.buffer.resize((filled * 2).min(MAX_HEAD + 1), 0);
            }
            let late = if filled == 0 && answer.first_byte_ns < 0 {
                Outcome::FirstByteTimeout
            } else {
                Outcome::BodyTimeout
            };
            let read = self.read(question, sending, filled, late).await?;
            if read == 0 {
                return Err(sending.fault.unwrap_or(Outcome::ClosedEarly));
            }
            answer.done_ns = question.clock.now_ns();
            if filled == 0 {
                answer.first_byte_ns = answer.done_ns;
            }
            filled += read;
            while let Some(head) = reader
                .read(&self.buffer[..filled], question.is_head, |name, value| {
                    listener.header(name, value);
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

    /// Reads the body past `listener` and drops it: whether the connection may be kept, and how many
    /// bytes came after the body.
    async fn skip_body(
        &mut self,
        question: &Question<'_>,
        sending: &mut Sending<'_>,
        (head, filled): (&mut Head, usize),
        answer: &mut Answer,
        listener: &mut Listener<'_>,
    ) -> Result<(bool, usize), Outcome> {
        let mut range = head.length..filled;
        loop {
            let skipped = head.body.skip(&self.buffer[range.clone()], |bytes| listener.body(bytes));
            range.start += skipped.map_err(|BadHttp| Outcome::BadHttp)?;
            if head.body.is_complete() {
                return Ok((head.keep_alive, range.len()));
            }
            let read = self.read(question, sending, 0, Outcome::BodyTimeout).await?;
            answer.done_ns = question.clock.now_ns();
            if read == 0 {
                let is_end = head.body == Body::UntilClose;
                return if is_end { Ok((false, 0)) } else { Err(Outcome::ClosedEarly) };
            }
            range = 0..read;
        }
    }

    /// Reads, and meanwhile sends what is left of the request: a server may answer before it has
    /// read all of it.
    async fn read(
        &mut self,
        question: &Question<'_>,
        sending: &mut Sending<'_>,
        from: usize,
        late: Outcome,
    ) -> Result<usize, Outcome> {
        let (stream, buffer) = (&mut self.stream, &mut self.buffer[from..]);
        let read = poll_fn(|cx| {
            question.deadline.poll(cx, |cx| {
                let _ = stream.poll_send(cx, sending);
                stream.poll_read(cx, buffer)
            })
        });
        match read.await {
            Ok(Ok(read)) => Ok(read),
            // TLS without close_notify: as good as closed.
            Ok(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Ok(Err(error)) => Err(io_fault(error.kind())),
            Err(Passed) if late == Outcome::FirstByteTimeout && sending.is_pending() => {
                Err(Outcome::WriteTimeout)
            }
            Err(Passed) => Err(late),
        }
    }
}

/// Why a TLS handshake failed.
pub(crate) fn handshake_fault(error: &io::Error) -> Outcome {
    let told = error.get_ref().and_then(|error| error.downcast_ref());
    match told {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => Outcome::CertificateExpired,
        _ => Outcome::TlsFailed,
    }
}

pub(crate) fn io_fault(kind: ErrorKind) -> Outcome {
    match kind {
        // rustls: a certificate of ours refused after the handshake, or no TLS any more.
        ErrorKind::InvalidData => Outcome::TlsFailed,
        ErrorKind::WriteZero | ErrorKind::UnexpectedEof => Outcome::ClosedEarly,
        _ => Outcome::Reset,
    }
}
