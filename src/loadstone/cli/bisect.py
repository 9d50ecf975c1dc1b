"""`loadstone bisect`: which version made it slower?"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

import click

from loadstone.cli.choose import backend_of
from loadstone.cli.compare import (
    LoadOptions,
    comparison_of,
    config_of,
    load_options,
    show_dry_comparison,
    temporary,
)
from loadstone.cli.output import print_report, write_formats
from loadstone.cli.stored import JSON, MARKDOWN, STORE, open_store
from loadstone.cli.watching import watching
from loadstone.errors import first_line

if TYPE_CHECKING:
    from loadstone.compare.answer import MetricComparison
    from loadstone.compare.bisect import Bisected, JudgedVersion
    from loadstone.compare.measure import Side
    from loadstone.compare.section import Compared
    from loadstone.lab.keystone.settings import LabSettings
    from loadstone.live.feed import Feed
    from loadstone.report.section import Report
    from loadstone.run.backend import Backend
    from loadstone.store.store import Store

FEWEST = 3  # versions


class BisectOptions(LoadOptions):
    """The values of the options."""

    good: str | None
    bad: str | None
    releases: tuple[str, ...]
    levels: tuple[str, ...]
    base: tuple[str, ...]
    is_faster: bool
    is_resumed: bool


@dataclass(frozen=True, slots=True)
class Version:
    """One of the versions, in their order."""

    name: str
    settings: "LabSettings"


@click.command()
@click.option("--good", metavar="RELEASE", help="Release that is fast, as --with release=.")
@click.option("--bad", metavar="RELEASE", help="Later release that is slower.")
@click.option(
    "--release",
    "releases",
    metavar="RELEASE",
    multiple=True,
    help="Instead of --good and --bad: every version, in order.",
)
@click.option(
    "--with",
    "levels",
    metavar="KEY=VALUE",
    multiple=True,
    help="Instead of releases: changes of settings, in order. Each version has one more of them.",
)
@click.option("--base", metavar="KEY=VALUE", multiple=True, help="Setting that all versions have.")
@click.option(
    "--faster",
    "is_faster",
    is_flag=True,
    help="Find the first version that is faster, such as one with a fix. The last one is fast.",
)
@click.option(
    "--resume",
    "is_resumed",
    is_flag=True,
    help="Use the comparisons of an earlier, unfinished run of the same command.",
)
@load_options(pairs=(48, 24))
@MARKDOWN
@STORE
@JSON
@click.pass_context
def bisect(ctx: click.Context, **options: Unpack[BisectOptions]) -> None:
    """Find the first of several versions that is slower.

    Compares the last version with the first, then halves the versions between them: each step
    creates two deployments and compares one version with the first. At the end the first slow
    version is compared with the one before it.

    \b
    loadstone bisect --good 24.0.0 --bad 25.0.0 --scenario validate-app-credential
    loadstone bisect --good git+file://$PWD@v1 --bad git+file://$PWD@main --scenario validate
    loadstone bisect --base workers=2 --with cache=memcached --with token=jws --with hash-rounds=13

    \b
    Exit codes:
      0  the first slow version was found
      1  it was found, and something that a run created could not be removed
      4  the last version is not slower, or the comparisons do not decide
      70 internal error of Loadstone
    """
    versions = _versions(options)
    if options["is_faster"]:
        versions.reverse()  # the last of these is slower, and the first slow one follows the fix
    if options["is_dry"]:
        sides = _sides(versions[0], versions[-1])
        show_dry_comparison(sides, options)
        # The ends, the steps between them, and the first slow version beside the one before it.
        count = 2 + (len(versions) - 2).bit_length()
        click.echo(f"about {count} such comparisons, of {len(versions)} versions", err=True)
        return
    if options["profiles"]:  # refused before the first of many comparisons
        from loadstone.observers.profile import program

        program()
    backend = backend_of(ctx)
    with open_store(options["location"]) as store, watching(backend, store) as display:
        bisection = _VersionBisection(versions, options, backend, store, display)
        report = bisection.with_left(bisection.report())
    ctx.exit(_show(report, options))


def _versions(options: BisectOptions) -> list[Version]:
    from loadstone.lab.keystone import settings
    from loadstone.lab.keystone.versions import between

    good, bad = options["good"], options["bad"]
    chosen = [bool(good or bad), bool(options["releases"]), bool(options["levels"])]
    if sum(chosen) != 1 or bool(good) != bool(bad):
        raise click.UsageError("give --good and --bad, or --release, or --with, for each version")
    base = [settings.split(pair) for pair in options["base"]]
    if options["levels"]:
        changes = [settings.split(level) for level in options["levels"]]
        names = ["as it is", *options["levels"]]
        found = [
            Version(name, settings.read([*base, *changes[:count]]))
            for count, name in enumerate(names)
        ]
    else:
        releases = options["releases"] or between(str(good), str(bad))
        found = [Version(name, settings.read([*base, ("release", name)])) for name in releases]
    if len(found) < FEWEST:
        raise click.UsageError(
            f"there is nothing between {found[0].name} and {found[-1].name}: "
            "`loadstone compare` compares two versions"
        )
    return found


def _sides(a: Version, b: Version) -> "tuple[Side, Side]":
    return temporary(a.name, "a", a.settings), temporary(b.name, "b", b.settings)


@dataclass(frozen=True, slots=True)
class _VersionBisection:
    versions: list[Version]
    options: BisectOptions
    backend: "Backend"
    store: "Store"
    display: "Feed"
    known_runs: list[str] = field(default_factory=list)  # of an earlier, unfinished bisection

    def with_left(self, report: "Report") -> "Report":
        """Return the report with what the runs of all steps left in their clouds."""
        from loadstone.report.sections.left import with_left
        from loadstone.run.exit_code import left_by

        run_ids = (*self.known_runs, *self.display.state.run_ids)
        runs = left_by(self.store.location, run_ids)
        return with_left(report, runs, self.options["location"].option)

    def report(self) -> "Report":
        """Carry it out; return the report of its last comparison, with the steps."""
        from loadstone.compare.bisect import JudgedVersion, StepAnswer, bisect, slowest, step_of
        from loadstone.compare.section import Compared
        from loadstone.errors import (
            EnvironmentUnusable,
            InvalidInput,
            MeasurementInvalid,
            StoreUnusable,
        )

        last = len(self.versions) - 1
        self._say(f"{len(self.versions)} versions; the last one compared with the first")
        ends = self._compared(0, last)
        [(_, rows)] = ends.metrics
        whole = slowest(rows)
        if whole is None:
            return _without_slowdown(ends, self)

        def compared(index: int) -> "JudgedVersion":
            self._say(f"{self.versions[index].name} compared with {self.versions[0].name}")
            try:
                [(_, found)] = self._compared(0, index, whole).metrics
                step = step_of(index, found, whole)
            except StoreUnusable:
                raise  # it says nothing of the version
            # InvalidInput: a setting that another version has, or a scenario that it lacks.
            except (EnvironmentUnusable, InvalidInput, MeasurementInvalid) as problem:
                why = first_line(problem)
                self._say(f"{self.versions[index].name} cannot be measured: {why}")
                step = JudgedVersion(index, StepAnswer.UNDECIDED, None, why)
            self._say(f"{self.versions[index].name}: {step.answer.value}")
            return step

        found = bisect(len(self.versions), compared)
        if (found.last_good, found.first_bad) == (0, last):
            return _with_steps(ends, found, whole, self)
        self._say(
            f"{self.versions[found.first_bad].name} compared with "
            f"{self.versions[found.last_good].name}"
        )
        try:
            neighbours = self._compared(found.last_good, found.first_bad)
        except StoreUnusable:
            raise
        except (EnvironmentUnusable, MeasurementInvalid) as problem:
            # The steps have their answers all the same.
            names = (self.versions[found.last_good].name, self.versions[found.first_bad].name)
            why = f"{names[1]} could not be compared with {names[0]}: {first_line(problem)}"
            nothing = tuple((title, ()) for title, _ in ends.metrics)
            neighbours = Compared(names, (), nothing, ends.criteria, is_paired=True, notes=(why,))
        return _with_steps(neighbours, found, whole, self)

    def _say(self, line: str) -> None:
        self.display.say(f"bisect: {line}")

    def _compared(
        self, one: int, other: int, whole: "MetricComparison | None" = None
    ) -> "Compared":
        """Compare two versions, or return what an earlier run found.

        With `whole` only its metric is compared, until it is known to be on one side of the limit.
        """
        from loadstone.compare.bisect import limit
        from loadstone.compare.measure import measure

        options, metric = self.options, None if whole is None else whole.metric
        most_slower = None if whole is None else limit(whole)
        parameters = (
            (BISECTION, self._key),
            (STEP, f"{one},{other},{'' if metric is None else metric.name}"),
        )
        profiles = options["profiles"] and metric is None and one + 1 == other
        if options["is_resumed"]:
            known = _known(self.store, parameters, most_slower)
            if known is not None and (known.where is not None or not profiles):
                self._say("measured before")
                self.known_runs.extend(known.run_ids)
                return known
        sides = _sides(self.versions[one], self.versions[other])
        config = replace(
            config_of(sides, options, most_slower, parameters),
            metric=metric,
            profiles=profiles,
        )
        measured = measure(config, self.store, self.display, self.backend)
        # What its runs left is said of all steps together.
        return replace(comparison_of(measured, options, most_slower), left=())

    @property
    def _key(self) -> str:
        """Return what identifies a bisection: its versions, its scenario and its load.

        A patch, a folder or a branch may have other content under the same name.
        """
        options = self.options
        load = (
            *(options["scenario"], options["given"], options["users"], options["concurrency"]),
            *(options["rate_rps"], options["seconds"], options["method"], options["pairs"]),
            *(options["fewest_pairs"], options["same_within"], options["cores"], options["fleet"]),
            *(str(options["http"]), options["tls_resumption"]),
        )
        pairs = [
            (one.name, one.settings.pairs(), one.settings.source.title) for one in self.versions
        ]
        return hashlib.sha256(repr((pairs, load)).encode()).hexdigest()[:12]


BISECTION = "bisection"  # parameter: the versions and the load of a bisection
STEP = "bisection step"  # parameter: which two versions, and the metric if it is only one


def _known(
    store: "Store", parameters: tuple[tuple[str, str], ...], most_slower: float | None
) -> "Compared | None":
    """Return a comparison of an earlier run.

    One that is damaged, has no complete pair, or whose samples are not here, is made again.
    """
    from loadstone.compare.measure import ROLE
    from loadstone.compare.stored import other_side, recorded
    from loadstone.errors import EnvironmentUnusable, MeasurementInvalid

    for run_id, known in store.with_parameter(BISECTION):
        if all(known.get(name) == value for name, value in parameters) and known[ROLE] == "A":
            with suppress(EnvironmentUnusable, MeasurementInvalid):
                both = other_side(store.get(run_id), store)
                if both is not None and both[1].status == "finished":
                    return replace(recorded(*both, store.samples), most_slower=most_slower)
    return None


def _without_slowdown(ends: "Compared", bisection: _VersionBisection) -> "Report":
    from loadstone.compare.section import report_of

    first, last = bisection.versions[0].name, bisection.versions[-1].name
    said = (
        f"{first} was not shown to be faster than {last}: there is no gain to find."
        if bisection.options["is_faster"]
        else f"{last} was not shown to be slower than {first}: there is no slowdown to find."
    )
    data: dict[str, object] = {
        "first_bad": None,
        "last_good": None,
        "not_judged": [],
        "slowdown": None,
        "metric": None,
        "steps": [],
    }
    report = report_of(ends, bisection.options["location"].option)
    return _with_answer(report, said, data, is_answered=False)


def _with_steps(
    neighbours: "Compared",
    found: "Bisected",
    whole: "MetricComparison",
    bisection: _VersionBisection,
) -> "Report":
    from loadstone.compare.bisect import is_confirmed, slowdown
    from loadstone.compare.section import interval, report_of
    from loadstone.report import figures
    from loadstone.report.section import Row, Table, TableColumn

    names = [one.name for one in bisection.versions]
    good, bad = names[found.last_good], names[found.first_bad]
    # The versions of a search for a gain are in reverse: the fast one came after the slow one.
    is_faster = bisection.options["is_faster"]
    before, blamed, word = (bad, good, "faster") if is_faster else (good, bad, "slower")
    [(_, rows)] = neighbours.metrics
    has_brought_it = is_confirmed(rows, whole)
    times = f"{slowdown(whole):.3f} times in {whole.metric.name}"
    if not found.is_found:
        between = ", ".join(names[found.last_good + 1 : found.first_bad])
        said = (
            f"It became {word} ({times}) after {before} and at the latest with {blamed}; "
            f"{between} could not be judged."
        )
    elif not rows:
        said = (
            f"{blamed} is the first on the {word} side of half the difference ({times}); its "
            f"comparison with {before} failed."
        )
    elif has_brought_it:
        said = f"{blamed} is the first that is {word}."
    else:
        said = (
            f"{blamed} is the first on the {word} side of half the difference ({times}), but "
            f"compared with {before} it was not shown to be {word} by as much: several versions "
            "may have a part in it."
        )
    steps = Table(
        f"Versions compared with {names[0]}",
        (
            TableColumn("version"),
            TableColumn("B / A", is_number=True),
            TableColumn("95 %"),
            TableColumn("it is"),
        ),
        tuple(
            Row(
                (
                    names[step.index],
                    f"{step.row.ratio:.3f}" if step.row else figures.MISSING,
                    interval(step.row) if step.row else figures.MISSING,
                    step.answer.value,
                ),
                note=step.failure,
            )
            for step in found.steps
        ),
        f"{whole.metric.name}; {names[-1]} has {whole.ratio:.3f}",
    )
    report = report_of(neighbours, bisection.options["location"].option)
    is_answered = found.is_found and has_brought_it
    data = {
        "first_bad": blamed if is_answered else None,
        "last_good": before,
        "not_judged": names[found.last_good + 1 : found.first_bad],
        "slowdown": slowdown(whole),
        "metric": whole.metric.name,
        "steps": [
            {
                "version": names[one.index],
                "answer": one.answer.value,
                "ratio": one.row.ratio if one.row else None,
            }
            for one in found.steps
        ],
    }
    report = replace(report, tables=(steps, *report.tables))
    return _with_answer(report, said, data, is_answered=is_answered)


def _with_answer(
    report: "Report", said: str, data: Mapping[str, object], *, is_answered: bool
) -> "Report":
    """Return the report of a comparison as that of the bisection that it is part of."""
    from loadstone.errors import MeasurementInvalid
    from loadstone.report.section import Statement

    return replace(
        report,
        title=said,
        statements=(Statement(said), *report.statements),
        exit_code=0 if is_answered else MeasurementInvalid.exit_code,
        data={**report.data, "bisection": {"sentence": said, **data}},
    )


def _show(report: "Report", options: BisectOptions) -> int:
    if write_formats(report, options["to"], options["markdown"]):
        click.echo(report.title)
        print_report(report)
    return report.exit_code
