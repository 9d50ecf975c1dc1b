use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use super::*;
use crate::plan::{Arrivals, Reuse};
use crate::table::{group_rows, read};

/// Creates a started run against a closed port: every request is refused at once.
fn run(threads: u16, duration_s: f64) -> Run {
    let json = include_str!("../../../tests/data/plan_open.json");
    let mut plan = Plan::from_json(json).expect("the golden plan is good");
    plan.origin.scheme = crate::plan::Scheme::Http;
    plan.origin.host = "127.0.0.1".to_owned();
    plan.origin.port = 1;
    plan.connection = Reuse::Kept;
    plan.placement = Placement { threads, ..plan.placement.clone() };
    let (rate_rps, arrivals) = (2000.0, Arrivals::Constant);
    plan.load = Load::Open { rate_rps, duration_s, arrivals, seed: 0, iterations: None };
    let run = Run::prepare(&plan).expect("the plan is good");
    run.start(None).expect("it was not started before");
    run
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("loadstone-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

#[test]
fn a_panic_of_one_thread_ends_the_run_at_once() {
    let mut run = run(2, 3600.0);
    // The second thread panics without counters. The first one would go on for an hour.
    run.counters.truncate(1);
    assert!(catch_unwind(AssertUnwindSafe(|| run.execute(None))).is_err());
}

#[test]
fn samples_of_two_threads_are_in_one_file_in_the_order_of_completion() {
    let folder = scratch("whole");
    let path = folder.join("run.parquet");
    let (store, _) = run(2, 0.5).execute(Some(&path)).expect("it can be written");
    let samples = read(&path).expect("it can be read");
    assert!(matches!(store, SampleStore::File(1000)) && samples.len() == 1000);
    assert!(samples.done_ns.is_sorted());
    let mut iterations = samples.iteration.clone();
    iterations.sort_unstable();
    assert!(iterations.iter().copied().eq(0..1000));
    assert_eq!(group_rows(&path).expect("it can be read"), [1000]);
    assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1);
    fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn samples_from_before_a_panic_are_left_in_the_folder_of_parts() {
    let folder = scratch("panic");
    let path = folder.join("run.parquet");
    let mut run = run(2, 3600.0);
    run.counters.truncate(1);
    assert!(catch_unwind(AssertUnwindSafe(|| run.execute(Some(&path)))).is_err());
    assert!(!path.exists() && folder.join("run.parquet.parts").is_dir());
    let again = run.execute(Some(&path)).expect_err("they are not overwritten");
    assert!(again.to_string().contains("run.parquet.parts: cannot be made: File exists"));
    fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn a_file_that_cannot_be_written_ends_the_run_at_once() {
    let folder = scratch("full");
    let path = folder.join("run.parquet");
    let run = run(1, 3600.0);
    let parts = folder.join("run.parquet.parts");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Once the run has begun its files, their folder goes away.
            while fs::remove_dir(&parts).is_err() {
                std::thread::yield_now();
            }
        });
        let error = run.execute(Some(&path)).expect_err("there is no folder");
        assert!(error.to_string().contains("000000.parquet: cannot be written: No such file"));
    });
    fs::remove_dir_all(folder).expect("it is ours");
}
