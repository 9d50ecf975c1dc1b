"""`loadstone compare`: is B faster than A?"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal, Unpack

import click
from click.core import ParameterSource

from loadstone.cli.choose import (
    ANYWAY,
    ARGUMENT,
    PERMISSION,
    TAG,
    Command,
    backend_of,
    once,
    option_table,
    refuse_given,
)
from loadstone.cli.dry_run import DRY_RUN, show_dry_run
from loadstone.cli.duration import Number, RateRange, ShareParam
from loadstone.cli.generator import (
    GeneratorOptions,
    fleet_of,
    fleet_options,
    generator_options,
    placement_of,
)
from loadstone.cli.oidc import (
    ClientOptions,
    issuer,
    of_lab,
    oidc_options,
    require_no_client,
    searched_of,
)
from loadstone.cli.output import command_line, print_report, write_formats
from loadstone.cli.stored import JSON, JUNIT, MARKDOWN, STORE, open_store, open_to_read
from loadstone.cli.watching import watching, watching_options
from loadstone.keystone.scenarios import SCENARIOS

if TYPE_CHECKING:
    from loadstone.cli.prove import ProofOptions
    from loadstone.compare.answer import Criteria
    from loadstone.compare.measure import ComparisonConfig, MeasuredComparison, Side
    from loadstone.compare.section import Compared
    from loadstone.lab.keystone.settings import LabSettings
    from loadstone.oidc.target import OidcIssuer
    from loadstone.run.backend import Backend
    from loadstone.store.location import StoreLocation


TURNS_S, BLOCK_S = 3.0, 6.0  # of a trial, of both sides and of one
# Options of a measurement, which two stored runs do not need.
_OF_LOAD = (
    *("scenario", "given", "users", "concurrency", "rate_rps", "seconds", "method", "profiles"),
    *("pairs", "fewest_pairs", "fleet", "cores", "http", "tls_resumption", "tags"),
)
MOST_TARGETS = 10


class LoadOptions(GeneratorOptions):
    """Options of the load, of the criteria and of the output."""

    scenario: str
    given: tuple[str, ...]
    users: int
    concurrency: int
    rate_rps: float | None
    seconds: float
    method: str
    profiles: bool
    pairs: int
    fewest_pairs: int
    same_within: float
    is_dry: bool
    tags: tuple[tuple[str, str], ...]
    location: "StoreLocation"
    to: Path | None
    markdown: Path | None


class CompareOptions(LoadOptions, ClientOptions):
    """The values of the options."""

    runs: tuple[str, ...]
    labs: tuple[str, ...]
    clouds: tuple[str, ...]
    issuers: tuple[str, ...]
    releases: tuple[str, ...]
    levels: tuple[str, ...]
    base: tuple[str, ...]
    baseline: str | None
    most_slower: float | None
    is_kept: bool
    yes: bool
    anyway: bool
    junit: Path | None


class MethodOption(click.Option):
    """An option with one default for trials in turns and one for blocks.

    Trials in turns are shorter and more than blocks, because both sides are in each of them.
    """

    def __init__(self, words: list[str], *, turns: float, blocks: float, **given: Any) -> None:
        shown = f"{turns:g}, in blocks {blocks:g}"
        super().__init__(words, default=turns, show_default=shown, **given)
        self.blocks = blocks


def load_options(
    pairs: tuple[int, int] = (40, 24), fewest_pairs: int = 8, scenario: str | Literal[True] = True
) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of the load and of the number of pairs.

    `pairs` are the most in turns and in blocks; of the fewest, blocks have half. `scenario` is the
    text of the default of --scenario in the help; True shows its value.
    """

    return partial(_add_load_options, pairs=pairs, fewest_pairs=fewest_pairs, scenario=scenario)


def _add_load_options(
    command: Command, pairs: tuple[int, int], fewest_pairs: int, scenario: str | Literal[True]
) -> Command:
    of_method = (
        ("--seconds", "seconds", Number(1.0, 600.0), TURNS_S, BLOCK_S, "Duration of each trial."),
        ("--pairs", "pairs", click.IntRange(4, 1000), *pairs, "Maximum number of pairs of trials."),
        ("--pairs-at-least", "fewest_pairs", click.IntRange(2, 1000), fewest_pairs,
         fewest_pairs // 2, "Minimum number of pairs. More make the interval narrower if the "
         "answer is known early."),
    )  # fmt: skip
    of_load = option_table(
        ("--users", "users", click.IntRange(0, 10_000), 10, "Users to create on each target "
         "and remove at the end. 0: create nothing and use the given credentials."),
        ("--concurrency", "concurrency", click.IntRange(1, 10_000), 8, "Iterations in flight, in "
         "a closed loop. Throughput is compared; in turns, the time of single requests, too."),
        ("--same-within", "same_within", ShareParam(), "3%", "Ratios this close to 1 "
         "count as the same."),
    )  # fmt: skip
    command = TAG(DRY_RUN(watching_options(generator_options(fleet_options(command)))))
    command = click.option(
        "--rate",
        "rate_rps",
        type=RateRange(0.1, 100_000.0),
        help="Offer this rate instead of --concurrency. Latencies are compared.",
    )(command)
    command = click.option(
        "--method",
        type=click.Choice(["turns", "blocks"]),
        default="turns",
        help="How the loads of A and B follow each other: in turns of one or several iterations, "
        "or in whole trials. With --rate and --fleet always in whole trials.",
    )(command)
    command = click.option(
        "--profile",
        "profiles",
        is_flag=True,
        help="At the end, profile the workers of both, in turns, and name the functions in which "
        "the difference lies. For labs; needs py-spy.",
    )(command)
    command = of_load(ARGUMENT(command))
    for flag, name, values, turns, blocks, text in reversed(of_method):
        add = click.option(
            flag, name, cls=MethodOption, type=values, turns=turns, blocks=blocks, help=text
        )
        command = add(command)
    text = f"{', '.join(sorted(SCENARIOS))}; a mix; or a scenario of task files."
    return once("--scenario", default="issue", show_default=scenario, help=text)(command)


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN RUN]")
@click.option(
    "--lab",
    "labs",
    metavar="NAME",
    multiple=True,
    help="Lab deployment to compare; give two or more.",
)
@click.option(
    "--cloud",
    "clouds",
    metavar="NAME",
    multiple=True,
    help="Entry of clouds.yaml to compare; give two or more.",
)
@click.option(
    "--oidc",
    "issuers",
    metavar="ISSUER",
    multiple=True,
    help="OpenID provider to compare, with the same client and users; give two or more.",
)
@oidc_options
@click.option(
    "--release",
    "releases",
    metavar="RELEASE",
    multiple=True,
    help="Keystone release to compare, as --with release=; give two or more.",
)
@click.option(
    "--with",
    "levels",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting to compare, such as workers=1; give two or more. Creates deployments.",
)
@click.option(
    "--base",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting that all deployments have; may be repeated.",
)
@click.option("--baseline", metavar="RUN", help="Stored run to use as A; B is the RUN argument.")
@click.option(
    "--fail-if-slower",
    "most_slower",
    type=ShareParam(),
    help="Exit code 1 if B is slower than A by more than this, 4 if that is undecided.",
)
@click.option(
    "--keep-running",
    "is_kept",
    is_flag=True,
    help="Leave the processes of the --lab deployments as they are. By default Keystone is "
    "restarted on both sides between pairs of trials, because two starts of one deployment "
    "differ.",
)
@load_options()
@MARKDOWN
@JUNIT
@PERMISSION
@ANYWAY
@STORE
@JSON
@click.pass_context
def compare(ctx: click.Context, **options: Unpack[CompareOptions]) -> None:
    """Test whether B is faster than A, by how much, and how certain that is.

    Measures two targets in pairs, in random order, until the answer is known, or compares two
    stored runs. The output begins with the settings that differ. More than two targets are compared
    with the first, one after the other.

    \b
    loadstone compare --lab old --lab new --scenario validate
    loadstone compare --release 25.0.0 --release 30.0.0
    loadstone compare --release 30.0.0 --release 30.0.0+fix.patch --fail-if-slower 5%
    loadstone compare --with workers=1 --with workers=2 --base database=mariadb
    loadstone compare --release 28.0.0 --release 29.0.0 --release 30.0.0
    loadstone compare RUN RUN

    \b
    Exit codes:
      0  there is an answer: faster, slower or the same
      1  there is one, but something that a run created could not be removed
      4  there is no answer
    With --fail-if-slower SHARE:
      0  B is not slower by more than SHARE
      1  B is slower by more than SHARE
      4  that is undecided
    Always:
      70 internal error of Loadstone
    """
    pair = (options["baseline"], *options["runs"]) if options["baseline"] else options["runs"]
    chosen = [name for name in ("labs", "clouds", "issuers", "releases", "levels") if options[name]]
    if bool(pair) + len(chosen) != 1:
        raise click.UsageError(
            "give two runs, or two or more of one kind: --lab, --cloud, --oidc, --release or --with"
        )
    given = pair or options[chosen[0]]  # type: ignore[literal-required]
    if len(given) < 2 or (pair and len(given) > 2):
        wanted = "of two stored runs" if pair else "of two or more"
        raise click.UsageError(f"a comparison is {wanted}, not of {len(given)}: {', '.join(given)}")
    if len(given) > MOST_TARGETS:
        raise click.UsageError(
            f"at most {MOST_TARGETS} targets, not {len(given)}; a study compares more "
            "(docs/studies.md)"
        )
    for option, names in (("--oidc", options["issuers"]), ("--lab", options["labs"])):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise click.UsageError(
                f"{option} {twice} is given twice, and it is measured once at a time; for a test "
                "of equal services start a second one with its settings"
            )
    _require_meaning(options, chosen)
    if pair:
        refuse_given(ctx, _OF_LOAD, "does not go with stored runs: they are compared without load")
        if options["is_dry"]:
            raise click.UsageError("--dry-run: stored runs are compared without load")
    if options["is_dry"]:
        restarts = not options["is_kept"]
        show_dry_comparison(_sides(options), options, restarts=restarts)
        return
    found = (_stored(pair, options),) if pair else _measured(options, backend_of(ctx))
    ctx.exit(write_comparison(found, options))


def _require_meaning(options: CompareOptions, chosen: Sequence[str]) -> None:
    """Refuse options that say nothing of the chosen kind of targets."""
    if options["base"] and chosen not in (["releases"], ["levels"]):
        raise click.UsageError("--base means something with --release and --with only")
    if options["is_kept"] and chosen != ["labs"]:
        raise click.UsageError("--keep-running means something with --lab only")


def write_comparison(found: "Sequence[Compared]", options: Any) -> int:
    """Write comparisons with the same A in the requested formats; return the exit code."""
    from loadstone.compare.several import report_of_several

    report = report_of_several(found, options["location"].option)
    if write_formats(report, options["to"], options["markdown"], options["junit"]):
        print_report(report)
    return report.exit_code


def _takes_turns(options: LoadOptions) -> bool:
    is_in_blocks = options["method"] == "blocks" or options["rate_rps"] is not None
    return not is_in_blocks and options["fleet"] is None


def _of_method(name: str, value: float, options: LoadOptions) -> float:
    """Return the value of an option, which has another default in blocks."""
    if _is_given(name) or _takes_turns(options):
        return value
    command = click.get_current_context().command
    (option,) = (
        one for one in command.params if isinstance(one, MethodOption) and one.name == name
    )
    return option.blocks


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source not in (None, ParameterSource.DEFAULT)  # a configuration file gives it, too


def criteria(options: LoadOptions) -> "Criteria":
    """Return the criteria from the options."""
    from loadstone.compare.answer import Criteria

    most = int(_of_method("pairs", options["pairs"], options))
    fewest = int(_of_method("fewest_pairs", options["fewest_pairs"], options))
    if fewest > most and _is_given("fewest_pairs") and _is_given("pairs"):
        raise click.UsageError(f"--pairs-at-least {fewest} is more than --pairs {most}")
    # Of two limits of which one is the default, the one that is given counts.
    if fewest > most and _is_given("fewest_pairs"):
        most = fewest
    return Criteria(
        most_pairs=most,
        fewest_pairs=min(fewest, most),
        same_within=options["same_within"],
    )


def _stored(pair: tuple[str, ...], options: CompareOptions) -> "Compared":
    from loadstone.compare.stored import recorded

    with open_to_read(options["location"]) as store:
        a, b = (store.get(name) for name in pair)
        return recorded(
            a,
            b,
            store.samples,
            same_within=options["same_within"] if _is_given("same_within") else None,
            most_slower=options["most_slower"],
        )


def _measured(options: CompareOptions, backend: "Backend") -> "tuple[Compared, ...]":
    """Compare each target with the first; one that cannot be measured does not end the others."""
    from loadstone.compare.several import together
    from loadstone.errors import (
        EnvironmentUnusable,
        InvalidInput,
        MeasurementInvalid,
        StoreUnusable,
    )

    (a, *others), most_slower = _sides(options), options["most_slower"]
    found, problems = list["Compared"](), list[Exception]()
    for other in others:
        config = config_of(
            (a, other),
            options,
            most_slower,
            comparisons=len(others),
            restarts=not options["is_kept"],
        )
        try:
            measured = measure(config, options["location"], backend)
        except StoreUnusable:
            raise  # nothing that the others show could be stored
        # InvalidInput: a setting that only another release has.
        except (EnvironmentUnusable, InvalidInput, MeasurementInvalid) as problem:
            problems.append(problem)
            found.append(unmeasured(config, problem, options))
        else:
            found.append(comparison_of(measured, options, most_slower))
    if len(problems) == len(others):
        write_unmeasured(found, options)
        raise problems[0]
    return together(found, criteria(options)) if len(found) > 1 else tuple(found)


def write_unmeasured(found: "Sequence[Compared]", options: "CompareOptions | ProofOptions") -> None:
    """Write comparisons without a pair for a CI server and a pull request."""
    from loadstone.compare.several import report_of_several

    if options["markdown"] is not None or options["junit"] is not None:
        report = report_of_several(found, options["location"].option)
        write_formats(report, None, options["markdown"], options["junit"])


def unmeasured(
    config: "ComparisonConfig", problem: Exception, options: "CompareOptions | ProofOptions"
) -> "Compared":
    """Return a comparison without metrics, and what its runs left behind."""
    from loadstone.compare.section import Compared
    from loadstone.errors import first_line
    from loadstone.run.exit_code import left_by

    why = first_line(problem)
    a, b = (side.name for side in config.sides)
    title = config.searched.scenario.title
    return Compared(
        names=(a, b),
        settings=(),
        metrics=((title, ()),),
        criteria=config.criteria,
        is_paired=True,
        most_slower=config.most_slower,
        notes=(why,),
        left=left_by(options["location"], config.run_ids),
        broken_off=why,
    )


def measure(
    config: "ComparisonConfig", location: "StoreLocation", backend: "Backend"
) -> "MeasuredComparison":
    """Measure two targets in pairs."""
    from loadstone.compare.measure import measure

    with open_store(location) as store, watching(backend, store) as display:
        return measure(config, store, display, backend)


def show_dry_comparison(
    sides: "Sequence[Side]", options: LoadOptions, *, restarts: bool = True
) -> None:
    """Print what comparisons with the first side would send, or write it as JSON."""
    from loadstone.compare.measure import run_config
    from loadstone.workload.preview import preview

    a, *others = sides
    show_dry_run(
        tuple(
            preview(
                run_config(config_of((a, b), options, restarts=restarts), 0, lambda _measure: None),
                (b.target,),
            )
            for b in others
        ),
        options["to"],
    )


def config_of(
    sides: "tuple[Side, Side]",
    options: LoadOptions,
    most_slower: float | None = None,
    parameters: tuple[tuple[str, str], ...] = (),
    comparisons: int = 1,
    *,
    restarts: bool = True,
) -> "ComparisonConfig":
    """Return the comparison from the options, one of several with the same A.

    `parameters` are stored with both runs.
    """
    from loadstone.compare.measure import ComparisonConfig, Remedies
    from loadstone.compare.several import share_of
    from loadstone.plan.load import ClosedLoad, OpenLoad

    rate = options["rate_rps"]
    if rate is not None:
        context = click.get_current_context()
        refuse_given(context, ("concurrency",), "does not go with --rate; give one of the two")
    seconds = _of_method("seconds", options["seconds"], options)
    if options["profiles"] and not _takes_turns(options):
        raise click.UsageError(
            "--profile profiles both sides in turns: without --method blocks, --rate and --fleet"
        )
    load = (
        ClosedLoad(options["concurrency"], duration_s=seconds)
        if rate is None
        else OpenLoad(rate, seconds)
    )
    return ComparisonConfig(
        sides=sides,
        searched=searched_of(click.get_current_context(), sides[0].target, options),
        load=load,
        criteria=share_of(criteria(options), comparisons),
        command=command_line(),
        most_slower=most_slower,
        placement=placement_of(options),
        fleet=fleet_of(options),
        parameters=parameters,
        tags=options["tags"],
        takes_turns=options["method"] == "turns",
        restarts=restarts,
        profiles=options["profiles"],
        remedies=Remedies(
            time_used="; raise --pairs to go on for longer",
            slow="; raise --pairs, or lower --concurrency",
            fast=": give a --rate",
            short="; give more --seconds, or less --concurrency",
        ),
    )


def comparison_of(
    measured: "MeasuredComparison",
    options: LoadOptions,
    most_slower: float | None = None,
    notes: tuple[str, ...] = (),
) -> "Compared":
    """Return a measured comparison for display."""
    from loadstone.compare import disturbance
    from loadstone.compare.measure import SIDE
    from loadstone.compare.section import Compared
    from loadstone.report.settings import differences

    a, b = measured.runs
    [one], [other] = a.measurements, b.measurements
    return Compared(
        names=(dict(one.parameters)[SIDE], dict(other.parameters)[SIDE]),
        settings=differences([a.environment.settings, b.environment.settings]),
        metrics=((one.title, measured.comparison.metrics),),
        criteria=criteria(options),
        is_paired=True,
        is_in_turns=one.policy == "turns",
        run_ids=(a.run_id, b.run_id),
        most_slower=most_slower,
        statements=measured.comparison.statements,
        where=measured.where,
        notes=(*notes, *disturbance.notes(measured.runs)),
        left=measured.left,
    )


def _sides(options: CompareOptions) -> "tuple[Side, ...]":
    from loadstone.compare.measure import Side
    from loadstone.lab.keystone import settings
    from loadstone.target.choice import NamedTarget

    ctx = click.get_current_context()
    if options["issuers"]:
        return tuple(Side(url, issuer(ctx, url, options)) for url in options["issuers"])
    require_no_client(ctx)
    labs, clouds = options["labs"], options["clouds"]
    providers = [of_lab(name, options) for name in labs]
    if any(providers):
        both = zip(labs, providers, strict=True)
        return tuple(Side(name, _provider(name, one)) for name, one in both)
    named = [(name, name, None) for name in labs] + [(name, None, name) for name in clouds]
    if named:
        return tuple(
            Side(name, NamedTarget(lab, cloud, options["yes"], options["anyway"]))
            for name, lab, cloud in named
        )
    base = [settings.split(pair) for pair in options["base"]]
    levels = [*(f"release={one}" for one in options["releases"]), *options["levels"]]
    return tuple(
        temporary(level, side, settings.read([*base, settings.split(level)]))
        for side, level in zip(ascii_lowercase, levels, strict=False)
    )


def _provider(name: str, provider: "OidcIssuer | None") -> "OidcIssuer":
    if provider is None:
        raise click.UsageError(f"--lab {name} is no OpenID provider, and another one is")
    return provider


def temporary(name: str, side: str, settings: "LabSettings") -> "Side":
    """Return a temporary deployment as one side; it is removed after the comparison."""
    import secrets

    from loadstone.compare.measure import Side
    from loadstone.target.choice import OwnLab

    return Side(name, OwnLab(f"compare-{secrets.token_hex(3)}-{side}", settings, is_purged=True))
