//! Per-request work, measured by `make verify ONLY=engine-hot`.

use divan::{Bencher, black_box, counter::ItemsCount};
use loadstone_engine::{Plan, bench_support};

const TOKEN: &[u8] = &[b'g'; 180];
const ROWS: u32 = 100_000;

fn main() {
    divan::main();
}

#[divan::bench]
fn render_an_iteration(bencher: Bencher) {
    let json = include_str!("../../../tests/data/plan_open.json");
    let plan = Plan::from_json(json).expect("the golden plan is good");
    let mut rendering =
        bench_support::RequestRenderer::new(&plan, TOKEN).expect("the golden plan is good");
    let mut iteration = 0;
    bencher.bench_local(|| {
        iteration += 1;
        rendering.render(black_box(iteration))
    });
}

#[divan::bench]
fn parse_a_response_with_a_length(bencher: Bencher) {
    let body = "x".repeat(1500);
    let response = format!("{HEAD}Content-Length: 1500\r\n\r\n{body}");
    bencher.bench_local(|| bench_support::parse(black_box(response.as_bytes())));
}

#[divan::bench]
fn parse_a_chunked_response(bencher: Bencher) {
    let chunk = format!("1f4\r\n{}\r\n", "x".repeat(500));
    let response = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunk.repeat(3));
    bencher.bench_local(|| bench_support::parse(black_box(response.as_bytes())));
}

#[divan::bench]
fn record_samples(bencher: Bencher) {
    let each = ItemsCount::new(ROWS);
    bencher.counter(each).bench_local(|| bench_support::record(black_box(ROWS)));
}

/// Head of a response of Keystone behind uWSGI.
const HEAD: &str = "HTTP/1.1 201 CREATED\r\nContent-Type: application/json\r\n\
    X-Subject-Token: gAAAAABn\r\nVary: X-Auth-Token\r\n\
    x-openstack-request-id: req-8b8f1f0e-6a5e-4c1e-9f0a-0123456789ab\r\n\
    Connection: keep-alive\r\n";
