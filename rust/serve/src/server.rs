//! Sockets and threads: one accepts, the others serve, each with connections of its own.

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

use crate::Refusal;
use crate::alarm::Alarm;
use crate::counts::Counts;
use crate::door::Door;
use crate::exchange::{Ends, exchange};
use crate::lateness::{Busyness, is_short};
use crate::quiet::Quiet;
use crate::script::{Script, is_dark, is_light};
use crate::settings::Settings;
use crate::shared::Shared;

/// A service that has its address, and serves while `run` runs.
pub struct Service {
    runtime: Runtime,
    /// Until it is run.
    door: Mutex<Option<Door>>,
    here: SocketAddr,
    threads: usize,
    idle_timeout: Duration,
    shared: Arc<Shared>,
    end: Notify,
}

/// A connection on its way to the thread that serves it.
struct Taken {
    stream: std::net::TcpStream,
    from: SocketAddr,
    number: u64,
    /// Its place among those that may be open.
    place: Option<OwnedSemaphorePermit>,
}

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
        let runtime = runtime(&mut Builder::new_current_thread()).map_err(unusable)?;
        let door = {
            let _inside = runtime.enter();
            let may_close = Script::has_dark(&settings.script);
            Door::open(wanted, settings.connections.as_ref(), may_close).map_err(unusable)?
        };
        Ok(Self {
            runtime,
            here: door.here(),
            door: Mutex::new(Some(door)),
            threads: settings.threads,
            idle_timeout: Duration::from_secs_f64(settings.idle_timeout_s),
            shared,
            end: Notify::new(),
        })
    }

    /// The port that it has.
    pub fn port(&self) -> u16 {
        self.here.port()
    }

    /// Serves until `stop`, once; connections that are open then are closed.
    pub fn run(&self) -> Result<(), Refusal> {
        let door = self.door.lock().unwrap_or_else(PoisonError::into_inner).take();
        let door = door.ok_or_else(|| Refusal::Environment("the service ran before".into()))?;
        let started: io::Result<Vec<_>> = (0..self.threads)
            .map(|number| {
                let (give, take) = unbounded_channel();
                let busyness = Arc::new(Busyness::new());
                let runtime = watched_runtime(&busyness)?;
                let alarm = {
                    let _inside = runtime.enter();
                    Alarm::new()?
                };
                let (shared, here) = (self.shared.clone(), self.here.to_string());
                let host = Host { shared, here, idle_timeout: self.idle_timeout };
                let thread = std::thread::Builder::new()
                    .name(format!("serve-{number}"))
                    .spawn(move || LocalSet::new().block_on(&runtime, serve(take, host, alarm)))?;
                Ok((give, (thread, busyness)))
            })
            .collect();
        let started = started
            .map_err(|error| Refusal::Environment(format!("cannot start a thread: {error}")))?;
        let (gives, threads): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let (threads, busynesses): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        self.runtime.block_on(async {
            tokio::select! {
                () = accept(door, &gives, &self.shared) => {}
                () = watch(&self.shared, &busynesses) => {}
                () = play(&self.shared) => {}
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

fn runtime(builder: &mut Builder) -> io::Result<Runtime> {
    builder.enable_all().build()
}

/// A runtime that tells how busy its thread is.
fn watched_runtime(busyness: &Arc<Busyness>) -> io::Result<Runtime> {
    let (sleeper, waker) = (busyness.clone(), busyness.clone());
    let mut builder = Builder::new_current_thread();
    builder.on_thread_park(move || sleeper.sleeps()).on_thread_unpark(move || waker.wakes());
    runtime(&mut builder)
}

/// Deals connections out in turn, so that threads have equally many.
async fn accept(mut door: Door, gives: &[UnboundedSender<Taken>], shared: &Shared) {
    let mut dark = shared.script.dark();
    for give in gives.iter().cycle() {
        let (stream, from, place) = loop {
            tokio::select! {
                biased;
                () = is_dark(&mut dark) => {
                    door.close();
                    is_light(&mut dark).await;
                }
                arrival = door.next(shared) => break arrival,
            }
        };
        if let Ok(stream) = stream.into_std() {
            let number = shared.took_connection();
            // The other end is gone only when its thread has died, which `run` tells.
            let _ = give.send(Taken { stream, from, number, place });
        }
    }
}

/// Looks every second whether the threads keep up with the capacity; without one, there is nothing
/// to look at.
async fn watch(shared: &Shared, threads: &[Arc<Busyness>]) {
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
        shared.looked(is_short(wall_s, busiest_s, now_idle_s - idle_s, workers));
        (before, busy_s, idle_s) = (Instant::now(), now_busy_s, now_idle_s);
    }
}

/// Plays the script, then leaves the service as it is.
async fn play(shared: &Shared) {
    shared.script.play().await;
    pending::<()>().await;
}

/// What all connections of a thread share.
struct Host {
    shared: Arc<Shared>,
    here: String,
    idle_timeout: Duration,
}

async fn serve(mut take: UnboundedReceiver<Taken>, host: Host, alarm: Alarm) {
    let (host, alarm) = (Rc::new(host), Rc::new(alarm));
    let ringing = alarm.clone();
    tokio::task::spawn_local(async move { ringing.ring().await });
    while let Some(Taken { stream, from, number, place }) = take.recv().await {
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let host = host.clone();
        let ends = Rc::new(Ends {
            number,
            here: host.here.clone(),
            is_local: from.ip().is_loopback(),
            alarm: alarm.clone(),
            quiet: Quiet::new(),
        });
        tokio::task::spawn_local(async move {
            // Else the last segment of an answer would wait for an acknowledgement.
            let _ = stream.set_nodelay(true);
            let service = service_fn(|request| {
                let (host, ends) = (host.clone(), ends.clone());
                async move { exchange(&host.shared, &ends, request).await }
            });
            let mut http = http1::Builder::new();
            let http = http.title_case_headers(true);
            let mut dark = host.shared.script.dark();
            tokio::select! {
                biased;
                () = is_dark(&mut dark) => {}
                // What is wrong with a connection is its caller's business: it is closed.
                _ = http.serve_connection(TokioIo::new(stream), service) => {}
                () = ends.quiet.ended(host.idle_timeout) => {}
            }
            drop(place);
        });
    }
}
