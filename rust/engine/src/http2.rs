//! HTTP/2: one connection a thread, which its lanes share; each request is a stream of its own.
//! Only streams of a connection that is known to speak HTTP/2 are used: a server that speaks
//! another version is never measured as if it did not.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::Ping;
use h2::client::{Builder, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tokio_rustls::rustls::{self, AlertDescription};

use crate::connection::{handshake_fault, io_fault};
use crate::dial::dial;
use crate::lane::PanicAlarm;
use crate::plan::{Origin, Scheme};
use crate::response::MAX_HEAD;
use crate::samples::Outcome;
use crate::target::{ALPN, Target};
use crate::worker::Worker;
use crate::{Refusal, machine};

mod coalesced;
mod head;
mod stream;

use coalesced::Coalesced;
pub(crate) use head::Heads;
use stream::fault;

/// What the server may send ahead of our reading: of one answer, and of all.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;
/// Encrypted bytes that are read at once: rustls alone asks for 4 kB at a time.
const READ_AHEAD: usize = 64 * 1024;
/// Streams that we gave up and whose late answers are still recognised.
const GIVEN_UP_STREAMS: usize = 4096;

/// The connection of a thread: open, being opened, or none.
#[derive(Default)]
pub(crate) struct Shared {
    current: RefCell<Option<Opening>>,
}

/// None until it is known how the opening ended.
type Opening = watch::Receiver<Option<Result<Connection, Outcome>>>;

/// An open connection, as one lane holds it.
#[derive(Clone)]
pub(crate) struct Connection {
    requests: SendRequest<Bytes>,
    scheme: Scheme,
    /// When an answer was last complete; none for a fresh connection.
    last_used_ns: Rc<Cell<Option<i64>>>,
}

impl Connection {
    pub(crate) fn last_used_ns(&self) -> Option<i64> {
        self.last_used_ns.get()
    }
}

/// Reads and writes for all streams, as long as it is polled.
type Driver = Pin<Box<dyn Future<Output = Result<(), h2::Error>>>>;

/// Why there is no connection.
enum Unopened {
    Fault(Outcome),
    /// The server is there, and speaks something else.
    NotHttp2(Outcome),
}

impl Unopened {
    fn outcome(self) -> Outcome {
        match self {
            Self::Fault(outcome) | Self::NotHttp2(outcome) => outcome,
        }
    }
}

/// The thread's connection; opened where there is none that takes further requests.
pub(crate) async fn connection(worker: &Rc<Worker>) -> Result<Connection, Outcome> {
    let shared = &worker.shared;
    // The one at hand may have been told to go away; its successor, too, but then no third one.
    for _ in 0..2 {
        let mut opening = shared.opening(worker);
        let opened = opening.wait_for(Option::is_some).await.ok().and_then(|opened| opened.clone());
        match opened {
            Some(Ok(mut connection)) => {
                if poll_fn(|cx| connection.requests.poll_ready(cx)).await.is_ok() {
                    return Ok(connection);
                }
                shared.forget(&opening);
            }
            Some(Err(fault)) => {
                shared.forget(&opening);
                return Err(fault);
            }
            None => break,
        }
    }
    Err(Outcome::ClosedEarly)
}

impl Shared {
    fn opening(&self, worker: &Rc<Worker>) -> Opening {
        let mut current = self.current.borrow_mut();
        let opening = current.get_or_insert_with(|| {
            let (told, opening) = watch::channel(None);
            tokio::task::spawn_local(keep(worker.clone(), told));
            opening
        });
        opening.clone()
    }

    fn forget(&self, opening: &Opening) {
        let mut current = self.current.borrow_mut();
        if current.as_ref().is_some_and(|current| current.same_channel(opening)) {
            *current = None;
        }
    }
}

/// Opens a connection, says how that went, and drives it to its end.
async fn keep(worker: Rc<Worker>, told: watch::Sender<Option<Result<Connection, Outcome>>>) {
    let _alarm = PanicAlarm(worker.clone());
    let opened = open_in_time(&worker.target, &worker.address, worker.timeouts.connect_ns).await;
    match opened {
        Ok((connection, driver)) => {
            worker.connected();
            told.send_replace(Some(Ok(connection)));
            // What is told holds the connection open.
            drop(told);
            // How it ended is seen by its streams.
            let _ = driver.await;
        }
        Err(unopened) => {
            told.send_replace(Some(Err(unopened.outcome())));
        }
    }
}

/// Refuses a server that is there and speaks no HTTP/2; one that is not there becomes samples.
pub(crate) fn require(origin: &Origin, target: &Target, connect_ns: i64) -> Result<(), Refusal> {
    let runtime = machine::runtime()?;
    let opened = LocalSet::new()
        .block_on(&runtime, async { open_in_time(target, &Cell::default(), connect_ns).await });
    let Err(Unopened::NotHttp2(_)) = opened else { return Ok(()) };
    let Origin { host, port, .. } = origin;
    let (scheme, what) = match origin.scheme {
        Scheme::Http => ("http", "speak HTTP/2 without TLS (by prior knowledge)"),
        Scheme::Https => ("https", "offer HTTP/2 (ALPN h2)"),
    };
    Err(Refusal::Environment(format!(
        "{scheme}://{host}:{port} does not {what}: switch it on there, or leave out --http2"
    )))
}

async fn open_in_time(
    target: &Target,
    address: &Cell<usize>,
    connect_ns: i64,
) -> Result<(Connection, Driver), Unopened> {
    let most = Duration::from_nanos(connect_ns.unsigned_abs());
    let opened = timeout(most, open(target, address, connect_ns)).await;
    opened.unwrap_or(Err(Unopened::Fault(Outcome::ConnectTimeout)))
}

async fn open(
    target: &Target,
    address: &Cell<usize>,
    connect_ns: i64,
) -> Result<(Connection, Driver), Unopened> {
    let tcp = dial(target, address, connect_ns).await.map_err(Unopened::Fault)?;
    let Some((connector, name)) = &target.tls else {
        return begin(tcp, Scheme::Http).await.map_err(Unopened::NotHttp2);
    };
    let tcp = BufReader::with_capacity(READ_AHEAD, tcp);
    let tls = connector.connect(name.clone(), tcp).await.map_err(|error| {
        let told = error.get_ref().and_then(|error| error.downcast_ref());
        let refused = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        if told == Some(&refused) {
            return Unopened::NotHttp2(Outcome::TlsFailed);
        }
        Unopened::Fault(handshake_fault(&error))
    })?;
    if tls.get_ref().1.alpn_protocol() != Some(ALPN) {
        return Err(Unopened::NotHttp2(Outcome::TlsFailed));
    }
    begin(tls, Scheme::Https).await.map_err(Unopened::Fault)
}

/// Begins HTTP/2. A connection is open when the server has answered a PING: its SETTINGS have come
/// before that, so that no more streams are begun than it takes, and it speaks HTTP/2.
async fn begin<T>(io: T, scheme: Scheme) -> Result<(Connection, Driver), Outcome>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let shaken = Builder::new()
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .max_concurrent_reset_streams(GIVEN_UP_STREAMS)
        .handshake(Coalesced(io))
        .await;
    let (requests, mut connection) = shaken.map_err(|error| fault(&error))?;
    let Some(mut pings) = connection.ping_pong() else { return Err(Outcome::BadHttp) };
    let mut driver: Driver = Box::pin(connection);
    tokio::select! {
        biased;
        pong = pings.ping(Ping::opaque()) => pong.map(|_| ()).map_err(|error| fault(&error))?,
        ended = &mut driver => {
            return Err(ended.err().map_or(Outcome::ClosedEarly, |error| fault(&error)));
        }
    }
    let last_used_ns = Rc::default();
    Ok((Connection { requests, scheme, last_used_ns }, driver))
}

/// As for a connection of HTTP/1.
fn closed(error: &std::io::Error) -> Outcome {
    match error.kind() {
        // h2 itself says so of a connection that ended.
        std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::Other => Outcome::ClosedEarly,
        kind => io_fault(kind),
    }
}
