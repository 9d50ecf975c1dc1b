//! The way to the server: a TCP connection to one of its addresses.
//!
//! Addresses are tried in the resolver's order, beginning with the one that answered last. One that
//! neither answers nor refuses does not use up the others' time: after a quarter of a second the
//! next one is tried beside it, and the first that answers is taken (Happy Eyeballs, RFC 8305).

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::samples::Outcome;
use crate::target::Target;

/// Connection Attempt Delay: time before the next address is tried, too (RFC 8305 section 5).
const ALONE: Duration = Duration::from_millis(250);

/// Connects to the first address that answers; `first` is tried first and updated.
/// `connect_ns` is the time that the caller will wait.
pub(crate) async fn dial(
    target: &Target,
    first: &Cell<usize>,
    connect_ns: i64,
) -> Result<TcpStream, Outcome> {
    if let [address] = *target.addresses {
        return tcp(address).await.map_err(|error| connect_fault(&error));
    }
    let count = u32::try_from(target.addresses.len()).unwrap_or(u32::MAX);
    // Each address has its turn before the caller gives up.
    let alone = ALONE.min(Duration::from_nanos(connect_ns.unsigned_abs()) / count.max(1));
    let mut race = Race::new(&target.addresses, first.get());
    while race.begin_next() {
        let connected = if race.has_next() {
            timeout(alone, poll_fn(|cx| race.poll(cx))).await
        } else {
            Ok(poll_fn(|cx| race.poll(cx)).await)
        };
        // Otherwise all that were tried have failed, or the next one is to be tried beside them.
        if let Ok(Some((index, stream))) = connected {
            first.set(index);
            return Ok(stream);
        }
    }
    Err(race.fault)
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;

/// Attempts to connect to several addresses at once.
struct Race<'a> {
    addresses: &'a [SocketAddr],
    first: usize,
    begun: usize,
    attempts: Vec<(usize, Connecting)>,
    /// How the last attempt failed.
    fault: Outcome,
}

impl<'a> Race<'a> {
    fn new(addresses: &'a [SocketAddr], first: usize) -> Self {
        Self { addresses, first, begun: 0, attempts: Vec::new(), fault: Outcome::ConnectFailed }
    }

    fn has_next(&self) -> bool {
        self.begun < self.addresses.len()
    }

    /// Begins the attempt on the next address; false where there is none.
    fn begin_next(&mut self) -> bool {
        if !self.has_next() {
            return false;
        }
        let index = (self.first + self.begun) % self.addresses.len();
        self.begun += 1;
        self.attempts.push((index, Box::pin(tcp(self.addresses[index]))));
        true
    }

    /// The first attempt that succeeds; none when all that were begun have failed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, TcpStream)>> {
        let mut at = 0;
        while let Some((index, attempt)) = self.attempts.get_mut(at) {
            match attempt.as_mut().poll(cx) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(Some((*index, stream))),
                Poll::Ready(Err(error)) => {
                    self.fault = connect_fault(&error);
                    drop(self.attempts.remove(at));
                }
                Poll::Pending => at += 1,
            }
        }
        if self.attempts.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

async fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connect_fault(error: &io::Error) -> Outcome {
    match error.kind() {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::TimedOut => Outcome::ConnectTimeout,
        ErrorKind::ConnectionReset => Outcome::Reset,
        ErrorKind::AddrNotAvailable => Outcome::NoPort,
        _ => Outcome::ConnectFailed,
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
