//! Sockets and threads: one accepts, the others serve, each with connections of its own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

use crate::Refusal;
use crate::counts::Counts;
use crate::exchange::{Ends, exchange};
use crate::settings::Settings;
use crate::shared::Shared;

/// Connections that wait to be taken, unless the kernel's own limit is lower.
const BACKLOG: u32 = 4096;
/// After a connection could not be taken (no more open files).
const PAUSE: Duration = Duration::from_millis(50);

/// A service that has its address, and serves while `run` runs.
pub struct Service {
    runtime: Runtime,
    listener: TcpListener,
    here: SocketAddr,
    threads: usize,
    shared: Arc<Shared>,
    end: Notify,
}

type Taken = (std::net::TcpStream, SocketAddr);

impl Service {
    /// Takes the address.
    pub fn bind(settings: &Settings) -> Result<Self, Refusal> {
        let host: IpAddr = settings.host.parse().map_err(|_| {
            Refusal::Settings(format!(
                "host must be an address such as 127.0.0.1, not {}",
                settings.host
            ))
        })?;
        let shared = Arc::new(Shared::new(settings)?);
        let wanted = SocketAddr::new(host, settings.port);
        let unusable =
            |error: io::Error| Refusal::Environment(format!("cannot listen on {wanted}: {error}"));
        let runtime = runtime().map_err(unusable)?;
        let listener = {
            let _inside = runtime.enter();
            listen(wanted).map_err(unusable)?
        };
        let here = listener.local_addr().map_err(unusable)?;
        Ok(Self { runtime, listener, here, threads: settings.threads, shared, end: Notify::new() })
    }

    /// The port that it has.
    pub fn port(&self) -> u16 {
        self.here.port()
    }

    /// Serves until `stop`; connections that are open then are closed.
    pub fn run(&self) -> Result<(), Refusal> {
        let started: io::Result<Vec<_>> = (0..self.threads)
            .map(|number| {
                let (give, take) = unbounded_channel();
                let (shared, here) = (self.shared.clone(), self.here.to_string());
                let runtime = runtime()?;
                let thread = std::thread::Builder::new()
                    .name(format!("serve-{number}"))
                    .spawn(move || LocalSet::new().block_on(&runtime, serve(take, shared, here)))?;
                Ok((give, thread))
            })
            .collect();
        let started = started
            .map_err(|error| Refusal::Environment(format!("cannot start a thread: {error}")))?;
        let (gives, threads): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        self.runtime.block_on(async {
            tokio::select! {
                () = accept(&self.listener, &gives) => {}
                () = self.end.notified() => {}
            }
        });
        // A thread ends when nothing can be given to it any more.
        drop(gives);
        for thread in threads {
            thread
                .join()
                .map_err(|_| Refusal::Environment("the service has a bug: a thread died".into()))?;
        }
        Ok(())
    }

    /// Ends `run`, also one that is yet to begin.
    pub fn stop(&self) {
        self.end.notify_one();
    }

    /// What was seen until this moment.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn listen(wanted: SocketAddr) -> io::Result<TcpListener> {
    let socket = if wanted.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Else the port could not be had again for a minute after an end with open connections.
    socket.set_reuseaddr(true)?;
    socket.bind(wanted)?;
    socket.listen(BACKLOG)
}

/// Deals connections out in turn, so that threads have equally many.
async fn accept(listener: &TcpListener, gives: &[UnboundedSender<Taken>]) {
    for give in gives.iter().cycle() {
        let (stream, from) = loop {
            match listener.accept().await {
                Ok(taken) => break taken,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        if let Ok(stream) = stream.into_std() {
            // The other end is gone only when its thread has died, which `run` tells.
            let _ = give.send((stream, from));
        }
    }
}

async fn serve(mut take: UnboundedReceiver<Taken>, shared: Arc<Shared>, here: String) {
    while let Some((stream, from)) = take.recv().await {
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let shared = shared.clone();
        let ends = Rc::new(Ends { here: here.clone(), is_local: from.ip().is_loopback() });
        tokio::task::spawn_local(async move {
            // Else the last segment of an answer would wait for an acknowledgement.
            let _ = stream.set_nodelay(true);
            let service = service_fn(|request| {
                let (shared, ends) = (shared.clone(), ends.clone());
                async move { exchange(&shared, &ends, request).await }
            });
            // What is wrong with a connection is its caller's business: it is closed.
            let _ = http1::Builder::new()
                .title_case_headers(true)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
