use proptest::prelude::*;

use super::*;
use crate::plan::Arrivals;

const WHOLE: Partition = Partition { index: 0, count: 1 };

fn pacer(load: &Load, share: Partition) -> Pacer {
    Pacer::new(load, &limits(None, None), share, WHOLE, Arc::default())
}

fn limits(max_rate_rps: Option<f64>, load_s: Option<f64>) -> Limits {
    Limits {
        max_connections: 256,
        connect_timeout_s: 10.0,
        request_timeout_s: 30.0,
        iteration_timeout_s: None,
        drain_s: 30.0,
        stopped_drain_s: None,
        max_rate_rps,
        load_s,
        loopback_only: true,
    }
}

fn open(rate_rps: f64, duration_s: f64, arrivals: Arrivals) -> Load {
    Load::Open { rate_rps, duration_s, arrivals, seed: 7, iterations: None }
}

fn closed(workers: u32, duration_s: Option<f64>, iterations: Option<u32>, think_s: f64) -> Load {
    Load::Closed { workers, duration_s, iterations, think_s, turn: None }
}

fn due(pacer: &mut Pacer) -> Vec<Arrival> {
    std::iter::from_fn(|| pacer.take(i64::MAX - 1)).collect()
}

#[test]
fn four_per_second_for_one_second() {
    let load = open(4.0, 1.0, Arrivals::Constant);
    let due_ms: Vec<_> =
        due(&mut pacer(&load, WHOLE)).iter().map(|arrival| arrival.due_ns / 1_000_000).collect();
    assert_eq!(due_ms, [0, 250, 500, 750]);
}

#[test]
fn nothing_is_taken_before_it_is_due() {
    let mut pacer = pacer(&open(10.0, 1.0, Arrivals::Constant), WHOLE);
    assert!(pacer.take(0).is_some());
    assert!(pacer.take(99_999_999).is_none());
    assert_eq!(pacer.next_due_ns(), Some(100_000_000));
}

#[test]
fn a_closed_loop_starts_the_next_iteration_when_one_ends() {
    let mut pacer = pacer(&closed(2, None, Some(3), 0.0), WHOLE);
    assert_eq!(pacer.take(0), Some(Arrival { iteration: 0, due_ns: 0 }));
    assert_eq!(pacer.take(0), Some(Arrival { iteration: 1, due_ns: 0 }));
    assert_eq!(pacer.take(5), None);
    pacer.iteration_ended(7, 0);
    assert_eq!(pacer.take(8), Some(Arrival { iteration: 2, due_ns: 7 }));
    assert!(pacer.is_over(8));
}

#[test]
fn a_closed_loop_ends_at_the_last_iteration_number() {
    let load = closed(2, Some(1e6), None, 0.0);
    let started = Arc::new(AtomicU64::new(u64::from(u32::MAX) - 1));
    let mut pacers: Vec<_> = (0..2)
        .map(|thread| {
            let share = Partition { index: thread, count: 2 };
            Pacer::new(&load, &limits(None, None), share, WHOLE, started.clone())
        })
        .collect();
    let last = Arrival { iteration: u32::MAX - 1, due_ns: 0 };
    assert_eq!(pacers[0].take(0), Some(last));
    assert!(pacers.iter_mut().all(|pacer| pacer.take(0).is_none() && pacer.is_over(0)));
    // However often it is looked at, the count does not come back to the first numbers.
    started.fetch_add(1 << 33, Ordering::Relaxed);
    assert!(pacers.iter_mut().all(|pacer| pacer.take(0).is_none() && pacer.is_over(0)));
}

#[test]
fn each_part_of_a_closed_loop_has_iterations_for_its_workers() {
    let load = closed(3, None, Some(100), 0.0);
    let parts: Vec<_> = (0..2)
        .map(|part| {
            let part = Partition { index: part, count: 2 };
            let mut pacer = Pacer::new(&load, &limits(None, None), part, part, Arc::default());
            let mut numbers = Vec::new();
            while let Some(arrival) = pacer.take(i64::MAX - 1) {
                numbers.push(arrival.iteration);
                pacer.iteration_ended(0, 0);
            }
            numbers
        })
        .collect();
    // Two workers begin two thirds of the iterations, one begins the rest.
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [67, 33]);
    assert_eq!((&parts[0][..5], &parts[1][..3]), (&[0, 2, 3, 5, 6][..], &[1, 4, 7][..]));
    let mut numbers = parts.concat();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..100));
}

#[test]
fn the_parts_of_a_closed_loop_number_its_iterations_together() {
    let load = closed(7, None, Some(100), 0.0);
    let mut workers = 0;
    let mut numbers: Vec<_> = (0..3)
        .flat_map(|part| {
            let part = Partition { index: part, count: 3 };
            let mut pacer = Pacer::new(&load, &limits(None, None), part, part, Arc::default());
            let first: Vec<_> = std::iter::from_fn(|| pacer.take(0)).collect();
            workers += first.len();
            let rest = (0..).map_while(|now_ns| {
                pacer.iteration_ended(now_ns, 0);
                pacer.take(now_ns)
            });
            first.into_iter().chain(rest).map(|arrival| arrival.iteration).collect::<Vec<_>>()
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(workers, 7);
    assert!(numbers.into_iter().eq(0..100));
}

#[test]
fn a_band_fills_to_high_and_again_from_low() {
    let load = Load::Band { low: 1, high: 3, fill_rps: 1e3, ebb_rps: 0.0, duration_s: 1.0 };
    let mut pacer = pacer(&load, WHOLE);
    assert_eq!((0..10).filter_map(|ms| pacer.take(ms * 1_000_000)).count(), 3);
    pacer.iteration_ended(10_000_000, 0);
    assert_eq!(pacer.next_due_ns(), None);
    pacer.iteration_ended(12_000_000, 0);
    assert_eq!(pacer.next_due_ns(), Some(13_000_000));
}

#[test]
fn a_worker_waits_for_its_think_time() {
    let mut pacer = pacer(&closed(1, Some(10.0), None, 0.5), WHOLE);
    assert!(pacer.take(0).is_some());
    pacer.iteration_ended(1_000_000_000, 0);
    assert_eq!(pacer.next_due_ns(), Some(1_500_000_000));
    assert!(pacer.take(1_499_999_999).is_none());
    assert!(pacer.take(1_500_000_000).is_some());
}

#[test]
fn poisson_gaps_have_the_mean_and_the_deviation_of_an_exponential_distribution() {
    let due = due(&mut pacer(&open(1000.0, 100.0, Arrivals::Poisson), WHOLE));
    #[expect(clippy::cast_precision_loss)]
    let gaps: Vec<f64> =
        due.windows(2).map(|pair| (pair[1].due_ns - pair[0].due_ns) as f64 / 1e6).collect();
    #[expect(clippy::cast_precision_loss)]
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count).sqrt();
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!((deviation - 1.0).abs() < 0.03, "{deviation}");
}

#[test]
fn the_schedule_depends_on_the_seed() {
    let with = |seed| {
        let (rate_rps, duration_s, arrivals) = (100.0, 1.0, Arrivals::Poisson);
        let iterations = None;
        due(&mut pacer(&Load::Open { rate_rps, duration_s, arrivals, seed, iterations }, WHOLE))
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

proptest! {
    #[test]
    fn the_threads_of_a_run_send_the_whole_schedule(
        rate_rps in 0.1..5000.0, duration_s in 0.01..3.0, threads in 1u16..5, is_poisson in any::<bool>(),
    ) {
        let arrivals = if is_poisson { Arrivals::Poisson } else { Arrivals::Constant };
        let load = open(rate_rps, duration_s, arrivals);
        let whole = due(&mut pacer(&load, WHOLE));
        let mut parts: Vec<_> = (0..threads)
            .flat_map(|thread| due(&mut pacer(&load, Partition { index: thread, count: threads })))
            .collect();
        parts.sort_by_key(|arrival| arrival.iteration);
        prop_assert_eq!(&parts, &whole);
        let expected = rate_rps * duration_s;
        // Six standard deviations of a Poisson count.
        let slack = if is_poisson { 6.0 * expected.sqrt() + 6.0 } else { 1.0 };
        prop_assert!((f64::from(u32::try_from(whole.len())?) - expected).abs() <= slack);
    }
}

/// The integral of the rate up to an instant.
fn integral(stages: &[Stage], mut until_s: f64) -> f64 {
    let mut sum = 0.0;
    for stage in stages {
        let share = (until_s / stage.duration_s).clamp(0.0, 1.0);
        let at_rps = stage.from_rps + share * (stage.to_rps - stage.from_rps);
        sum += f64::midpoint(stage.from_rps, at_rps) * share * stage.duration_s;
        until_s -= stage.duration_s;
    }
    sum
}

fn staged(stages: &[(f64, f64, f64)], arrivals: Arrivals) -> Load {
    let stages = stages
        .iter()
        .map(|&(duration_s, from_rps, to_rps)| Stage { duration_s, from_rps, to_rps })
        .collect();
    Load::Stages { stages, arrivals, seed: 7, iterations: None }
}

#[test]
fn nothing_is_due_in_a_stage_with_rate_zero() {
    let load = staged(&[(1.0, 2.0, 2.0), (1.0, 0.0, 0.0), (1.0, 2.0, 2.0)], Arrivals::Constant);
    let due_ms: Vec<_> =
        due(&mut pacer(&load, WHOLE)).iter().map(|arrival| arrival.due_ns / 1_000_000).collect();
    assert_eq!(due_ms, [0, 500, 2000, 2500]);
}

#[test]
fn a_recording_is_replayed_completely() {
    let load = Load::Replay { offsets_s: vec![0.25, 0.25, 1.5, 2.0] };
    let due_ms: Vec<_> =
        due(&mut pacer(&load, WHOLE)).iter().map(|arrival| arrival.due_ns / 1_000_000).collect();
    assert_eq!(due_ms, [250, 250, 1500, 2000]);
    assert_eq!(pacer(&load, WHOLE).end_ns(), Some(2_000_000_000));
}

#[test]
fn an_open_loop_may_end_after_a_number_of_iterations() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let (rate_rps, duration_s, seed) = (100.0, 3600.0, 7);
        let load = Load::Open { rate_rps, duration_s, arrivals, seed, iterations: Some(10) };
        let mut pacers: Vec<_> =
            (0..3).map(|thread| pacer(&load, Partition { index: thread, count: 3 })).collect();
        let due: Vec<_> = pacers.iter_mut().flat_map(due).collect();
        assert_eq!(due.len(), 10);
        // The drain is counted from the last one, not from an hour later.
        let last_ns = due.iter().map(|arrival| arrival.due_ns).max();
        assert_eq!(pacers.iter().filter_map(Pacer::end_ns).max(), last_ns);
        assert!(pacers.iter().all(|pacer| pacer.is_over(0)));
    }
}

/// Plays the pacers of all threads on one clock: when iterations began, in order.
///
/// Iterations take `service_ns`; the threads look at the clock every `tick_ns`.
fn begun(
    load: &Load,
    limits: &Limits,
    threads: u16,
    (tick_ns, service_ns): (i64, i64),
) -> (Vec<i64>, Vec<Pacer>) {
    let started = Arc::default();
    let mut pacers: Vec<_> = (0..threads)
        .map(|thread| {
            Pacer::new(
                load,
                limits,
                Partition { index: thread, count: threads },
                WHOLE,
                Arc::clone(&started),
            )
        })
        .collect();
    let mut ends: Vec<Vec<i64>> = vec![Vec::new(); threads.into()];
    let mut begun = Vec::new();
    let mut now_ns = 0;
    while now_ns < 10_000_000_000 && !pacers.iter().all(|pacer| pacer.is_over(now_ns)) {
        for (pacer, ends) in pacers.iter_mut().zip(&mut ends) {
            ends.retain(|&end_ns| {
                let has_ended = end_ns <= now_ns;
                if has_ended {
                    pacer.iteration_ended(now_ns, 0);
                }
                !has_ended
            });
            while let Some(arrival) = pacer.take(now_ns) {
                assert!(arrival.due_ns <= now_ns);
                begun.push(now_ns);
                ends.push(now_ns + service_ns);
            }
        }
        now_ns += tick_ns;
    }
    (begun, pacers)
}

fn every_kind_of_load() -> Vec<Load> {
    vec![
        open(400.0, 5.0, Arrivals::Constant),
        open(50.0, 5.0, Arrivals::Poisson),
        staged(&[(2.0, 0.0, 500.0), (1.0, 0.0, 0.0), (1.0, 90.0, 90.0)], Arrivals::Constant),
        staged(&[(2.0, 0.0, 500.0)], Arrivals::Poisson),
        Load::Replay { offsets_s: vec![0.5; 300] },
        closed(64, Some(5.0), None, 0.0),
        closed(64, Some(5.0), None, 0.3),
        Load::Band { low: 4, high: 64, fill_rps: 1e4, ebb_rps: 2e3, duration_s: 5.0 },
    ]
}

#[test]
fn no_kind_of_load_exceeds_the_ceiling_in_any_second() {
    let limits = limits(Some(50.0), None);
    for (kind, load) in every_kind_of_load().iter().enumerate() {
        for threads in [1_u16, 3] {
            // Bands have one thread.
            let threads = if matches!(load, Load::Band { .. }) { 1 } else { threads };
            let (begun, pacers) = begun(load, &limits, threads, (100_000, 1_000_000));
            let most = 50 + usize::from(threads);
            assert!(begun.len() > most, "kind {kind} begins {}", begun.len());
            let second = begun.windows(most + 1).map(|some| some[most] - some[0]).min();
            assert!(second > Some(1_000_000_000), "kind {kind}: {most} in {second:?} ns");
            assert!(pacers.iter().map(|pacer| pacer.throttled().iterations).sum::<u64>() > 0);
        }
    }
}

#[test]
fn a_late_generator_catches_up_on_ten_milliseconds_at_most() {
    // It looks once in 100 ms only: without a limit 5 would begin at each look.
    let load = open(50.0, 5.0, Arrivals::Constant);
    let (begun, _) = begun(&load, &limits(Some(50.0), None), 1, (100_000_000, 1_000_000));
    assert!(begun.windows(52).all(|some| some[51] - some[0] >= 1_000_000_000));
    assert!(begun.windows(2).all(|two| two[1] > two[0]));
}

#[test]
fn a_late_generator_does_not_move_due_times_below_the_ceiling() {
    let load = open(100.0, 1.0, Arrivals::Constant);
    let mut pacer = Pacer::new(&load, &limits(Some(1e6), None), WHOLE, WHOLE, Arc::default());
    // It looks for the first time after half a second.
    let due_ms: Vec<_> = (0..1000)
        .filter_map(|step| pacer.take(500_000_000 + step * 1000))
        .map(|arrival| arrival.due_ns / 1_000_000)
        .collect();
    assert_eq!(due_ms, (0..=50).map(|index| index * 10).collect::<Vec<_>>());
    assert_eq!(pacer.throttled(), Throttled::default());
}

#[test]
fn a_load_at_or_below_the_ceiling_is_not_delayed() {
    for threads in [1_u16, 2, 3] {
        for load in [
            open(5000.0, 2.0, Arrivals::Constant),
            staged(&[(1.0, 0.0, 5000.0), (1.0, 5000.0, 0.0)], Arrivals::Constant),
        ] {
            let (free, _) = begun(&load, &limits(None, None), threads, (100_000, 0));
            let (held, pacers) = begun(&load, &limits(Some(5000.0), None), threads, (100_000, 0));
            assert_eq!(free, held);
            assert!(pacers.iter().all(|pacer| pacer.throttled() == Throttled::default()));
        }
    }
}

#[test]
fn a_delayed_iteration_is_due_when_the_ceiling_permits_it() {
    let load = open(100.0, 1.0, Arrivals::Constant);
    let mut pacer = Pacer::new(&load, &limits(Some(50.0), None), WHOLE, WHOLE, Arc::default());
    let due_ms: Vec<_> = (0..200)
        .filter_map(|step| pacer.take(step * 5_000_000))
        .map(|arrival| arrival.due_ns / 1_000_000)
        .collect();
    assert_eq!(due_ms[..4], [0, 20, 40, 60]);
    assert_eq!(pacer.throttled().iterations, 49);
    assert!(
        (pacer.throttled().delay_s - (1..50).map(|i| f64::from(i) * 0.01).sum::<f64>()).abs()
            < 1e-6
    );
}

#[test]
fn a_closed_loop_at_a_high_ceiling_begins_in_batches() {
    let load = closed(16, Some(2.0), None, 0.0);
    for threads in [1_u16, 2] {
        let (begun, pacers) = begun(&load, &limits(Some(8000.0), None), threads, (50_000, 100_000));
        let batches = begun.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(batches <= 2000 + usize::from(threads), "{batches} wake-ups");
        let most = 8008 + usize::from(threads);
        assert!(begun.windows(most + 1).all(|some| some[most] - some[0] > 1_000_000_000));
        assert!(begun.len() > 15_900, "{} of 16,000", begun.len());
        assert!(pacers.iter().all(|pacer| pacer.throttled().iterations > 0));
    }
}

#[test]
fn parts_of_a_closed_loop_end_together_at_the_ceiling() {
    // The first part has two of three workers, and so two thirds of the iterations.
    let load = closed(3, None, Some(90), 0.0);
    for part in [Partition { index: 0, count: 2 }, Partition { index: 1, count: 2 }] {
        let limits = limits(Some(30.0), None);
        let mut pacer = Pacer::new(&load, &limits, part, part, Arc::default());
        let mut last_ms = 0;
        for now_ms in 0..10_000 {
            while pacer.take(now_ms * 1_000_000).is_some() {
                pacer.iteration_ended(now_ms * 1_000_000, 0);
                last_ms = now_ms;
            }
        }
        assert!((2_900..=3_000).contains(&last_ms), "part {} ends at {last_ms} ms", part.index);
    }
}

#[test]
fn responses_that_arrive_together_are_not_delayed_below_the_ceiling() {
    // 16 at a time, every 0.4 ms: 40,000/s.
    let load = closed(16, Some(1.0), None, 0.0);
    let limits = limits(Some(100_000.0), None);
    let (begun, pacers) = begun(&load, &limits, 1, (400_000, 400_000));
    assert_eq!(begun.len(), 16 * 2500);
    assert_eq!(pacers[0].throttled(), Throttled::default());
}

#[test]
fn every_kind_of_load_ends_at_its_maximum_duration() {
    let limits = limits(None, Some(0.75));
    for load in every_kind_of_load() {
        let (begun, pacers) = begun(&load, &limits, 1, (1_000_000, 1_000_000));
        assert!(begun.iter().all(|&at_ns| at_ns < 750_000_000));
        assert!(pacers[0].is_over(750_000_000) && pacers[0].end_ns() <= Some(750_000_000));
        let is_recorded = matches!(load, Load::Replay { .. });
        assert_eq!(pacers[0].is_cut_short(750_000_000), !is_recorded);
    }
}

proptest! {
    #[test]
    fn arrivals_by_any_instant_are_the_integral_of_the_rate(
        stages in prop::collection::vec((0.01..2.0, 0.0..1000.0, 0.0..1000.0), 1..6),
        steps in prop::collection::vec(any::<bool>(), 6),
        at in 0.0..1.0, threads in 1u16..4,
    ) {
        // Some stages keep their rate, some rest.
        let stages: Vec<(f64, f64, f64)> = stages.iter().zip(steps).map(|(&(lasts, from, to), step)| {
            if step { (lasts, from, from) } else if to < 300.0 { (lasts, 0.0, 0.0) } else { (lasts, from, to) }
        }).collect();
        let load = staged(&stages, Arrivals::Constant);
        let Load::Stages { stages, .. } = &load else { unreachable!() };
        let total_s: f64 = stages.iter().map(|stage| stage.duration_s).sum();
        let mut all: Vec<_> = (0..threads)
            .flat_map(|thread| due(&mut pacer(&load, Partition { index: thread, count: threads })))
            .collect();
        all.sort_by_key(|arrival| arrival.iteration);
        prop_assert!(all.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
        for until_s in [at * total_s, total_s] {
            let expected = integral(stages, until_s).ceil();
            let count = all.iter().filter(|arrival| arrival.due_ns < nanos(until_s)).count();
            let count = f64::from(u32::try_from(count)?);
            prop_assert!((count - expected).abs() <= 1.0, "{} of {} by {}", count, expected, until_s);
        }
    }

    #[test]
    fn poisson_arrivals_follow_the_rate_through_its_stages(seed in any::<u64>()) {
        let stages = [(2.0, 0.0, 2000.0), (1.0, 0.0, 0.0), (2.0, 500.0, 500.0)];
        let Load::Stages { stages, arrivals, .. } = staged(&stages, Arrivals::Poisson) else {
            unreachable!()
        };
        let load = Load::Stages { stages: stages.clone(), arrivals, seed, iterations: None };
        let due = due(&mut pacer(&load, WHOLE));
        prop_assert!(due.iter().all(|at| !(2_000_000_001..3_000_000_000).contains(&at.due_ns)));
        for until_s in [1.0, 2.0, 4.0, 5.0] {
            let expected = integral(&stages, until_s);
            let count = due.iter().filter(|arrival| arrival.due_ns < nanos(until_s)).count();
            let off = (f64::from(u32::try_from(count)?) - expected).abs();
            prop_assert!(off <= 6.0 * expected.sqrt(), "{} of {}", count, expected);
        }
    }
}
