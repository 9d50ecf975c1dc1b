use super::*;
use crate::script::{Script, StepKind, Template};

fn golden(name: &str) -> Plan {
    let path = format!("{}/../../tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    Plan::from_json(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|e| panic!("{e}"))
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn request(script: &Script, index: usize) -> &Template {
    let StepKind::Request(request) = &script.steps[index].kind else { panic!("no request") };
    request
}

#[test]
fn the_golden_plans_are_read_field_by_field() {
    let plan = golden("plan_open.json");
    let (rate_rps, duration_s, arrivals) = (12.5, 30.0, Arrivals::Poisson);
    let open = Load::Open { rate_rps, duration_s, arrivals, seed: 42, iterations: Some(99) };
    assert!(plan.load == open);
    assert!(plan.origin.scheme == Scheme::Https && plan.origin.tls.verify);
    assert_eq!(plan.origin.tls.key_file.as_deref(), Some("client.key"));
    let [Step::Request(issue), Step::Request(validate)] = &*plan.steps else {
        panic!("two requests")
    };
    let [header, pointer] = &*issue.captures else { panic!("two captures") };
    assert_eq!(header.header.as_deref(), Some("X-Subject-Token"));
    assert_eq!(pointer.pointer.as_deref(), Some("/token/user/id"));
    assert_eq!(validate.expect_status, [200, 203]);
    assert_eq!(plan.columns["user"], ["ann", "bob"]);
    assert_eq!((plan.limits.max_connections, &*plan.placement.cores), (64, &[0, 1][..]));
    assert_eq!(plan.connection, Reuse::Kept);
    assert_eq!((plan.retries, plan.placement.tls_resumption), (Retries::Unread, Some(false)));
    assert_eq!(golden("plan_iteration.json").retries, Retries::Never);
    assert!(golden("plan_iteration.json").resumes_tls() && !plan.resumes_tls());
    assert_eq!(golden("plan_closed.json").connection, Reuse::Iteration);
    assert_eq!(golden("plan_band.json").connection, Reuse::Request);
    let iterations = Some(1000);
    let closed =
        Load::Closed { workers: 8, duration_s: None, iterations, think_s: 0.25, turn: None };
    assert!(golden("plan_closed.json").load == closed);
    let (fill_rps, ebb_rps, duration_s) = (60.0, 0.0, 90.0);
    let band = Load::Band { low: 4, high: 16, fill_rps, ebb_rps, duration_s };
    assert!(golden("plan_band.json").load == band);
}

#[test]
fn requests_of_the_golden_plan_are_rendered_exactly() {
    let script = Script::new(&golden("plan_open.json")).unwrap_or_else(|e| panic!("{e}"));
    let mut buffer = Vec::new();
    let issue = script.render(request(&script, 0), 2, &[Vec::new(), Vec::new()], None, &mut buffer);
    let agent = concat!("User-Agent: loadstone/", env!("CARGO_PKG_VERSION"), "\r\n");
    assert_eq!(
        text(issue),
        format!(
            "POST /v3/auth/tokens HTTP/1.1\r\nHost: keystone.example:5000\r\n{agent}Accept: */*\r\n\
             Content-Type: application/json\r\nContent-Length: 33\r\n\r\n\
             {{\"user\": \"ann\", \"p\": \"pässword\"}}"
        )
    );
    let validate = script.render(
        request(&script, 1),
        3,
        &[b"gAAA".to_vec(), b"u1".to_vec()],
        None,
        &mut buffer,
    );
    assert_eq!(
        text(validate),
        format!(
            "GET /v3/users/u1 HTTP/1.1\r\nHost: keystone.example:5000\r\n{agent}Accept: */*\r\n\
             X-Auth-Token: gAAA\r\nX-Subject-Token: gAAA\r\n\r\n"
        )
    );
}

#[test]
fn a_traced_request_has_one_more_header() {
    let trace = golden("plan_closed.json").trace.expect("it traces");
    assert_eq!((trace.share, trace.key), (0.25, 0xFEDC_BA98_7654_3210));
    let mut plan = golden("plan_open.json");
    plan.steps.truncate(1);
    let Step::Request(issue) = &mut plan.steps[0] else { panic!("a request") };
    issue.captures.clear();
    let with_holes = plan.clone();
    let Step::Request(issue) = &mut plan.steps[0] else { panic!("a request") };
    issue.body = vec![Part::Text("{}".to_owned())];
    for mut plan in [plan, with_holes] {
        let sent = |plan: &Plan| {
            let script = Script::new(plan).unwrap_or_else(|e| panic!("{e}"));
            let request = request(&script, 0);
            let is_fixed = script.has_shared_head(request, 5);
            let mut buffer = Vec::new();
            (text(script.render(request, 5, &[], None, &mut buffer)).to_owned(), is_fixed)
        };
        let (without, is_fixed) = sent(&plan);
        assert!(is_fixed && !without.contains("traceparent"));
        plan.trace = Some(Trace { share: 1.0, ..trace });
        let (with, is_fixed) = sent(&plan);
        let (head, body) = without.split_once("\r\n\r\n").expect("a head");
        let start = format!("{head}\r\ntraceparent: 00-fedcba9876543210");
        assert!(
            !is_fixed && with.starts_with(&start) && with.ends_with(&format!("-01\r\n\r\n{body}"))
        );
        assert_eq!(with.len(), without.len() + "traceparent: ".len() + 55 + "\r\n".len());
    }
}

#[test]
fn the_host_header_names_the_port_where_it_is_not_the_schemes_own() {
    for (scheme, host, port, expected) in [
        (Scheme::Http, "a.example", 80, "Host: a.example\r\n"),
        (Scheme::Http, "a.example", 443, "Host: a.example:443\r\n"),
        (Scheme::Https, "a.example", 443, "Host: a.example\r\n"),
        (Scheme::Http, "::1", 8080, "Host: [::1]:8080\r\n"),
    ] {
        let mut plan = golden("plan_open.json");
        plan.origin = Origin { scheme, host: host.to_owned(), port, ..plan.origin };
        let script = Script::new(&plan).unwrap_or_else(|e| panic!("{e}"));
        let mut buffer = Vec::new();
        let sent =
            script.render(request(&script, 0), 0, &[Vec::new(), Vec::new()], None, &mut buffer);
        assert!(text(sent).contains(expected), "{expected}");
    }
}

#[test]
fn a_pause_a_condition_and_an_iteration_placeholder_are_read() {
    let plan = golden("plan_iteration.json");
    let [Step::Request(look), Step::Pause(pause), Step::Request(delete), _] = &*plan.steps else {
        panic!("a request, a pause, a request, another script")
    };
    assert_eq!(plan.limits.iteration_timeout_s, Some(2.5));
    assert!(look.captures[0].optional && !look.always && delete.always);
    let only_if = pause.only_if.as_ref().map(|condition| (&*condition.action, &*condition.status));
    assert_eq!(only_if, Some(("look", &[404][..])));
    assert!(!pause.always);
    let script = Script::new(&plan).unwrap_or_else(|e| panic!("{e}"));
    let mut buffer = Vec::new();
    let sent =
        text(script.render(request(&script, 0), 4_294_967_295, &[Vec::new()], None, &mut buffer));
    assert!(sent.starts_with("GET /v3/users?name=u-4294967295 HTTP/1.1\r\n"));
    let StepKind::Pause(rest) = &script.steps[1].kind else { panic!("a pause") };
    let lengths: Vec<_> = (0..1000).map(|iteration| script.pause_ns(rest, iteration)).collect();
    assert!(lengths.iter().all(|length| (500_000_000..=1_500_000_000).contains(length)));
    assert_eq!(lengths[7], script.pause_ns(rest, 7));
}

#[test]
fn a_mix_chooses_scripts_by_weight_and_is_reproducible() {
    let plan = golden("plan_iteration.json");
    let script = Script::new(&plan).unwrap_or_else(|e| panic!("{e}"));
    let taken: Vec<_> = (0..10_000).map(|iteration| script.steps_for(iteration)).collect();
    assert!(taken.iter().all(|steps| *steps == (0..3) || *steps == (3..4)));
    // The standard deviation of the count is 30.
    let first = taken.iter().filter(|steps| **steps == (0..3)).count();
    assert!((880..1120).contains(&first), "{first}");
    let again = Script::new(&plan).unwrap_or_else(|e| panic!("{e}"));
    assert!(taken.iter().zip(0..).all(|(steps, iteration)| *steps == again.steps_for(iteration)));
}

#[test]
fn a_mix_that_does_not_cover_the_steps_is_refused() {
    let shares = |shares: &[(usize, f64)]| {
        let mut plan = golden("plan_iteration.json");
        plan.mix = shares.iter().map(|&(steps, weight)| MixEntry { steps, weight }).collect();
        Script::new(&plan).err().map(|error| error.to_string())
    };
    assert_eq!(shares(&[(3, 1.0), (1, 0.5)]), None);
    for wrong in [&[(3, 1.0)][..], &[(3, 1.0), (2, 1.0)], &[(3, 1.0), (0, 1.0), (1, 1.0)]] {
        assert!(shares(wrong).is_some_and(|message| message.contains("mix")), "{wrong:?}");
    }
    assert!(shares(&[(3, 1.0), (1, 0.0)]).is_some_and(|message| message.contains("mix[1].weight")));
    // The second script would need what only the first one captures.
    assert!(shares(&[(2, 1.0), (2, 1.0)]).is_some_and(|message| message.contains("capture")));
}

#[test]
fn stages_and_recordings_are_read() {
    let stages = vec![
        Stage { duration_s: 10.0, from_rps: 1.0, to_rps: 50.5 },
        Stage { duration_s: 5.0, from_rps: 0.0, to_rps: 0.0 },
    ];
    let (arrivals, seed, iterations) = (Arrivals::Poisson, 5, Some(100));
    assert!(golden("plan_stages.json").load == Load::Stages { stages, arrivals, seed, iterations });
    let offsets_s = vec![0.0, 0.125, 0.125, 7.5];
    assert!(golden("plan_replay.json").load == Load::Replay { offsets_s });
}
