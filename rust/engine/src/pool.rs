//! Connections of a thread: those opened before the load, and the one that HTTP/2 shares.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::http2::{self, OpenResult};
use crate::outcome::Outcome;
use crate::plan::{Http, Reuse};
use crate::worker::{PanicReporter, Worker};

/// Opens connections before the load: one for each worker of a closed loop, else one. If
/// connections are not reused, opens one to check that the target accepts it, and closes it.
pub(crate) async fn connect_ahead(worker: &Rc<Worker>) -> Result<(), Outcome> {
    if worker.context.http == Http::Two {
        return shared_connection(worker).await.map(|_| ());
    }
    let connect_ns = worker.context.timeouts.connect_ns;
    for _ in 0..if worker.context.reuse == Reuse::Kept { worker.initial_slots() } else { 1 } {
        let open = Connection::open(&worker.context.target, &worker.address, connect_ns);
        let opened = timeout(Duration::from_nanos(connect_ns.unsigned_abs()), open).await;
        let connection = opened.unwrap_or(Err(Outcome::ConnectTimeout))?;
        if worker.context.reuse == Reuse::Kept {
            worker.add_spare(connection);
        }
    }
    Ok(())
}

/// Returns the thread's HTTP/2 connection; opens one if there is none that accepts requests.
pub(crate) async fn shared_connection(worker: &Rc<Worker>) -> Result<http2::Connection, Outcome> {
    let shared = &worker.shared;
    // The server may have sent GOAWAY on the connection, and on its successor; a third is not
    // tried.
    for _ in 0..2 {
        let mut opening = shared.get_or_open(|result| {
            tokio::task::spawn_local(open_and_drive(worker.clone(), result));
        });
        let opened = opening.wait_for(Option::is_some).await.ok().and_then(|opened| opened.clone());
        match opened {
            Some(Ok(mut connection)) => {
                if poll_fn(|cx| connection.poll_ready(cx)).await.is_ok() {
                    return Ok(connection);
                }
                shared.forget(&opening);
            }
            Some(Err(failure)) => {
                shared.forget(&opening);
                return Err(failure);
            }
            None => break,
        }
    }
    Err(Outcome::ClosedEarly)
}

/// Opens a connection, publishes the result and drives the connection until it is closed.
async fn open_and_drive(worker: Rc<Worker>, result: watch::Sender<OpenResult>) {
    let _reporter = PanicReporter(worker.clone());
    let connect_ns = worker.context.timeouts.connect_ns;
    match http2::open_in_time(&worker.context.target, &worker.address, connect_ns).await {
        Ok((connection, driver)) => {
            worker.count_connection();
            result.send_replace(Some(Ok(connection)));
            // The published value keeps the connection open.
            drop(result);
            // Its streams report how it ended.
            let _ = driver.await;
        }
        Err(error) => {
            result.send_replace(Some(Err(error.outcome())));
        }
    }
}
