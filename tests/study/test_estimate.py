"""About how long a study takes."""

import pytest
from study_files import STEPS, TWO_BY_TWO

from loadstone.study.estimate import (
    BOOT_S,
    CHECK_S,
    CLOUD_S,
    OVERHEAD_S,
    REQUEST_S,
    UNCACHED_BOOT_S,
    estimate_s,
)
from loadstone.study.read import StudySource

TASK = """\
title: A task
factors: {workers: [1, 2]}
measurement:
  kind: task
  task:
    Authenticate.keystone:
      - runner: {type: constant, times: 20, concurrency: 2}
      - runner: {type: rps, times: 20, rps: 4}
      - runner: {type: constant_for_duration, duration: 7, concurrency: 3}
"""


def about_s(text):
    return estimate_s(StudySource("mine.yaml", text).study(quick=False))


def test_of_searches_it_counts_load_starts_and_pauses():
    # 12 turns of 60 s of load, 11 pauses of 7 s.
    made_s = 10 * (CHECK_S + 2 * REQUEST_S) / 2
    assert about_s(TWO_BY_TWO) == pytest.approx(12 * (made_s + 60 + OVERHEAD_S) + 11 * 7)


def test_without_a_compute_cloud_none_is_started():
    assert about_s(f"{TWO_BY_TWO}settings: {{compute: none}}\n") == about_s(TWO_BY_TWO)


def test_of_steps_it_counts_users_and_requests():
    issue_s = REQUEST_S + CHECK_S
    made_s = 10 * (CHECK_S + 2 * REQUEST_S) / 2
    tokens_s = 10 * issue_s / 2  # to validate
    each_s = made_s + tokens_s + 210 * issue_s + 500 * REQUEST_S / 2
    assert about_s(STEPS) == pytest.approx(2 * (each_s + OVERHEAD_S))


def test_a_lower_hash_cost_halves_the_checks_with_each_step():
    easier = about_s(STEPS + "settings: {hash-rounds: 10}\n")
    assert about_s(STEPS) - easier == pytest.approx(2 * (10 + 210) * CHECK_S * 3 / 4)


def test_users_in_ldap_are_neither_made_nor_hashed():
    there = about_s(STEPS + "settings: {identity: ldap}\n")
    assert about_s(STEPS) - there == pytest.approx(2 * (10 + 210) * CHECK_S)


def test_a_step_takes_no_longer_than_it_may():
    short = about_s(STEPS.replace("iterations: 500", "iterations: 500, at_most_s: 3"))
    assert about_s(STEPS) - short == pytest.approx(2 * (500 * REQUEST_S / 2 - 3))


def test_of_a_task_it_counts_what_its_runners_ask_for():
    load_s = 20 * (REQUEST_S + CHECK_S) / 2 + 19.5 / 4 + 7
    assert about_s(TASK) == pytest.approx(2 * (load_s + OVERHEAD_S))


def test_of_boots_it_counts_servers_and_the_cloud_that_is_started():
    runner = "{type: constant, times: 30, concurrency: 10}"
    arguments = "{image: {name: tiny}, flavor: {name: m1.nano}}"
    boots = f"""\
title: Boots
settings: {{compute: nova}}
factors: {{middleware-cache: [local, "off"]}}
measurement:
  kind: task
  task:
    NovaServers.boot_and_list_server:
      - {{args: {arguments}, runner: {runner}}}
"""
    started_s = 2 * (OVERHEAD_S + CLOUD_S)
    assert about_s(boots) == pytest.approx(started_s + 30 * (BOOT_S + UNCACHED_BOOT_S))
