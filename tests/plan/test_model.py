import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from loadstone.plan.load import BandLoad, ClosedLoad, Load, OpenLoad, ReplayLoad, Stage, StagedLoad
from loadstone.plan.model import Limits, Origin, Placement, Plan, Tls
from loadstone.plan.script import (
    Captured,
    Column,
    HeaderCapture,
    Iteration,
    JsonCapture,
    Pause,
    StatusCondition,
    Step,
    Text,
    mixed,
    text,
)
from loadstone.plan.trace import Trace

Connection = Literal["kept", "iteration", "request"]
DATA = Path(__file__).parent.parent / "data"


def plan(load: Load, connection: Connection = "kept") -> Plan:
    issue = Step(
        action="issue",
        method="POST",
        path=text("/v3/auth/tokens"),
        headers=(("Content-Type", text("application/json")),),
        body=(
            Text('{"user": "'),
            Column("user"),
            Text('", "p": "'),
            Column("password"),
            Text('"}'),
        ),
        expect_status=(201,),
        captures=(
            HeaderCapture("token", "X-Subject-Token"),
            JsonCapture("id", "/token/user/id"),
        ),
    )
    token = (Captured("token"),)
    validate = Step(
        action="validate",
        method="GET",
        path=(Text("/v3/users/"), Captured("id")),
        headers=(("X-Auth-Token", token), ("X-Subject-Token", token)),
        expect_status=(200, 203),
    )
    return Plan(
        origin=Origin(
            "https",
            "keystone.example",
            5000,
            Tls(ca_file="ca.pem", cert_file="client.pem", key_file="client.key"),
        ),
        steps=(issue, validate),
        load=load,
        columns={"user": ("ann", "bob"), "password": ("pässword", "b")},
        limits=Limits(64, max_rate_rps=250.0, load_s=60.0, loopback_only=False),
        connection=connection,
        placement=Placement(threads=2, cores=(0, 1), tls_resumption=False),
    )


LOOK = Step(
    "look",
    "GET",
    (Text("/v3/users?name="), Iteration("u-")),
    expect_status=(200, 404),
    captures=(JsonCapture("id", "/users/0/id", optional=True),),
)
STEPS, MIX = mixed(
    (
        (
            LOOK,
            Pause("nap", 0.5, 1.5, only_if=StatusCondition("look", (404,))),
            Step("delete", "DELETE", (Text("/v3/users/"), Captured("id")), always=True),
        ),
        1.0,
    ),
    ((Step("discover", "GET", text("/v3")),), 9.0),
)
ITERATION = Plan(
    origin=Origin("http", "keystone.example", 80),
    steps=STEPS,
    load=ClosedLoad(1, duration_s=5.0),
    limits=Limits(iteration_timeout_s=2.5),
    seed=7,
    mix=MIX,
    retries="never",
)
PLANS = {
    "plan_iteration.json": ITERATION,
    "plan_open.json": plan(OpenLoad(12.5, 30.0, "poisson", seed=42, iterations=99)),
    "plan_stages.json": replace(
        ITERATION,
        load=StagedLoad((Stage(10.0, 1.0, 50.5), Stage(5.0, 0.0, 0.0)), "poisson", 5, 100),
    ),
    "plan_replay.json": replace(ITERATION, load=ReplayLoad((0.0, 0.125, 0.125, 7.5))),
    "plan_closed.json": replace(
        plan(ClosedLoad(8, iterations=1000, think_s=0.25), "iteration"),
        trace=Trace(0.25, 0xFEDC_BA98_7654_3210),
    ),
    "plan_band.json": plan(BandLoad(4, 16, fill_rps=60.0, ebb_rps=0.0, duration_s=90.0), "request"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_crosses_to_rust_as_the_golden_file_says(name: str) -> None:
    """The engine's own tests read the same files."""
    assert json.loads(PLANS[name].to_json()) == json.loads((DATA / name).read_text())


def test_a_plan_that_is_printed_holds_no_secret() -> None:
    assert "ssword" not in repr(PLANS["plan_open.json"]).replace("password", "")
