"""A study's steps, or its task, as the order that is carried out."""

from loadstone.keystone.contexts.users import UsersSettings
from loadstone.keystone.scenarios import named
from loadstone.perform.order import Order as TaskOrder
from loadstone.plan.load import ClosedLoad
from loadstone.plan.model import Limits
from loadstone.run import Job, Order
from loadstone.search.model import Ask
from loadstone.study.model import Step, Steps, Tasks
from loadstone.task.read import check_tree
from loadstone.task.tree import parse


def order_of(measurement: Steps) -> Order:
    """Give one job for each step, in their order."""
    widest = max(step.concurrency for step in measurement.steps)
    return Order(
        kind="study",
        jobs=tuple(_job(step, measurement.users) for step in measurement.steps),
        users=UsersSettings.spread(measurement.users),
        limits=Limits(max_connections=widest),
    )


def _job(step: Step, users: int) -> Job:
    load = ClosedLoad(step.concurrency, step.at_most_s, step.iterations)
    return Job(
        scenario=named(step.scenario),
        how=Ask(load, step.name),
        load_s=step.at_most_s,
        parameters=(
            ("step", step.name if step.timed else f"{step.name} (not timed)"),
            ("iterations", str(step.iterations)),
            ("at once", str(step.concurrency)),
            ("load time at most", f"{step.at_most_s:g} s"),
            ("users", str(users or "the target's own")),
        ),
    )


def task_of(measurement: Tasks) -> TaskOrder:
    """Give the task."""
    return TaskOrder(check_tree(parse(measurement.text, "task")).task)
