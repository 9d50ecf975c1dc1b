//! Runs against servers on loopback: connections, retries, deadlines, HTTP/2.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};

use crate::health::Health;
use crate::outcome::Outcome;
use crate::plan::{Http, Limits, Load, Plan, Retries, Step};
use crate::run::SampleStore;
use crate::samples::Samples;
use crate::{PrepareOptions, Prepared};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Listens on loopback; `handle` is called with each connection and its number.
fn serve(handle: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let handle = handle.clone();
            thread::spawn(move || handle(number, stream));
        }
    });
    port
}

/// Reads a request without a body; false when the client has closed.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    true
}

/// Plan of one worker that sends this many GET requests, one after the other.
fn plan(port: u16, iterations: u32) -> Plan {
    let json = include_str!("../../../tests/data/plan_iteration.json");
    let mut plan = Plan::from_json(json).expect("the golden plan is good");
    plan.origin.host = "127.0.0.1".to_owned();
    plan.origin.port = port;
    let Some(Step::Request(mut request)) = plan.steps.pop() else { panic!("a request") };
    request.expect_status = vec![200];
    plan.steps = vec![Step::Request(request)];
    plan.mix.clear();
    plan.retries = Retries::Unread;
    plan.limits = Limits { request_timeout_s: 20.0, iteration_timeout_s: None, ..plan.limits };
    plan.load = closed(1, iterations);
    plan
}

fn closed(workers: u32, iterations: u32) -> Load {
    let iterations = Some(iterations);
    Load::Closed { workers, duration_s: None, iterations, think_s: 0.0, turn: None }
}

struct Measured {
    samples: Samples,
    health: Health,
}

fn run(plan: &Plan) -> Measured {
    let run = Prepared::new(plan, PrepareOptions::default()).expect("the plan is good");
    run.start(None).expect("it was not started before");
    let (store, health) = run.finish().expect("the plan is good");
    let SampleStore::Memory(samples) = store else { panic!("no file was named") };
    Measured { samples: *samples, health }
}

fn outcomes(measured: &Measured) -> Vec<u8> {
    measured.samples.outcome.clone()
}

const fn code(outcome: Outcome) -> u8 {
    outcome as u8
}

#[test]
fn a_kept_connection_carries_all_requests() {
    let port = serve(|_, mut stream| {
        while read_request(&mut stream) {
            stream.write_all(OK).unwrap();
        }
    });
    let measured = run(&plan(port, 20));
    let samples = &measured.samples;
    assert_eq!(outcomes(&measured), [code(Outcome::Ok); 20]);
    assert_eq!((measured.health.connections, measured.health.retries), (1, 0));
    for row in 0..samples.len() {
        assert!(samples.due_ns[row] <= samples.sent_ns[row]);
        assert!(samples.sent_ns[row] < samples.done_ns[row]);
        assert_eq!((samples.status[row], samples.connection[row]), (200, 0));
        assert_eq!((samples.iteration[row] as usize, samples.retried[row]), (row, 0));
    }
}

#[test]
fn a_response_with_connection_close_is_followed_by_a_new_connection() {
    let port = serve(|_, mut stream| {
        if read_request(&mut stream) {
            let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end";
            stream.write_all(closing).unwrap();
        }
    });
    let measured = run(&plan(port, 5));
    assert_eq!(outcomes(&measured), [code(Outcome::Ok); 5]);
    assert_eq!((measured.health.connections, measured.health.retries), (5, 0));
}

/// Serves one request, reads the next one, works on it for a while, and closes.
fn closing_after(work: Duration) -> u16 {
    serve(move |_, mut stream| {
        if read_request(&mut stream) {
            stream.write_all(OK).unwrap();
            read_request(&mut stream);
            thread::sleep(work);
        }
    })
}

#[test]
fn a_connection_that_closes_during_a_request_is_a_failure() {
    let measured = run(&plan(closing_after(Duration::from_millis(50)), 4));
    let (ok, closed) = (code(Outcome::Ok), code(Outcome::ClosedEarly));
    assert_eq!(outcomes(&measured), [ok, closed, ok, closed]);
    assert_eq!(measured.samples.retried, [0; 4]);
}

#[test]
fn a_request_whose_second_connection_is_refused_is_not_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        stream.write_all(OK).unwrap();
        read_request(&mut stream);
        drop(listener);
    });
    let measured = run(&plan(port, 2));
    server.join().unwrap();
    assert_eq!((measured.samples.retried, measured.health.retries), (vec![0, 0], 0));
}

#[test]
fn a_request_that_crossed_the_close_is_retried_and_marked() {
    let measured = run(&plan(closing_after(Duration::ZERO), 40));
    let samples = &measured.samples;
    // On a busy machine some closes come too late for a retry.
    for row in 0..samples.len() {
        let failed = samples.outcome[row] == code(Outcome::ClosedEarly);
        assert!(failed || samples.outcome[row] == code(Outcome::Ok));
        assert!(!failed || samples.retried[row] == 0);
    }
    let retried = samples.retried.iter().map(|&retried| u64::from(retried)).sum::<u64>();
    assert!(retried > 0);
    assert_eq!(retried, measured.health.retries);
}

#[test]
fn a_plan_may_disable_retries() {
    let mut plan = plan(closing_after(Duration::ZERO), 6);
    plan.retries = Retries::Never;
    let measured = run(&plan);
    let (ok, closed) = (code(Outcome::Ok), code(Outcome::ClosedEarly));
    assert_eq!(outcomes(&measured), [ok, closed, ok, closed, ok, closed]);
    assert_eq!(measured.health.retries, 0);
}

#[test]
fn a_response_that_is_late_is_a_timeout() {
    for (response, timeout) in [
        (&b""[..], Outcome::FirstByteTimeout),
        (b"HTTP/1.1 2", Outcome::BodyTimeout),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Outcome::BodyTimeout),
    ] {
        let port = serve(move |_, mut stream| {
            read_request(&mut stream);
            stream.write_all(response).unwrap();
            // Until the client closes.
            read_request(&mut stream);
        });
        let mut plan = plan(port, 1);
        plan.limits.request_timeout_s = 0.2;
        let measured = run(&plan);
        assert_eq!(outcomes(&measured), [code(timeout)]);
        let samples = &measured.samples;
        assert!(samples.done_ns[0] - samples.sent_ns[0] >= 200_000_000);
    }
}

#[test]
fn a_wait_for_a_connection_does_not_count_as_lag() {
    let port = serve(|_, mut stream| {
        while read_request(&mut stream) {
            thread::sleep(Duration::from_millis(20));
            stream.write_all(OK).unwrap();
        }
    });
    let mut plan = plan(port, 1);
    plan.limits.max_connections = 1;
    plan.load = Load::Replay { offsets_s: vec![0.0; 5] };
    let health = run(&plan).health;
    assert_eq!(health.waited, 4);
    assert!(health.wait_max_ms >= 80.0);
}

type Respond = fn(usize, &mut SendResponse<Bytes>);

/// Serves HTTP/2; `respond` is called with the number of each request. Bodies are not read.
fn serve_http2(respond: Respond) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || crate::system::runtime().unwrap().block_on(accept(listener, respond)));
    port
}

async fn accept(listener: TcpListener, respond: Respond) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut requests: Vec<Request<RecvStream>> = Vec::new();
    // One connection at a time: the engine first checks for HTTP/2.
    while let Ok((stream, _)) = listener.accept().await {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut stream))) = connection.accept().await {
            respond(requests.len(), &mut stream);
            requests.push(request);
        }
    }
}

fn send(stream: &mut SendResponse<Bytes>, status: u16) {
    let response = Response::builder().status(status).body(()).unwrap();
    stream.send_response(response, true).unwrap();
}

fn http2_plan(port: u16, iterations: u32) -> Plan {
    let mut plan = plan(port, iterations);
    plan.placement.http = Http::Two;
    plan
}

#[test]
fn requests_of_http_2_share_a_connection() {
    let port = serve_http2(|_, stream| send(stream, 200));
    let mut plan = http2_plan(port, 30);
    plan.load = closed(8, 30);
    let measured = run(&plan);
    assert_eq!(outcomes(&measured), [code(Outcome::Ok); 30]);
    assert_eq!((measured.health.connections, measured.health.retries), (1, 0));
    assert!(measured.samples.status.iter().all(|&status| status == 200));
}

#[test]
fn a_refused_stream_is_retried() {
    let port = serve_http2(|number, stream| match number {
        1 => stream.send_reset(Reason::REFUSED_STREAM),
        _ => send(stream, 200),
    });
    let measured = run(&http2_plan(port, 3));
    assert_eq!(outcomes(&measured), [code(Outcome::Ok); 3]);
    assert_eq!(measured.samples.retried, [0, 1, 0]);
    assert_eq!(measured.health.retries, 1);
}

#[test]
fn an_http_2_response_may_arrive_before_the_request_was_sent_completely() {
    let port = serve_http2(|_, stream| send(stream, 413));
    let mut plan = http2_plan(port, 2);
    let Step::Request(request) = &mut plan.steps[0] else { panic!("a request") };
    request.method = "POST".to_owned();
    // More than the window, which the server never opens further.
    request.body = vec![crate::plan::Part::Text("x".repeat(1_000_000))];
    let measured = run(&plan);
    assert_eq!(outcomes(&measured), [code(Outcome::HttpStatus); 2]);
    assert_eq!(measured.samples.status, [413, 413]);
}
