//! Listening socket, with a limit on open connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::settings::{Connections, OverConnections};
use crate::shared::Shared;

/// Length of the accept queue, unless the kernel's limit is lower.
const BACKLOG: u32 = 4096;
/// Pause after a failed accept (no more open files).
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Listener {
    local_addr: SocketAddr,
    /// None while connections are to be refused.
    socket: Option<TcpListener>,
    limit: Option<Limit>,
    /// Socket that reserves the port while nothing listens on it.
    _holder: Option<TcpSocket>,
}

struct Limit {
    over: OverConnections,
    permits: Arc<Semaphore>,
}

type Arrival = (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>);

impl Listener {
    /// Listens on an address. If it may close or refuse connections, the port stays reserved.
    pub(crate) fn open(
        wanted: SocketAddr,
        limit: Option<&Connections>,
        may_close: bool,
    ) -> io::Result<Self> {
        if limit.is_none() && !may_close {
            let listener = listen(wanted)?;
            return Ok(Self {
                local_addr: listener.local_addr()?,
                socket: Some(listener),
                limit: None,
                _holder: None,
            });
        }
        let holder = bind(wanted)?;
        let local_addr = holder.local_addr()?;
        let limit = limit
            .map(|limit| Limit { over: limit.over, permits: Arc::new(Semaphore::new(limit.most)) });
        let socket = Some(listen(local_addr)?);
        Ok(Self { local_addr, socket, limit, _holder: Some(holder) })
    }

    /// Closes the port until the next call of `next`: connections are refused.
    pub(crate) fn close(&mut self) {
        self.socket = None;
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Accepts the next connection within the limit.
    pub(crate) async fn next(&mut self, shared: &Shared) -> Arrival {
        loop {
            let permit = self.permit().await;
            let (stream, from) = self.accept().await;
            let Some(limit) = self.limit.as_ref().filter(|_| permit.is_none()) else {
                return (stream, from, permit);
            };
            if let Ok(permit) = limit.permits.clone().try_acquire_owned() {
                return (stream, from, Some(permit));
            }
            shared.count_reset();
            // Resets the connection; if that fails, it is closed normally.
            let _ = stream.set_zero_linger();
        }
    }

    /// Acquires a permit for the next connection, unless connections above the limit are reset.
    async fn permit(&mut self) -> Option<OwnedSemaphorePermit> {
        let limit = self.limit.as_ref()?;
        if limit.over == OverConnections::Reset {
            return None;
        }
        if let Ok(permit) = limit.permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        if limit.over == OverConnections::Refuse {
            // The kernel resets connections in the accept queue.
            self.socket = None;
        }
        // The semaphore is never closed.
        limit.permits.clone().acquire_owned().await.ok()
    }

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if self.socket.is_none() {
                self.socket = listen(self.local_addr).ok();
            }
            if let Some(socket) = &self.socket
                && let Ok(accepted) = socket.accept().await
            {
                return accepted;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn bind(wanted: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if wanted.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Otherwise the port is blocked for a minute after an exit with open connections.
    socket.set_reuseaddr(true)?;
    socket.bind(wanted)?;
    Ok(socket)
}

fn listen(wanted: SocketAddr) -> io::Result<TcpListener> {
    bind(wanted)?.listen(BACKLOG)
}
