"""`loadstone size`: the resources that a load needs, from measured costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.choose import once
from loadstone.cli.duration import RateRange, ShareParam, per_second
from loadstone.cli.output import print_report, write_formats
from loadstone.cli.stored import JSON, STORE, open_to_read, require_each_once, show_notices
from loadstone.keystone.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.result.model import Run
    from loadstone.store.location import StoreLocation

NEWEST = 200  # the number of newest runs to search
_RATE = RateRange(min=0, min_open=True, max=1_000_000_000)


@click.command()
@click.option("--logins", type=_RATE, help="Tokens issued by password, such as 40/s.")
@click.option("--validations", type=_RATE, help="Tokens validated, such as 2000/s.")
@click.option(
    "--boots",
    type=_RATE,
    help="Servers booted, such as 5/s. Needs a stored run that booted servers.",
)
@click.option(
    "--mix",
    type=click.Path(path_type=Path, dir_okay=False),
    help="YAML file with more scenarios: SCENARIO: RATE on each line.",
)
@once("--lab", metavar="NAME", help="Use only runs of this deployment.")
@click.option("--run", "runs", metavar="RUN", multiple=True, help="Use this run; may be repeated.")
@click.option(
    "--cores-per-node",
    type=click.IntRange(1, 1024),
    help="Cores of each planned node.  [default: those of a measured machine]",
)
@click.option(
    "--utilisation",
    type=ShareParam(least=0.1, most=0.95),
    default="60%",
    help="Maximum planned utilisation of each resource, 10% to 95%.",
)
@STORE
@JSON
def size(
    logins: float | None,
    validations: float | None,
    mix: Path | None,
    location: "StoreLocation",
    to: Path | None,
    **options: Any,
) -> None:
    """Compute how many cores, workers, nodes and connections a load needs.

    The cost of one login or validation comes from stored runs of `loadstone capacity --lab`, which
    monitor the CPU of each server, or of runs on a cloud with `--monitor ssh=HOST` for each
    controller. Runs with the same settings as the newest one are used. The Keystone requests of one
    boot come from the newest run that booted servers on a lab with a compute cloud. The result
    includes its assumptions.

    \b
    loadstone size --logins 40/s --validations 2000/s
    loadstone size --boots 5/s
    loadstone size --mix load.yaml --cores-per-node 16 --json -
    """
    from loadstone.size.boots import Boots, boot_cost, is_boot
    from loadstone.size.demand import demands
    from loadstone.size.section import report_of
    from loadstone.size.sizing import ScenarioLoad
    from loadstone.size.sizing import size as sized

    rates, boots = _rates(logins, validations, mix), None
    if not rates and options["boots"] is None:
        raise click.UsageError("give --logins, --validations, --boots or --mix")
    if options["runs"] and options["lab"] is not None:
        raise click.UsageError("--run names the runs, and --lab chooses them: give one of the two")
    with open_to_read(location) as store:
        if options["boots"] is not None:
            runs = _runs(store, options["runs"], options["lab"], is_boot)
            boots = Boots(options["boots"], boot_cost(runs))
            for key, count in boots.cost.requests:
                rates[key] = rates.get(key, 0.0) + count * boots.rate_rps
        names = [SCENARIOS[key].name for key in rates]
        found = demands(names, _runs(store, options["runs"], options["lab"], names.__contains__))
    loads = [ScenarioLoad(one, rate) for one, rate in zip(found, rates.values(), strict=True)]
    sizing = sized(loads, options["cores_per_node"], options["utilisation"], boots)
    report = report_of(sizing)
    if write_formats(report, to):
        print_report(report, in_full=True)


def _rates(logins: float | None, validations: float | None, mix: Path | None) -> dict[str, float]:
    options = {"issue": logins, "validate": validations}
    rates = {key: rate for key, rate in options.items() if rate is not None}
    return _with_file(rates, mix) if mix else rates


def _with_file(given: dict[str, float], path: Path) -> dict[str, float]:
    """Return the rates of the options and of the file."""
    from loadstone.errors import InvalidInput
    from loadstone.system import yaml_file

    file = yaml_file.read(path)
    if not isinstance(file.content, dict) or not file.content:
        raise InvalidInput(
            f"{file.place()}: must be SCENARIO: RATE on each line, as validate: 2000/s"
        )
    rates = dict(given)
    for key, value in file.content.items():
        rate = per_second(str(value))
        if key not in SCENARIOS:
            raise InvalidInput(
                f"{file.place(key)}: no scenario {key!r}; choose from "
                f"{', '.join(sorted(SCENARIOS))}"
            )
        if rate is None:
            raise InvalidInput(
                f"{file.place(key)}: {key}: {value!r} is not a rate; write it like 40/s"
            )
        if key in given:
            raise InvalidInput(
                f"{file.place(key)}: {key} is given twice: in the file and as an option"
            )
        rates[str(key)] = rate
    return rates


def _runs(
    store: Any, named: tuple[str, ...], lab: str | None, is_wanted: "Callable[[str], bool]"
) -> "list[Run]":
    """Return the runs that may contain the costs of the wanted scenarios, newest first.

    Damaged ones are left out and named, unless they were asked for.
    """
    from loadstone.errors import EnvironmentUnusable
    from loadstone.result.model import LAB

    if named:
        runs = [store.get(name) for name in named]
        require_each_once([run.run_id for run in runs])
        return sorted(runs, key=lambda run: run.started_at, reverse=True)
    entries = [
        entry
        for entry in store.every(NEWEST)
        if any(is_wanted(one.scenario) for one in (*entry.findings, *entry.performed))
        and (lab is None or dict(entry.configuration).get(LAB) == lab)
    ]
    found = []
    for entry in entries:
        try:
            found.append(store.get(entry.run_id))
        except EnvironmentUnusable as damaged:
            show_notices([str(damaged)])
    return found
