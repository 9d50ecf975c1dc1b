"""A task that the command line asks for: its order, its output, its end."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone import errors
from loadstone.cli import outcome
from loadstone.cli.stored import write, write_json
from loadstone.perform.order import Order
from loadstone.perform.steps import steps
from loadstone.plan.model import Placement
from loadstone.task.at_most import at_most, reduced

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.cli.run_options import Options
    from loadstone.result import Performance, Result
    from loadstone.run import Subject
    from loadstone.store import Store
    from loadstone.task.model import Task


def order(task: "Task", options: "Options") -> Order:
    """Give what is to be carried out, and within which limits."""
    if options["http"] == "2" and options["rally_requests"]:
        raise errors.InvalidInput("Rally speaks no HTTP/2: --http2 or --rally-requests, not both")
    return Order(
        task=reduced(task, at_most(options["most"])),
        aborts_on_sla_failure=options["aborts"],
        max_rate_rps=options["max_rate_rps"],
        budget_s=options["budget_s"],
        paces_as_rally=options["rally_pacing"],
        requests_as_rally=options["rally_requests"],
        steps=steps(options["step"], options["until"]),
        placement=Placement.on(options["cores"], options["http"]),
    )


def peopled(subject: "Subject", file: "Path | None") -> "Subject":
    """Give the target with the users that a file names."""
    if file is None:
        return subject
    from loadstone.keystone.contexts.users_file import existing_users, given_users

    users = existing_users(subject.access, given_users(file))
    return replace(subject, people=lambda: users)


def show(store: "Store", result: "Result", options: "Options") -> None:
    """Give the result in all forms that were asked for."""
    outcome.show(result, options["to"])
    if options["rally_json"] is not None:
        from loadstone.report.rally_json import as_rally

        report = as_rally(result, lambda one: store.samples(result.run_id, one))
        write_json(report, options["rally_json"])
    if options["junit"] is not None:
        from loadstone.report import junit

        write(junit.render(result), options["junit"])


def exit_code(store: "Store", result: "Result") -> int:
    """Give 0 when all that had to hold held and all that was made is gone."""
    codes = [_code(performance) for performance in result.performances]
    return max(*codes, errors.FELL_SHORT if outcome.leftovers(store, result.run_id) else 0)


def _code(performance: "Performance") -> int:
    if performance.failure is not None:
        return errors.EnvironmentUnusable.exit_code
    health, runner = performance.health, json.loads(performance.given)["runner"]
    # A closed loop asks for no rate: a late generator makes it slower, not wrong.
    if "rps" in runner and health is not None and not health.is_valid:
        return errors.MeasurementInvalid.exit_code
    return 0 if performance.pass_sla else errors.FELL_SHORT
