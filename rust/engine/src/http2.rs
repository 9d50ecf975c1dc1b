//! HTTP/2: one connection per thread, which all its slots share; each request is a stream. A server
//! that does not support HTTP/2 is refused, never measured with another version.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use h2::Ping;
use h2::client::Builder;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_rustls::rustls::{self, AlertDescription};

use crate::connection::handshake_failure;
use crate::dial::dial;
use crate::outcome::Outcome;
use crate::plan::{Origin, Scheme};
use crate::response::MAX_HEAD;
use crate::target::{ALPN, Target};
use crate::{Error, system};

mod coalesced;
mod head;
mod stream;

use coalesced::Coalesced;
pub(crate) use head::HeadCache;
pub(crate) use stream::Connection;
use stream::outcome_of;

/// Flow-control windows: bytes that the server may send ahead, per response and in total.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;
/// Bytes of TLS records per read; rustls alone reads 4 kB at a time.
const READ_AHEAD: usize = 64 * 1024;
/// Streams that were reset and whose late responses are still recognised.
const MAX_RESET_STREAMS: usize = 4096;

/// HTTP/2 connection of a thread: open, being opened, or none.
#[derive(Default)]
pub(crate) struct SharedConnection {
    current: RefCell<Option<Opening>>,
}

/// Result of opening a connection; none while it is being opened.
pub(crate) type OpenResult = Option<Result<Connection, Outcome>>;
type Opening = watch::Receiver<OpenResult>;

/// Future that reads and writes for all streams of a connection.
type Driver = Pin<Box<dyn Future<Output = Result<(), h2::Error>>>>;

/// Reason why a connection could not be opened.
pub(crate) enum OpenError {
    Failed(Outcome),
    /// The server accepted the connection and does not support HTTP/2.
    Http2Unsupported(Outcome),
}

impl OpenError {
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Failed(outcome) | Self::Http2Unsupported(outcome) => outcome,
        }
    }
}

impl SharedConnection {
    /// Returns the current opening; without one, calls `open`, which has to send its result.
    pub(crate) fn get_or_open(&self, open: impl FnOnce(watch::Sender<OpenResult>)) -> Opening {
        let mut current = self.current.borrow_mut();
        let opening = current.get_or_insert_with(|| {
            let (result, opening) = watch::channel(None);
            open(result);
            opening
        });
        opening.clone()
    }

    pub(crate) fn forget(&self, opening: &Opening) {
        let mut current = self.current.borrow_mut();
        if current.as_ref().is_some_and(|current| current.same_channel(opening)) {
            *current = None;
        }
    }
}

/// Refuses a server that does not support HTTP/2. One that cannot be reached is not refused: its
/// requests fail and are recorded.
pub(crate) fn require_http2(
    origin: &Origin,
    target: &Target,
    connect_ns: i64,
) -> Result<(), Error> {
    let runtime = system::runtime()?;
    let (tasks, address) = (LocalSet::new(), Cell::default());
    let opened = tasks.block_on(&runtime, open_in_time(target, &address, connect_ns));
    let Err(OpenError::Http2Unsupported(_)) = opened else { return Ok(()) };
    let Origin { host, port, .. } = origin;
    let (scheme, what) = match origin.scheme {
        Scheme::Http => ("http", "speak HTTP/2 without TLS (by prior knowledge)"),
        Scheme::Https => ("https", "offer HTTP/2 (ALPN h2)"),
    };
    Err(Error::Environment(format!(
        "{scheme}://{host}:{port} does not {what}: switch it on there, or leave out --http2"
    )))
}

/// Opens a connection within the connect time-out.
pub(crate) async fn open_in_time(
    target: &Target,
    address: &Cell<usize>,
    connect_ns: i64,
) -> Result<(Connection, Driver), OpenError> {
    let limit = Duration::from_nanos(connect_ns.unsigned_abs());
    let opened = timeout(limit, open(target, address, connect_ns)).await;
    opened.unwrap_or(Err(OpenError::Failed(Outcome::ConnectTimeout)))
}

async fn open(
    target: &Target,
    address: &Cell<usize>,
    connect_ns: i64,
) -> Result<(Connection, Driver), OpenError> {
    let tcp = dial(target, address, connect_ns).await.map_err(OpenError::Failed)?;
    let Some((connector, name)) = &target.tls else {
        return handshake(tcp, Scheme::Http).await.map_err(OpenError::Http2Unsupported);
    };
    let tcp = BufReader::with_capacity(READ_AHEAD, tcp);
    let tls = connector.connect(name.clone(), tcp).await.map_err(|error| {
        let tls_error = error.get_ref().and_then(|error| error.downcast_ref());
        let no_protocol = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        if tls_error == Some(&no_protocol) {
            return OpenError::Http2Unsupported(Outcome::TlsFailed);
        }
        OpenError::Failed(handshake_failure(&error))
    })?;
    if tls.get_ref().1.alpn_protocol() != Some(ALPN) {
        return Err(OpenError::Http2Unsupported(Outcome::TlsFailed));
    }
    handshake(tls, Scheme::Https).await.map_err(OpenError::Failed)
}

/// Performs the HTTP/2 handshake and waits for the response to a PING: it proves that the server
/// supports HTTP/2, and its SETTINGS (the limit on streams) have arrived before.
async fn handshake<T>(io: T, scheme: Scheme) -> Result<(Connection, Driver), Outcome>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let handshake = Builder::new()
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .max_concurrent_reset_streams(MAX_RESET_STREAMS)
        .handshake(Coalesced(io))
        .await;
    let (requests, mut connection) = handshake.map_err(|error| outcome_of(&error))?;
    let Some(mut pings) = connection.ping_pong() else { return Err(Outcome::BadHttp) };
    let mut driver: Driver = Box::pin(connection);
    tokio::select! {
        biased;
        pong = pings.ping(Ping::opaque()) => pong.map(|_| ()).map_err(|error| outcome_of(&error))?,
        ended = &mut driver => {
            return Err(ended.err().map_or(Outcome::ClosedEarly, |error| outcome_of(&error)));
        }
    }
    Ok((Connection::new(requests, scheme), driver))
}
