//! The listening socket, and the limit on connections that may be open.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::settings::{Connections, OverConnections};
use crate::shared::Shared;

/// Connections that wait to be taken, unless the kernel's own limit is lower.
const BACKLOG: u32 = 4096;
/// After a connection could not be taken (no more open files).
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Door {
    here: SocketAddr,
    /// Closed while too many connections are open and the next is to be refused.
    listener: Option<TcpListener>,
    limit: Option<Limit>,
    /// Has the port while nothing listens on it: who connects is refused.
    _holder: Option<TcpSocket>,
}

struct Limit {
    over: OverConnections,
    places: Arc<Semaphore>,
}

type Arrival = (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>);

impl Door {
    /// Listens on an address, whose port is kept also while it is closed where it may be.
    pub(crate) fn open(
        wanted: SocketAddr,
        limit: Option<&Connections>,
        may_close: bool,
    ) -> io::Result<Self> {
        if limit.is_none() && !may_close {
            let listener = listen(wanted)?;
            return Ok(Self {
                here: listener.local_addr()?,
                listener: Some(listener),
                limit: None,
                _holder: None,
            });
        }
        let holder = bind(wanted)?;
        let here = holder.local_addr()?;
        let limit = limit
            .map(|limit| Limit { over: limit.over, places: Arc::new(Semaphore::new(limit.most)) });
        Ok(Self { here, listener: Some(listen(here)?), limit, _holder: Some(holder) })
    }

    /// Closes the port until the next connection is asked for: who connects is refused.
    pub(crate) fn close(&mut self) {
        self.listener = None;
    }

    pub(crate) fn here(&self) -> SocketAddr {
        self.here
    }

    /// The next connection that is let in.
    pub(crate) async fn next(&mut self, shared: &Shared) -> Arrival {
        loop {
            let place = self.place().await;
            let (stream, from) = self.accept().await;
            let Some(limit) = self.limit.as_ref().filter(|_| place.is_none()) else {
                return (stream, from, place);
            };
            if let Ok(place) = limit.places.clone().try_acquire_owned() {
                return (stream, from, Some(place));
            }
            shared.reset_connection();
            // Closed with a reset; if that cannot be set, the peer sees an ordinary end.
            let _ = stream.set_zero_linger();
        }
    }

    /// A place for a connection that is yet to come, where places must be had before.
    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        let limit = self.limit.as_ref()?;
        if limit.over == OverConnections::Reset {
            return None;
        }
        if let Ok(place) = limit.places.clone().try_acquire_owned() {
            return Some(place);
        }
        if limit.over == OverConnections::Refuse {
            // What the kernel has accepted meanwhile is reset.
            self.listener = None;
        }
        // Never closed.
        limit.places.clone().acquire_owned().await.ok()
    }

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if self.listener.is_none() {
                self.listener = listen(self.here).ok();
            }
            if let Some(listener) = &self.listener
                && let Ok(accepted) = listener.accept().await
            {
                return accepted;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn bind(wanted: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if wanted.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Else the port could not be had again for a minute after an end with open connections.
    socket.set_reuseaddr(true)?;
    socket.bind(wanted)?;
    Ok(socket)
}

fn listen(wanted: SocketAddr) -> io::Result<TcpListener> {
    bind(wanted)?.listen(BACKLOG)
}
