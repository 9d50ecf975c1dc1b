//! Runs against sockets that answer: connections, retries, deadlines, HTTP/2.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};

use crate::plan::{Http, Limits, Load, Plan, Retries, Step};
use crate::run::{Measured, Run};
use crate::samples::Outcome;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Listens on loopback; `behave` is given each connection and its number. Ends with the process.
fn serve(behave: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behave = Arc::new(behave);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let behave = behave.clone();
            thread::spawn(move || behave(number, stream));
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

/// One worker that sends so many GET requests, one after the other.
fn plan(port: u16, iterations: u32) -> Plan {
    let json = include_str!("../../../tests/data/plan_course.json");
    let mut plan = Plan::from_json(json).expect("the golden plan is good");
    plan.origin.host = "127.0.0.1".to_owned();
    plan.origin.port = port;
    let Some(Step::Request(mut request)) = plan.steps.pop() else { panic!("a request") };
    request.expect_status = vec![200];
    plan.steps = vec![Step::Request(request)];
    plan.mix.clear();
    plan.retries = Retries::Unread;
    plan.limits = Limits { request_timeout_s: 20.0, iteration_timeout_s: None, ..plan.limits };
    plan.load = Load::Closed {
        workers: 1,
        duration_s: None,
        iterations: Some(iterations),
        think_s: 0.0,
        turn: None,
    };
    plan
}

fn run(plan: &Plan) -> Measured {
    Run::prepare(plan).and_then(|run| run.execute()).expect("the plan is good")
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
fn a_server_that_announces_the_close_is_met_with_a_new_connection() {
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

/// Answers one request, reads the next one, works on it for a while, and closes.
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
fn a_server_that_dies_over_a_request_is_a_failure() {
    let measured = run(&plan(closing_after(Duration::from_millis(50)), 4));
    let (ok, closed) = (code(Outcome::Ok), code(Outcome::ClosedEarly));
    assert_eq!(outcomes(&measured), [ok, closed, ok, closed]);
    assert_eq!(measured.samples.retried, [0; 4]);
}

#[test]
fn a_request_that_crossed_the_close_is_sent_again_and_says_so() {
    let measured = run(&plan(closing_after(Duration::ZERO), 40));
    let samples = &measured.samples;
    // On a busy machine some closes come too late to have crossed the request.
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
fn a_plan_may_have_nothing_sent_again() {
    let mut plan = plan(closing_after(Duration::ZERO), 6);
    plan.retries = Retries::Never;
    let measured = run(&plan);
    let (ok, closed) = (code(Outcome::Ok), code(Outcome::ClosedEarly));
    assert_eq!(outcomes(&measured), [ok, closed, ok, closed, ok, closed]);
    assert_eq!(measured.health.retries, 0);
}

#[test]
fn an_answer_that_does_not_come_in_time_is_given_up() {
    for (answer, late) in [
        (&b""[..], Outcome::FirstByteTimeout),
        (b"HTTP/1.1 2", Outcome::BodyTimeout),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Outcome::BodyTimeout),
    ] {
        let port = serve(move |_, mut stream| {
            read_request(&mut stream);
            stream.write_all(answer).unwrap();
            // Until the client gives up.
            read_request(&mut stream);
        });
        let mut plan = plan(port, 1);
        plan.limits.request_timeout_s = 0.2;
        let measured = run(&plan);
        assert_eq!(outcomes(&measured), [code(late)]);
        let samples = &measured.samples;
        assert!(samples.done_ns[0] - samples.sent_ns[0] >= 200_000_000);
    }
}

#[test]
fn iterations_that_wait_for_a_connection_are_told_apart_from_lag() {
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

type Answer = fn(usize, &mut SendResponse<Bytes>);

/// Speaks HTTP/2; `answer` is given the number of each request. Request bodies are left unread.
fn serve_http2(answer: Answer) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || crate::machine::runtime().unwrap().block_on(accept(listener, answer)));
    port
}

async fn accept(listener: TcpListener, answer: Answer) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut requests: Vec<Request<RecvStream>> = Vec::new();
    // One connection at a time: the engine looks first whether HTTP/2 is spoken.
    while let Ok((stream, _)) = listener.accept().await {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            answer(requests.len(), &mut respond);
            requests.push(request);
        }
    }
}

fn respond(respond: &mut SendResponse<Bytes>, status: u16) {
    let response = Response::builder().status(status).body(()).unwrap();
    respond.send_response(response, true).unwrap();
}

fn plan_of_http2(port: u16, iterations: u32) -> Plan {
    let mut plan = plan(port, iterations);
    plan.placement.http = Http::Two;
    plan
}

#[test]
fn requests_of_http_2_share_a_connection() {
    let port = serve_http2(|_, stream| respond(stream, 200));
    let mut plan = plan_of_http2(port, 30);
    plan.load = Load::Closed {
        workers: 8,
        duration_s: None,
        iterations: Some(30),
        think_s: 0.0,
        turn: None,
    };
    let measured = run(&plan);
    assert_eq!(outcomes(&measured), [code(Outcome::Ok); 30]);
    assert_eq!((measured.health.connections, measured.health.retries), (1, 0));
    assert!(measured.samples.status.iter().all(|&status| status == 200));
}

#[test]
fn a_stream_that_the_server_refused_unread_is_sent_again() {
    let port = serve_http2(|number, stream| match number {
        1 => stream.send_reset(Reason::REFUSED_STREAM),
        _ => respond(stream, 200),
    });
    let measured = run(&plan_of_http2(port, 3));
    assert_eq!(outcomes(&measured), [code(Outcome::Ok); 3]);
    assert_eq!(measured.samples.retried, [0, 1, 0]);
    assert_eq!(measured.health.retries, 1);
}

#[test]
fn an_answer_of_http_2_counts_before_the_request_was_sent_whole() {
    let port = serve_http2(|_, stream| respond(stream, 413));
    let mut plan = plan_of_http2(port, 2);
    let Step::Request(request) = &mut plan.steps[0] else { panic!("a request") };
    request.method = "POST".to_owned();
    // More than the window, which the server never opens further.
    request.body = vec![crate::plan::Part::Text("x".repeat(1_000_000))];
    let measured = run(&plan);
    assert_eq!(outcomes(&measured), [code(Outcome::HttpStatus); 2]);
    assert_eq!(measured.samples.status, [413, 413]);
}
