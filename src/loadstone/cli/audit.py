"""`loadstone audit`: settings of an identity service that cost performance."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.audit_options import host_options, run_audit
from loadstone.cli.duration import Number
from loadstone.cli.stored import JSON, STDOUT, STORE, OutputFile, write, write_json

if TYPE_CHECKING:
    from loadstone.audit.evaluate import Audit
    from loadstone.diagnosis.finding import Severity

DEFAULT = "check"
FORMATS = {
    "junit": "as JUnit XML, a test case per rule and host",
    "sarif": "as SARIF 2.1.0, which editors and code hosts show at the line of the setting",
    "markdown": "as Markdown",
    "textfile": "as metrics for Prometheus' textfile collector",
    "browbeat": "as Browbeat's bug report",
}


# Commands in separate modules, imported on use.
ELSEWHERE = {"guests": "loadstone.cli.guests", "prove": "loadstone.cli.audit_prove"}


class WithDefault(click.Group):
    """Runs `check` if no command is named: `loadstone audit --lab NAME`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *ELSEWHERE])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing its module if it has one."""
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(ELSEWHERE[cmd_name]), cmd_name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command before other arguments."""
        known = (*self.list_commands(ctx), *ctx.help_option_names)
        if not args or args[0] not in known:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(cls=WithDefault)
def audit() -> None:
    """Find settings of an identity service that cost performance.

    \b
    loadstone audit                          this machine
    loadstone audit --lab NAME               a deployment of `loadstone lab`
    loadstone audit --host A --host B        hosts over ssh, with your own configuration of ssh
    loadstone audit --inventory FILE         a list of hosts, or an Ansible inventory
    loadstone audit facts.json               what `loadstone audit collect` wrote elsewhere

    These are short for `loadstone audit check ...`, whose --help lists all options. Nothing is
    changed on any host.

    \b
    Exit codes: 1 there is a finding at or above --fail-on (critical); 4 something that could have
    been such a finding was not readable; 2 usage; 3 this machine cannot do it; 70
    internal error.
    """


def _outputs(command: Any) -> Any:
    for name, description in reversed(FORMATS.items()):
        text = f"Write the audit {description}; - is stdout."
        command = click.option(f"--{name}", type=OutputFile(), help=text)(command)
    return command


@audit.command()
@click.argument("files", nargs=-1, metavar="[FACTS]...", type=click.Path(path_type=Path))
@host_options
@click.option(
    "--pack", "packs", multiple=True, metavar="NAME", help="Add a pack of rules (refarch)."
)
@click.option(
    "--rule", "only", multiple=True, metavar="ID", help="Check only this rule; may be repeated."
)
@click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "info"]),
    default="critical",
    help="Minimum severity that gives exit code 1.",
)
@click.option(
    "--waivers", type=click.Path(path_type=Path), help="File with findings that you accept."
)
@click.option(
    "--rate", type=Number(min=0), default=0.0, show_default=False, help="Planned load, requests/s."
)
@click.option(
    "--logins-per-s",
    type=Number(min=0),
    default=0.0,
    show_default=False,
    help="Planned load, logins/s.",
)
@click.option("--result", metavar="RUN", help="Run whose service time is used with --rate.")
@click.option(
    "--all", "all_states", is_flag=True, help="Also show rules that passed or do not apply."
)
@STORE
@JSON
@_outputs
@click.option("--fix-playbook", type=OutputFile(), help="Write the fixes as an Ansible playbook.")
@click.pass_context
def check(ctx: click.Context, /, files: tuple[Path, ...], to: Path | None, **options: Any) -> None:
    """Check hosts, or FACTS that were collected before, against the rules."""
    from loadstone.diagnosis.finding import Severity

    if options["result"] is not None and options["rate"] <= 0:
        raise click.UsageError("--result needs --rate: the load that its service time is used for")
    fail_on = Severity(options["fail_on"])
    found = run_audit(files, options)
    code = _exit_code(found, fail_on)
    if to is not None:
        from loadstone.audit import data

        write_json(data.as_tree(found, fail_on, code), to)
    written = [name for name in (*FORMATS, "fix_playbook") if options[name] is not None]
    for name in written:
        write(_rendered(name, found), options[name])
    if to is None and STDOUT not in (options[name] for name in written):
        _show(found, all_states=options["all_states"])
    ctx.exit(code)


def _exit_code(found: "Audit", fail_on: "Severity") -> int:
    from loadstone.errors import FELL_SHORT, MeasurementInvalid

    if found.falls_short(fail_on):
        return FELL_SHORT
    return MeasurementInvalid.exit_code if found.is_incomplete(fail_on) else 0


def _rendered(name: str, found: "Audit") -> str:
    view = import_module(f"loadstone.audit.views.{name}")
    text: str = view.render(found)
    return text


def _show(found: "Audit", *, all_states: bool) -> None:
    from loadstone.audit.views import table
    from loadstone.report.console import PrintableConsole

    table.render(found, PrintableConsole(highlight=False), all_states=all_states)


@audit.command()
@host_options
@click.option(
    "--script", is_flag=True, help="Print the collector script, to run it by hand: sh FILE."
)
@click.option(
    "-o", "--output", type=OutputFile(), default="-", show_default=False, help="File to write."
)
def collect(script: bool, output: Path, **options: Any) -> None:
    """Collect facts and print them as JSON, for `loadstone audit FACTS` on another machine."""
    from loadstone.audit import archive, transport
    from loadstone.cli.audit_options import collect_hosts

    if script:
        write(transport.COLLECTOR.read_text(), output)
        return
    found = collect_hosts(options)
    for one in found:
        if one.failure is not None:
            click.echo(f"loadstone: {one.name}: {one.failure}", err=True)
    write_json(archive.as_tree(found, is_lab=options["lab"] is not None), output)


@audit.command()
@click.argument("rule_id", metavar="[ID]", required=False)
@JSON
def rules(rule_id: str | None, to: Path | None) -> None:
    """List the rules, or show one with its sources and its fix."""
    from loadstone.audit import rule
    from loadstone.audit.views import rule_page

    chosen = (rule.find(rule_id),) if rule_id else rule.every()
    if to is not None:
        write_json([one.model_dump(mode="json") for one in chosen], to)
    elif rule_id:
        click.echo(rule_page.render(chosen[0]), nl=False)
    else:
        for one in chosen:
            pack = "" if one.pack == rule.CORE else f" [{one.pack}]"
            click.echo(f"{one.id:<8}  {one.highest.value:<8}  {one.title}{pack}")
