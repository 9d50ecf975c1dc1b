"""`loadstone audit prove`: what the fix of a rule brings, measured on the lab."""

import os
from typing import TYPE_CHECKING, Unpack

import click
from click.core import ParameterSource

from loadstone.cli.compare import load_options, temporary
from loadstone.cli.prove import ProofOptions, state_gain
from loadstone.cli.stored import JSON, STORE, OutputFile

if TYPE_CHECKING:
    from loadstone.audit.evaluate import RuleState
    from loadstone.audit.rule import Rule


# The error rate is spent over the most pairs, so that fewer make early intervals narrower. What a
# rule warns of changes much, and shows in so few.
COMMANDLINE = ParameterSource.COMMANDLINE
PAIRS = {"pairs": 16, "fewest_pairs": 6}


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option(
    "--lab", metavar="NAME", required=True, help="The deployment whose settings are measured."
)
@load_options
@click.option("--markdown", type=OutputFile(), help="Write it for a pull request's comment.")
@click.option("--junit", type=OutputFile(), help="Write it for a CI server.")
@STORE
@JSON
@click.pass_context
def prove(ctx: click.Context, rule_id: str, **options: Unpack[ProofOptions]) -> None:
    """Measure before and after the fix of a rule, in pairs, and state the gain.

    Two deployments are made with the settings of --lab NAME: A breaks the rule, B keeps it. They
    are removed at the end; NAME itself is not touched. The load is the scenario that the rule
    names, unless --scenario says otherwise. `loadstone audit` shows the gain beside the rule's
    findings from then on.

    \b
    loadstone audit prove WEB-01 --lab demo
    loadstone audit prove KS-01 --lab demo

    At most 16 pairs and at least 6, unless --pairs and --pairs-at-least say otherwise.

    Ends with 0 when the answer is known, whatever it is; with 4 when it is not, or when no setting
    of the lab can show the rule's effect ("not measured").
    """
    from loadstone.audit import proof, rule
    from loadstone.keystone import deployment
    from loadstone.keystone.deploy import settings

    chosen = rule.find(rule_id)
    known = deployment.known(options["lab"]).state.settings
    state = _state(chosen, options["lab"]) if chosen.proof else None
    found = proof.sides(chosen, known, state, os.cpu_count() or 1)
    if chosen.proof:
        usual = {"scenario": chosen.proof.scenario, **PAIRS}
        unset = {n: v for n, v in usual.items() if ctx.get_parameter_source(n) is not COMMANDLINE}
        options.update(unset)  # type: ignore[typeddict-item]
    note = f"{chosen.id}: {chosen.title}. {found.note}."
    click.echo(note, err=True)
    before = temporary(proof.BEFORE, "a", settings.read(found.before))
    after = temporary(proof.AFTER, "b", settings.read(found.after))
    kept = proof.parameters(chosen, found, options["lab"])
    ctx.exit(state_gain((before, after), found.changes, options, notes=(note,), parameters=kept))


def _state(chosen: "Rule", name: str) -> "RuleState | None":
    """Return how the rule ends on the deployment; None where that does not run."""
    from loadstone.audit.evaluate import evaluate
    from loadstone.audit.extract import extract
    from loadstone.audit.lab import host
    from loadstone.audit.transport import collect
    from loadstone.errors import EnvironmentUnusable
    from loadstone.keystone.deployment import find

    try:
        [found] = collect([host(find(name))])
    except EnvironmentUnusable:
        return None
    if found.document is None:
        return None
    known = extract(found.name, found.document, {"audit.is_lab": True, "audit.hosts": 1})
    return evaluate([chosen], [known]).results[0].state
