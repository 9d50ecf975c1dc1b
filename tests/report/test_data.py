import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import made_runs
import pytest
import result_schema
from made_stats import nothing_ended
from pydantic import ValidationError
from realistic import keystone

from loadstone.compare.section import report_of as report_of_comparison
from loadstone.report.data import as_data
from loadstone.report.sections.run import report_of
from loadstone.search.model import Capacity
from loadstone.study.section import report_of as report_of_study

RESULT, _ = keystone()
RUNS = made_runs.runs()
REPORTS = {kind: report_of(run) for kind, run in RUNS.items()} | {
    "comparison": report_of_comparison(made_runs.compared()),
    "study": report_of_study(*made_runs.study()),
}
ISSUE = replace(RESULT, kind="capacity", measurements=RESULT.measurements[:1])


def data_of(run):
    return json.loads(json.dumps(as_data(report_of(run)), allow_nan=False))


@pytest.mark.parametrize("kind", REPORTS)
def test_each_kind_has_the_published_shape(kind):
    data = json.loads(json.dumps(as_data(REPORTS[kind]), allow_nan=False))
    result_schema.check(data)
    jsonschema.validate(data, json.loads(result_schema.published()))
    assert "measurements" in data


def test_a_key_that_is_not_in_the_schema_is_found():
    data = data_of(ISSUE)
    data["measurements"][0]["trials"][0]["more"] = 1
    with pytest.raises(ValidationError, match="more"):
        result_schema.check(data)


def test_the_published_schema_and_the_docs_are_those_of_the_models():
    docs = Path(__file__).parents[2] / "docs/results.md"
    why = "run: python tests/support/result_schema.py docs/results.md"
    assert result_schema.published() == result_schema.schema(), why
    assert result_schema.with_tables(docs.read_text()) == docs.read_text(), why


def test_every_kind_of_measurement_of_a_run_has_the_same_keys():
    found = [set(one) for kind in RUNS for one in data_of(RUNS[kind])["measurements"]]
    assert found
    assert all(keys == found[0] for keys in found)


def test_the_answer_of_a_fixed_load_counts_the_wait_as_its_table_does():
    [one] = RUNS["task"].measurements[:1]
    stats = one.trials[0].stats
    waited = replace(stats, total=replace(stats.total, mean_s=stats.service.mean_s + 2.0))
    late = replace(one, trials=(replace(one.trials[0], stats=waited),))
    [data] = data_of(replace(RUNS["task"], measurements=(late,)))["measurements"]
    mean_ms = 1000 * data["trials"][0]["latency"]["mean_s"]
    assert f"{mean_ms:.0f} ms each on average" in data["answer"]["sentence"]


def test_a_search_gives_its_answer_and_the_figures_of_its_trials():
    [data] = data_of(ISSUE)["measurements"]
    assert data["answer"]["value"] == data["capacity"]["rate_rps"] == 7.19
    assert (data["answer"]["low"], data["answer"]["high"]) == (7.11, 7.27)
    assert data["answer"]["confidence"] == 0.95
    assert data["certainty"]["exit_code"] == 0
    assert data["load_seconds"] == ISSUE.measurements[0].load_s
    trial, kept = data["trials"][2], ISSUE.measurements[0].trials[2]
    assert trial["rate_rps"] == 6.9
    assert trial["verdict"] == "sustained"
    assert trial["throughput_rps"] == kept.stats.throughput_rps
    assert trial["latency"]["p99_s"] == kept.stats.total.p99_s


def test_a_percentile_that_is_not_a_number_is_null():
    finding = ISSUE.measurements[0]
    stats = nothing_ended(finding.trials[0].stats)
    trial = replace(finding.trials[0], stats=stats, usage=None)
    data = data_of(replace(ISSUE, measurements=(replace(finding, trials=(trial,)),)))
    result_schema.check(data)
    assert data["measurements"][0]["trials"][0]["latency"]["p99_s"] is None


def test_a_trial_that_the_generator_spoilt_does_not_spoil_the_number_that_rests_on_others():
    generator = data_of(ISSUE)["measurements"][0]["generator"]
    assert generator["valid"]
    assert generator["invalid_trials"] == [4]
    assert generator["send_lag_ms"]["p99"] == 0.08
    assert generator["reasons"] == ["trial 4: sends were late: 99 % within 58 ms, more than 5 ms"]


def test_a_search_that_the_generator_ended_is_not_valid():
    finding = ISSUE.measurements[0]
    starved = replace(
        finding,
        capacity=Capacity(None, 6.9, None, 0.0, ("the load generator was the limit",)),
        trials=(finding.trials[3],),
    )
    data = data_of(replace(ISSUE, measurements=(starved,)))
    result_schema.check(data)
    [one] = data["measurements"]
    assert one["capacity"]["rate_rps"] is None
    assert not one["generator"]["valid"]
    assert one["generator"]["send_lag_ms"]["p99"] == 58.0
    assert (data["exit_code"], one["certainty"]["exit_code"]) == (4, 4)


@pytest.mark.parametrize("kind", REPORTS)
def test_no_statement_repeats_the_answer(kind):
    for section in REPORTS[kind].sections:
        for one in (section, *section.parts):
            assert one.answer.sentence not in [said.text for said in one.statements]


def test_steps_that_took_the_same_time_have_no_range():
    facts = REPORTS["steps"].sections[0].facts
    assert "0.324 s" in [one.text for one in facts if one.label == "p95"]
