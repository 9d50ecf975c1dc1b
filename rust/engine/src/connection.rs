//! One connection: opened, then one request and its answer at a time.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::capture::Listener;
use crate::clock::Clock;
use crate::deadline::{Deadline, Passed};
use crate::dial::dial;
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
}

/// What is asked of the connection.
pub(crate) struct Question<'a> {
    pub bytes: &'a [u8],
    pub is_head: bool,
    /// The moment of sending.
    pub sent_ns: i64,
    pub deadline: &'a Deadline,
    pub clock: Clock,
}

/// How it ended; times as in the sample table.
pub(crate) struct Answer {
    pub sent_ns: i64,
    pub first_byte_ns: i64,
    pub done_ns: i64,
    pub status: u16,
    /// None when the answer is complete.
    pub fault: Option<Outcome>,
}

impl Answer {
    /// There is none.
    pub(crate) fn none(fault: Option<Outcome>, done_ns: i64) -> Self {
        Self { sent_ns: -1, first_byte_ns: -1, done_ns, status: 0, fault }
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
    pub(crate) async fn open(target: &Target, first: &mut usize) -> Result<Self, Outcome> {
        let tcp = dial(target, first).await?;
        let stream = match &target.tls {
            None => Stream::Plain(tcp),
            Some((connector, name)) => {
                let tls = connector.connect(name.clone(), tcp).await;
                Stream::Tls(Box::new(tls.map_err(|_| Outcome::TlsFailed)?))
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
        let mut answer = Answer {
            sent_ns: question.sent_ns,
            first_byte_ns: -1,
            done_ns: -1,
            status: 0,
            fault: None,
        };
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
        self.write(question).await?;
        let (mut head, filled) = self.read_head(question, answer, listener).await?;
        answer.status = head.status;
        let after_body = self.skip_body(question, (&mut head, filled), answer, listener).await?;
        Ok(head.keep_alive && after_body == 0)
    }

    async fn write(&mut self, question: &Question<'_>) -> Result<(), Outcome> {
        let late = |_: Passed| Outcome::WriteTimeout;
        let mut rest = question.bytes;
        while !rest.is_empty() {
            let write =
                poll_fn(|cx| question.deadline.poll(cx, |cx| self.stream.poll_write(cx, rest)));
            match write.await.map_err(late)? {
                Ok(0) => return Err(Outcome::ClosedEarly),
                Ok(written) => rest = &rest[written..],
                Err(error) => return Err(io_fault(error.kind())),
            }
        }
        let flush = poll_fn(|cx| question.deadline.poll(cx, |cx| self.stream.poll_flush(cx)));
        flush.await.map_err(late)?.map_err(|error| io_fault(error.kind()))
    }

    /// Reads up to the end of the final head: the head, and how far the buffer is filled.
    async fn read_head(
        &mut self,
        question: &Question<'_>,
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
            let read = self.read(question, filled, late).await?;
            if read == 0 {
                return Err(Outcome::ClosedEarly);
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

    /// Reads the body past `listener` and drops it: how many bytes came after it.
    async fn skip_body(
        &mut self,
        question: &Question<'_>,
        (head, filled): (&mut Head, usize),
        answer: &mut Answer,
        listener: &mut Listener<'_>,
    ) -> Result<usize, Outcome> {
        let mut range = head.length..filled;
        loop {
            let skipped = head.body.skip(&self.buffer[range.clone()], |bytes| listener.body(bytes));
            range.start += skipped.map_err(|BadHttp| Outcome::BadHttp)?;
            if head.body.is_complete() {
                return Ok(range.len());
            }
            let read = self.read(question, 0, Outcome::BodyTimeout).await?;
            answer.done_ns = question.clock.now_ns();
            if read == 0 {
                let is_end = head.body == Body::UntilClose;
                return if is_end { Ok(0) } else { Err(Outcome::ClosedEarly) };
            }
            range = 0..read;
        }
    }

    async fn read(
        &mut self,
        question: &Question<'_>,
        from: usize,
        late: Outcome,
    ) -> Result<usize, Outcome> {
        let (stream, buffer) = (&mut self.stream, &mut self.buffer[from..]);
        let read = poll_fn(|cx| question.deadline.poll(cx, |cx| stream.poll_read(cx, buffer)));
        match read.await.map_err(|_: Passed| late)? {
            Ok(read) => Ok(read),
            // TLS without close_notify: as good as closed.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Err(error) => Err(io_fault(error.kind())),
        }
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
