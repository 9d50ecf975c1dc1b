//! TCP connections to the first address of a host that accepts one (Happy Eyeballs, RFC 8305).
//!
//! Addresses are tried in the resolver's order, starting with the one that accepted the last
//! connection. If one does not respond within a quarter of a second, the next is tried in parallel.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::outcome::Outcome;
use crate::target::Target;

/// Connection Attempt Delay: time before the next address is tried, too (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to the first address that accepts; `first` is tried first and updated. If none accepts,
/// returns the failure of the one that accepted the last connection.
pub(crate) async fn dial(
    target: &Target,
    first: &Cell<usize>,
    connect_ns: i64,
) -> Result<TcpStream, Outcome> {
    if let [address] = *target.addresses {
        return tcp(address).await.map_err(|error| connect_failure(address, &error));
    }
    let count = u32::try_from(target.addresses.len()).unwrap_or(u32::MAX);
    // Every address is tried before the caller's time-out.
    let delay = ATTEMPT_DELAY.min(Duration::from_nanos(connect_ns.unsigned_abs()) / count.max(1));
    let mut race = Race::new(&target.addresses, first.get());
    while race.start_next() {
        let connected = if race.has_next() {
            timeout(delay, poll_fn(|cx| race.poll(cx))).await
        } else {
            Ok(poll_fn(|cx| race.poll(cx)).await)
        };
        // Otherwise all attempts so far have failed, or the next address is tried in parallel.
        if let Ok(Some((index, stream))) = connected {
            first.set(index);
            return Ok(stream);
        }
    }
    // Other addresses may never have had a service: `localhost` is ::1, too, even without IPv6.
    Err(race.failures[first.get()])
}

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>;

/// Parallel attempts to connect to several addresses.
struct Race<'a> {
    addresses: &'a [SocketAddr],
    first: usize,
    started: usize,
    attempts: Vec<(usize, Connecting)>,
    /// Failure of each address.
    failures: Vec<Outcome>,
}

impl<'a> Race<'a> {
    fn new(addresses: &'a [SocketAddr], first: usize) -> Self {
        let failures = vec![Outcome::ConnectFailed; addresses.len()];
        Self { addresses, first, started: 0, attempts: Vec::new(), failures }
    }

    fn has_next(&self) -> bool {
        self.started < self.addresses.len()
    }

    /// Starts an attempt on the next address; false if there is none.
    fn start_next(&mut self) -> bool {
        if !self.has_next() {
            return false;
        }
        let index = (self.first + self.started) % self.addresses.len();
        self.started += 1;
        self.attempts.push((index, Box::pin(tcp(self.addresses[index]))));
        true
    }

    /// Polls for the first attempt that succeeds; none when all have failed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, TcpStream)>> {
        let mut at = 0;
        while let Some((index, attempt)) = self.attempts.get_mut(at) {
            match attempt.as_mut().poll(cx) {
                Poll::Ready(Ok(stream)) => return Poll::Ready(Some((*index, stream))),
                Poll::Ready(Err(error)) => {
                    self.failures[*index] = connect_failure(self.addresses[*index], &error);
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

fn connect_failure(address: SocketAddr, error: &io::Error) -> Outcome {
    match error.kind() {
        _ if is_out_of_files(error) => Outcome::NoFile,
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::TimedOut => Outcome::ConnectTimeout,
        ErrorKind::ConnectionReset => Outcome::Reset,
        ErrorKind::AddrNotAvailable if has_source(address) => Outcome::NoPort,
        _ => Outcome::ConnectFailed,
    }
}

fn is_out_of_files(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::MFILE | Errno::NFILE))
}

/// Whether this machine has an address from which packets to this one could be sent; without IPv6
/// it has none for `::1`. Connecting a UDP socket chooses it and sends nothing.
fn has_source(address: SocketAddr) -> bool {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    UdpSocket::bind(any).and_then(|socket| socket.connect(address)).is_ok()
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
