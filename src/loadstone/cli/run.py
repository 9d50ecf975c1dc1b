"""`loadstone run`: a task file, carried out."""

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import click

from loadstone.cli import plugin
from loadstone.cli.capacity import command_line
from loadstone.cli.choose import PERMISSION, chosen, target_options
from loadstone.cli.run_options import Options, limit_options, output_options
from loadstone.cli.stored import JSON, STORE, open_store
from loadstone.cli.style import in_style, styled
from loadstone.cli.task import template_options

if TYPE_CHECKING:
    from loadstone.task.checked import Checked


@click.command()
@click.argument("file", metavar="TASK")
@template_options
@target_options
@PERMISSION
@limit_options
@output_options
@STORE
@JSON
@click.pass_context
def run(ctx: click.Context, **options: Unpack[Options]) -> None:
    """Carry out TASK, one of Rally's task files for identity (-: stdin).

    Ends with 0 when every SLA held, with 1 when one failed or something is left in the cloud, with
    3 when a workload could not be carried out, with 4 when the load generator could not keep the
    rate that was asked for.
    """
    from loadstone.functions.reading import Question, read_apart

    with in_style(options["style"]):
        file, raw, args_file = options["file"], options["raw"], options["args_file"]
        checked = read_apart(Question(file, raw, args_file, ctx.meta[plugin.FILES]))
        code = _carried_out(checked, options)
        ctx.exit(styled(code, options["style"]))


def _carried_out(checked: "Checked", options: Options) -> int:
    # Imported once the child that reads the file has ended: memory is that of both together.
    from loadstone.cli import performed
    from loadstone.cli.screen import Screen
    from loadstone.perform.flow import begin, perform
    from loadstone.perform.resume import maker

    order = performed.order(checked.task, options)
    with (
        open_store(options["folder"]) as store,
        Screen() as screen,
        chosen(options["lab"], options["cloud"], options["yes"]) as target,
    ):
        for warning in checked.warnings:
            screen.say(f"{warning.file}:{warning.line}: warning: {warning.words}")
        subject = performed.peopled(target, options["existing"])
        if options["resumed"] is not None:
            users_of = maker(store, options["resumed"], subject.access)
            order = replace(order, users_of=users_of)
        begun = begin(order, subject, store, command_line())
        try:
            perform(begun, order, subject, store, screen)
        finally:
            # Also what was measured until Ctrl-C or a failure.
            screen.close()
            result = store.get(begun.result.run_id)
            performed.show(store, result, options)
        return performed.exit_code(store, result)
