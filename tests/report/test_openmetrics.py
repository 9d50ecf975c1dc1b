from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from realistic import keystone

from loadstone.report import openmetrics

RESULT, _ = keystone()


def samples(result=RESULT) -> dict:
    families = list(text_string_to_metric_families(openmetrics.render(result)))
    return {
        (sample.name, *sorted(sample.labels.items())): sample
        for family in families
        for sample in family.samples
    }


def test_the_capacity_and_its_interval_are_given_with_the_time_of_the_run():
    found = samples()
    issue = ("scenario", "Authenticate.keystone")
    low = found["loadstone_capacity_rps", ("bound", "low"), issue]
    assert low.value == 7.11
    assert found["loadstone_capacity_rps", ("bound", "estimate"), issue].value == 7.19
    assert float(low.timestamp) == 1795253762  # 2026-11-21T09:36:02Z
    latency = found["loadstone_latency_seconds", ("quantile", "0.99"), issue]
    assert latency.value * 1000 == pytest.approx(
        RESULT.findings[0].trials[2].summary.latency.p99_ms
    )
    assert found["loadstone_generator_valid", issue].value == 1


def test_what_is_not_known_is_not_given():
    findings = tuple(replace(f, capacity=None, trials=()) for f in RESULT.findings)
    found = samples(replace(RESULT, ended_at=None, findings=findings))
    assert not any("capacity" in name for name, *_ in found)
    assert not any("generator" in name for name, *_ in found)


def test_a_label_may_hold_anything():
    odd = 'a "b"\nc\\d'
    findings = tuple(replace(f, scenario=odd) for f in RESULT.findings[:1])
    found = samples(replace(RESULT, findings=findings))
    assert any(("scenario", odd) in labels for _, *labels in found)
