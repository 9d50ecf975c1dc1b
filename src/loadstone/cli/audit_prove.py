"""`loadstone audit prove`: the gain of a rule's fix, measured on the lab."""

import os
from typing import TYPE_CHECKING, Unpack

import click
from click.core import ParameterSource

from loadstone.cli.choose import UNDONE_ANYWAY, backend_of
from loadstone.cli.compare import load_options, temporary
from loadstone.cli.prove import ProofOptions, require_lab_undone, state_gain
from loadstone.cli.stored import JSON, JUNIT, MARKDOWN, STORE

if TYPE_CHECKING:
    from loadstone.audit.evaluate import RuleState
    from loadstone.audit.rule import Rule


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option(
    "--lab", metavar="NAME", required=True, help="Deployment whose settings are measured."
)
# Rules are about large effects, which few pairs show. The error rate is spread over the maximum
# number of pairs, so a lower maximum makes early intervals narrower.
@load_options(pairs=(32, 16), fewest_pairs=12, scenario="the one that the rule names")
@MARKDOWN
@JUNIT
@UNDONE_ANYWAY
@STORE
@JSON
@click.pass_context
def prove(ctx: click.Context, rule_id: str, **options: Unpack[ProofOptions]) -> None:
    """Measure before and after the fix of a rule, in pairs, and state the gain.

    Creates two deployments with the settings of --lab NAME: A breaks the rule, B follows it. They
    are removed at the end; NAME itself is not touched. Afterwards `loadstone audit` shows the
    gain next to the rule's findings.

    \b
    loadstone audit prove WEB-01 --lab demo
    loadstone audit prove KS-01 --lab demo

    Exit code 0 if there is an answer: faster, slower or the same; 1 if there is one, but something
    that a run created could not be removed; 4 if there is none, or no setting of the lab can show
    the rule's effect ("not measured"); 70 after an internal error.
    """
    from loadstone.audit import proof, rule
    from loadstone.lab import deployment
    from loadstone.lab.keystone import settings

    chosen = rule.find(rule_id)
    current = deployment.load(options["lab"]).state.last.settings
    require_lab_undone(options["lab"], anyway=options["anyway"])
    state = _state(chosen, options["lab"]) if chosen.proof else None
    found = proof.sides(chosen, current, state, os.cpu_count() or 1)
    if chosen.proof and ctx.get_parameter_source("scenario") in (None, ParameterSource.DEFAULT):
        options["scenario"] = chosen.proof.scenario
    note = f"{chosen.id}: {chosen.title}. {found.note}."
    click.echo(note, err=True)
    before = temporary(proof.BEFORE, "a", settings.read(found.before))
    after = temporary(proof.AFTER, "b", settings.read(found.after))
    parameters = proof.parameters(chosen, found, options["lab"])
    sides, backend = (before, after), backend_of(ctx)
    ctx.exit(state_gain(sides, found.changes, options, backend, (note,), parameters))


def _state(chosen: "Rule", name: str) -> "RuleState | None":
    """Return the state of the rule on the deployment; None if that does not run."""
    from loadstone.audit.evaluate import evaluate
    from loadstone.audit.extract import extract
    from loadstone.audit.kept import QUICK
    from loadstone.audit.lab import host
    from loadstone.audit.transport import collect
    from loadstone.errors import EnvironmentUnusable
    from loadstone.lab.deployment import find

    try:
        [found] = collect([host(find(name), **QUICK)])
    except EnvironmentUnusable:
        return None
    if found.document is None:
        return None
    known = extract(found.name, found.document, {"audit.is_lab": True, "audit.hosts": 1})
    return evaluate([chosen], [known]).results[0].state
