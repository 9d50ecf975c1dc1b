//! Tests that the throughput of the queue is the capacity of the settings.

use crate::settings::{Capacity, Law};
use crate::workers::{Rejected, Workers};

const SECOND_NS: u64 = 1_000_000_000;

fn capacity(workers: usize, service_s: f64, law: Law) -> Capacity {
    Capacity {
        workers,
        service_s,
        law,
        even_over: 0,
        stall_every_s: 0.0,
        stall_s: 0.0,
        halve_at_s: None,
        decline: 0.0,
        collapse_above: None,
        collapse_by: 1.0,
        max_queue: None,
        queue_timeout_s: None,
        seed: 1,
    }
}

/// Returns when the last of these requests is done, if all arrive at the start.
#[expect(clippy::cast_precision_loss, reason = "tests take seconds")]
fn last_s(capacity: &Capacity, requests: usize) -> f64 {
    let mut workers = Workers::new(capacity);
    let done = (0..requests).map(|_| workers.done_ns(0, even).unwrap()).max().unwrap();
    done as f64 / SECOND_NS as f64
}

fn near(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() <= share
}

#[test]
fn a_busy_service_completes_exactly_workers_over_service_time() {
    for (workers, rate) in [(1, 5.0), (2, 50.0), (4, 333.0), (7, 2000.0), (64, 100_000.0)] {
        #[expect(clippy::cast_precision_loss, reason = "few workers")]
        let service_s = workers as f64 / rate;
        let wanted_s = 1000.0 * service_s;
        let took_s = last_s(&capacity(workers, service_s, Law::Fixed), workers * 1000);
        assert!(near(took_s, wanted_s, 1e-5), "{rate}/s: {took_s} s");
    }
}

#[test]
fn late_wake_ups_do_not_reduce_the_capacity() {
    // Arrivals every 10 ms at one worker of 10 ms. Each is seen up to 5 ms late.
    let mut workers = Workers::new(&capacity(1, 0.01, Law::Fixed));
    workers.done_ns(0, even).unwrap();
    workers.done_ns(0, even).unwrap();
    let late_ns = |n: u64| n * SECOND_NS / 100 + (n * 7919 % 5) * 1_000_000;
    let done = (1..=1000).map(|n| workers.done_ns(late_ns(n), even).unwrap()).max().unwrap();
    assert_eq!(done, 1002 * SECOND_NS / 100);
}

#[test]
fn the_mean_of_each_distribution_is_the_service_time() {
    for (law, share) in [(Law::Fixed, 1e-9), (Law::Exponential, 0.01), (Law::Bursty, 0.02)] {
        let mut workers = Workers::new(&capacity(3, 0.01, law));
        for _ in 0..100_000 {
            workers.done_ns(0, even).unwrap();
        }
        let mean_s = workers.busy_s / 100_000.0;
        assert!(near(mean_s, 0.01, share), "{law:?}: {mean_s}");
    }
}

#[test]
fn with_even_over_the_capacity_is_exact_in_short_intervals() {
    for law in [Law::Exponential, Law::Bursty] {
        let even = Capacity { even_over: 50, ..capacity(1, 0.02, law) };
        assert!(near(last_s(&even, 50), 1.0, 1e-6), "{law:?}");
        assert!(near(last_s(&even, 500), 10.0, 1e-6), "{law:?}");
    }
}

#[test]
fn service_times_depend_on_the_seed_only() {
    let seeded = |seed| last_s(&Capacity { seed, ..capacity(2, 0.01, Law::Exponential) }, 100);
    assert_eq!(seeded(1).to_bits(), seeded(1).to_bits());
    assert_ne!(seeded(1).to_bits(), seeded(2).to_bits());
}

#[test]
fn no_work_begins_during_a_stall() {
    let stalling = Capacity { stall_every_s: 3.0, stall_s: 0.3, ..capacity(1, 0.01, Law::Fixed) };
    let mut workers = Workers::new(&stalling);
    assert_eq!(workers.done_ns(0, even), Ok(SECOND_NS / 100), "the first comes after one period");
    assert_eq!(workers.done_ns(3 * SECOND_NS, even), Ok(3_310_000_000));
    assert_eq!(workers.done_ns(6_200_000_000, even), Ok(6_310_000_000));
    assert_eq!(workers.done_ns(6_400_000_000, even), Ok(6_410_000_000));
}

#[test]
fn the_capacity_halves_at_the_given_time() {
    let halving = Capacity { halve_at_s: Some(1.0), ..capacity(1, 0.01, Law::Fixed) };
    assert!(near(last_s(&halving, 200), 3.0, 1e-6));
}

#[test]
fn a_full_queue_rejects_requests_until_there_is_room() {
    let short = Capacity { max_queue: Some(2), ..capacity(1, 1.0, Law::Fixed) };
    let mut workers = Workers::new(&short);
    for done_s in 1..=3 {
        assert_eq!(workers.done_ns(0, even), Ok(done_s * SECOND_NS));
    }
    assert_eq!(workers.done_ns(0, even), Err(Rejected::QueueFull));
    assert_eq!(workers.done_ns(SECOND_NS, even), Ok(4 * SECOND_NS));
    assert_eq!(workers.taken, 4);
}

#[test]
fn without_a_queue_only_free_workers_take_requests() {
    let none = Capacity { max_queue: Some(0), ..capacity(2, 1.0, Law::Fixed) };
    let mut workers = Workers::new(&none);
    assert_eq!(
        [workers.done_ns(0, even), workers.done_ns(0, even)],
        [Ok(SECOND_NS), Ok(SECOND_NS)]
    );
    assert_eq!(workers.done_ns(0, even), Err(Rejected::QueueFull));
    assert_eq!(workers.done_ns(SECOND_NS, even), Ok(2 * SECOND_NS));
}

#[test]
fn a_request_that_times_out_is_rejected_then_and_takes_no_capacity() {
    let patient = Capacity { queue_timeout_s: Some(1.5), ..capacity(1, 1.0, Law::Fixed) };
    let mut workers = Workers::new(&patient);
    assert_eq!(
        [workers.done_ns(0, even), workers.done_ns(0, even)],
        [Ok(SECOND_NS), Ok(2 * SECOND_NS)]
    );
    assert_eq!(workers.done_ns(0, even), Err(Rejected::TimedOut(1_500_000_000)));
    assert_eq!(workers.done_ns(SECOND_NS, even), Ok(3 * SECOND_NS));
    assert_eq!(workers.taken, 3);
}

#[test]
fn a_request_is_in_the_queue_until_it_times_out() {
    let both =
        Capacity { queue_timeout_s: Some(0.5), max_queue: Some(1), ..capacity(1, 1.0, Law::Fixed) };
    let mut workers = Workers::new(&both);
    workers.done_ns(0, even).unwrap();
    assert_eq!(workers.done_ns(0, even), Err(Rejected::TimedOut(500_000_000)));
    assert_eq!(workers.done_ns(400_000_000, even), Err(Rejected::QueueFull));
    assert_eq!(workers.done_ns(500_000_000, even), Ok(2 * SECOND_NS));
}

fn even(_: u64) -> f64 {
    1.0
}

#[test]
fn work_takes_longer_while_the_service_is_slow() {
    let mut workers = Workers::new(&capacity(1, 0.01, Law::Fixed));
    let slow = |at_ns: u64| if at_ns < SECOND_NS { 3.0 } else { 1.0 };
    assert_eq!(workers.done_ns(0, slow), Ok(3 * SECOND_NS / 100));
    assert_eq!(workers.done_ns(SECOND_NS, slow), Ok(SECOND_NS + SECOND_NS / 100));
}

#[test]
fn every_thousand_requests_take_longer_by_the_decline() {
    let declining = Capacity { decline: 0.02, ..capacity(1, 0.001, Law::Fixed) };
    let mut workers = Workers::new(&declining);
    let done = (0..10_000).map(|_| workers.done_ns(0, even).unwrap()).collect::<Vec<_>>();
    let last_ns = done[9_999] - done[9_998];
    #[expect(clippy::cast_precision_loss, reason = "a millisecond")]
    let factor = last_ns as f64 / 1e6;
    assert!(near(factor, 1.02_f64.powi(10), 0.001), "{factor}");
}

#[test]
fn a_collapse_needs_a_queue_and_ends_with_it() {
    let fragile =
        Capacity { collapse_above: Some(3), collapse_by: 2.0, ..capacity(1, 0.01, Law::Fixed) };
    let mut workers = Workers::new(&fragile);
    let took_s_of = |workers: &mut Workers, at_ns| {
        let before_s = workers.busy_s;
        workers.done_ns(at_ns, even).unwrap();
        workers.busy_s - before_s
    };
    let together: Vec<f64> = (0..5).map(|_| took_s_of(&mut workers, 0)).collect();
    for (took_s, wanted_s) in together.iter().zip([0.01, 0.01, 0.01, 0.02, 0.02]) {
        assert!(near(*took_s, wanted_s, 1e-6), "{together:?}");
    }
    assert!(near(took_s_of(&mut workers, SECOND_NS), 0.01, 1e-6));
}
