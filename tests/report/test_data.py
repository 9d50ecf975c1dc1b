import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from made_stats import nothing_ended
from realistic import keystone

from loadstone.report.data import as_data
from loadstone.search.model import Capacity

RESULT, _ = keystone()
SCHEMA = json.loads((Path(__file__).parent.parent / "data/result.schema.json").read_text())
ISSUE = replace(RESULT, kind="capacity", measurements=RESULT.measurements[:1])


def check(data: dict) -> None:
    jsonschema.validate(json.loads(json.dumps(data, allow_nan=False)), SCHEMA)


@pytest.mark.parametrize(
    "result",
    [
        RESULT,
        ISSUE,
        replace(RESULT, measurements=()),
        replace(RESULT, status="failed", failure="x"),
    ],
    ids=["two findings", "one", "none", "failed"],
)
def test_what_is_given_fits_the_schema(result):
    check(as_data(result))


def test_a_single_search_gives_its_figures_at_the_top():
    data = as_data(ISSUE)
    assert data["capacity"]["rate_rps"] == 7.19
    assert (data["capacity"]["low_rps"], data["capacity"]["high_rps"]) == (7.11, 7.27)
    assert data["capacity"]["confidence"] == 0.95
    assert data["load_seconds"] == ISSUE.measurements[0].load_s
    assert data["wall_seconds"] == ISSUE.measurements[0].wall_s
    trial, kept = data["trials"][2], ISSUE.measurements[0].trials[2]
    assert trial["rate_rps"] == 6.9
    assert trial["verdict"] == "sustained"
    assert trial["throughput_rps"] == kept.stats.throughput_rps
    assert trial["latency_ms"]["p99"] == kept.stats.total.p99_s * 1000


def test_several_searches_stand_in_a_list():
    data = as_data(RESULT)
    assert [finding["title"] for finding in data["measurements"]] == [
        "token issue",
        "token validation",
    ]
    assert "capacity" not in data


def test_a_percentile_that_is_not_a_number_is_null():
    finding = ISSUE.measurements[0]
    stats = nothing_ended(finding.trials[0].stats)
    trial = replace(finding.trials[0], stats=stats, usage=None)
    data = as_data(replace(ISSUE, measurements=(replace(finding, trials=(trial,)),)))
    check(data)
    assert data["trials"][0]["latency_ms"]["p99"] is None


def test_a_trial_that_the_generator_spoilt_does_not_spoil_the_number_that_rests_on_others():
    generator = as_data(ISSUE)["generator"]
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
    data = as_data(replace(ISSUE, measurements=(starved,)))
    check(data)
    assert data["capacity"]["rate_rps"] is None
    assert not data["generator"]["valid"]
    assert data["generator"]["send_lag_ms"]["p99"] == 58.0
