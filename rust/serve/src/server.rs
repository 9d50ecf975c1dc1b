//! Server: one thread accepts connections, the others serve them.

use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::Error;
use crate::counts::Counts;
use crate::fault_script::{FaultScript, until_dark, until_light};
use crate::handler::{ConnectionContext, handle};
use crate::idle::IdleTracker;
use crate::lateness::{BusyTime, is_thread_limit};
use crate::listener::Listener;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::timer::Timer;

/// Service that is bound to its address and serves while `run` runs.
pub struct Service {
    runtime: Runtime,
    /// None once it runs.
    listener: Mutex<Option<Listener>>,
    local_addr: SocketAddr,
    threads: usize,
    idle_timeout: Duration,
    shared: Arc<Shared>,
    end: Notify,
}

/// Connection on its way to the thread that serves it.
struct Accepted {
    stream: std::net::TcpStream,
    from: SocketAddr,
    number: u64,
    /// Permit of the limit on open connections.
    permit: Option<OwnedSemaphorePermit>,
}

impl Service {
    /// Binds to the address.
    pub fn bind(settings: &Settings) -> Result<Self, Error> {
        let host: IpAddr = settings.host.parse().map_err(|_| {
            Error::Settings(format!(
                "host must be an address such as 127.0.0.1, not {}",
                settings.host
            ))
        })?;
        let shared = Arc::new(Shared::new(settings)?);
        let wanted = SocketAddr::new(host, settings.port);
        let unusable =
            |error: io::Error| Error::Environment(format!("cannot listen on {wanted}: {error}"));
        let runtime = runtime(&mut Builder::new_current_thread()).map_err(unusable)?;
        let listener = {
            let _guard = runtime.enter();
            let may_close = FaultScript::has_dark(&settings.script);
            Listener::open(wanted, settings.connections.as_ref(), may_close).map_err(unusable)?
        };
        Ok(Self {
            runtime,
            local_addr: listener.local_addr(),
            listener: Mutex::new(Some(listener)),
            threads: settings.threads,
            idle_timeout: Duration::from_secs_f64(settings.idle_timeout_s),
            shared,
            end: Notify::new(),
        })
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.local_addr.port()
    }

    /// Serves until `stop`, then closes all connections. It runs once.
    pub fn run(&self) -> Result<(), Error> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        let listener =
            listener.ok_or_else(|| Error::Environment("the service ran before".into()))?;
        let started: io::Result<Vec<_>> = (0..self.threads)
            .map(|number| {
                let (sender, receiver) = unbounded_channel();
                let busy_time = Arc::new(BusyTime::new());
                let runtime = measured_runtime(&busy_time)?;
                let timer = {
                    let _guard = runtime.enter();
                    Timer::new()?
                };
                let (shared, local_addr) = (self.shared.clone(), self.local_addr.to_string());
                let context = ThreadContext { shared, local_addr, idle_timeout: self.idle_timeout };
                let thread = std::thread::Builder::new().name(format!("serve-{number}")).spawn(
                    move || LocalSet::new().block_on(&runtime, serve(receiver, context, timer)),
                )?;
                Ok((sender, (thread, busy_time)))
            })
            .collect();
        let started = started
            .map_err(|error| Error::Environment(format!("cannot start a thread: {error}")))?;
        let (senders, threads): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let (threads, busy_times): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        self.runtime.block_on(async {
            tokio::select! {
                () = accept(listener, &senders, &self.shared) => {}
                () = check_capacity(&self.shared, &busy_times) => {}
                () = play(&self.shared) => {}
                () = self.end.notified() => {}
            }
        });
        // A thread ends when its sender is dropped.
        drop(senders);
        for thread in threads {
            thread
                .join()
                .map_err(|_| Error::Environment("the service has a bug: a thread died".into()))?;
        }
        Ok(())
    }

    /// Ends `run`, also if it has not begun.
    pub fn stop(&self) {
        self.end.notify_one();
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }
}

fn runtime(builder: &mut Builder) -> io::Result<Runtime> {
    builder.enable_all().build()
}

/// Creates a runtime that measures the busy time of its thread.
fn measured_runtime(busy_time: &Arc<BusyTime>) -> io::Result<Runtime> {
    let (sleeper, waker) = (busy_time.clone(), busy_time.clone());
    let mut builder = Builder::new_current_thread();
    builder.on_thread_park(move || sleeper.on_sleep()).on_thread_unpark(move || waker.on_wake());
    runtime(&mut builder)
}

/// Distributes connections to the threads in turn.
async fn accept(mut listener: Listener, senders: &[UnboundedSender<Accepted>], shared: &Shared) {
    let mut dark = shared.script.dark();
    for sender in senders.iter().cycle() {
        let (stream, from, permit) = loop {
            tokio::select! {
                biased;
                () = until_dark(&mut dark) => {
                    listener.close();
                    until_light(&mut dark).await;
                }
                arrival = listener.next(shared) => break arrival,
            }
        };
        if let Ok(stream) = stream.into_std() {
            let number = shared.count_connection();
            // Fails only if the thread has died, which `run` reports.
            let _ = sender.send(Accepted { stream, from, number, permit });
        }
    }
}

/// Checks every second whether the threads keep up with the capacity, if there is one.
async fn check_capacity(shared: &Shared, threads: &[Arc<BusyTime>]) {
    let Some((mut idle_s, workers)) = shared.idle_s() else { return pending().await };
    let mut before = Instant::now();
    let mut busy_s: Vec<f64> = threads.iter().map(|thread| thread.busy_s()).collect();
    loop {
        sleep(Duration::from_secs(1)).await;
        let now_busy_s: Vec<f64> = threads.iter().map(|thread| thread.busy_s()).collect();
        let busiest_s = now_busy_s.iter().zip(&busy_s).map(|(now, then)| now - then);
        let busiest_s = busiest_s.fold(0.0, f64::max);
        let now_idle_s = shared.idle_s().map_or(idle_s, |(idle_s, _)| idle_s);
        let wall_s = before.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "at most 10,000 workers")]
        let workers = workers as f64;
        shared.record_check(is_thread_limit(wall_s, busiest_s, now_idle_s - idle_s, workers));
        (before, busy_s, idle_s) = (Instant::now(), now_busy_s, now_idle_s);
    }
}

/// Injects the scripted faults, then waits forever.
async fn play(shared: &Shared) {
    shared.script.play().await;
    pending::<()>().await;
}

/// Context of all connections of a thread.
struct ThreadContext {
    shared: Arc<Shared>,
    local_addr: String,
    idle_timeout: Duration,
}

async fn serve(mut receiver: UnboundedReceiver<Accepted>, context: ThreadContext, timer: Timer) {
    let (context, timer) = (Rc::new(context), Rc::new(timer));
    let running = timer.clone();
    tokio::task::spawn_local(async move { running.run().await });
    while let Some(Accepted { stream, from, number, permit }) = receiver.recv().await {
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let context = context.clone();
        let connection = Rc::new(ConnectionContext {
            number,
            local_addr: context.local_addr.clone(),
            is_local: from.ip().to_canonical().is_loopback(),
            timer: timer.clone(),
            idle: IdleTracker::new(),
        });
        tokio::task::spawn_local(async move {
            // Otherwise the last segment of a response waits for an acknowledgement.
            let _ = stream.set_nodelay(true);
            let service = service_fn(|request| {
                let (context, connection) = (context.clone(), connection.clone());
                async move { handle(&context.shared, &connection, request).await }
            });
            let mut http = http1::Builder::new();
            let http = http.title_case_headers(true);
            let mut dark = context.shared.script.dark();
            tokio::select! {
                biased;
                () = until_dark(&mut dark) => {}
                // An error closes the connection.
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                () = connection.idle.expired(context.idle_timeout) => {}
            }
            drop(permit);
        });
    }
}
