"""What the command line prints about itself and about bad input, word for word.

`make golden` rewrites tests/golden/help.txt and tests/golden/messages.txt.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from click.testing import CliRunner
from golden import Golden

from loadstone.cli import loadstone

HEAD = "version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario: {Authenticate.keystone: {}}\n"
FILES = {
    "empty.yaml": "",
    "no-yaml.yaml": "a: [",
    "twice.yaml": "a: 1\na: 2\n",
    "no-version.yaml": "version: 3\n",
    "no-scenario.yaml": HEAD.replace("Authenticate.keystone", "Authenticate.keystonee"),
    "foreign.yaml": HEAD.replace("Authenticate.keystone", "CinderVolumes.create_volume"),
    "runner.yaml": HEAD + "  runner: {constant: {times: ten}}\n",
    "concurrency.yaml": HEAD + "  runner: {constant: {times: 2, concurrency: 3}}\n",
    "context.yaml": HEAD + "  contexts: {userss: {}}\n",
    "sla.yaml": HEAD + "  sla: {failure_rate: {max: 101}}\n",
    "hook.yaml": HEAD + "  hooks: [{action: {sys_call: ls}, trigger: {event: {unit: year}}}]\n",
    "key.yaml": HEAD + "  runnr: {}\n",
    "study.yaml": "title: S\nfactors: {workers: [1, 2]}\nmeasurement: {budget_s: 60}\nrepeats: 0\n",
    "factor.yaml": "title: S\nfactors: {workerss: [1, 2]}\nmeasurement: {budget_s: 60}\n",
    "facts.json": "{}",
}
BAD_INPUT = (
    "none-such",
    "capcity",
    "capacity --lab none-such",
    "capacity --lab a --cloud b",
    "capacity --budget soon",
    "capacity --budget 9h",
    "capacity --max-rate 1e9",
    "capacity --generator-cores all",
    "capacity --generator-cores 1-0",
    "capacity --tls-resumption maybe",
    "capacity --objective p98<1s",
    "capacity --objective errors<200%",
    "capacity --users 0 --scenario user-life",
    "capacity --scenario none-such",
    "capacity --method none-such",
    "capacity --method closed-loop-peak --objective p99<500ms",
    "capacity --json .",
    "capacity --fleet local:0",
    "capacity --fleet http://127.0.0.1:1",
    "run none-such.yaml",
    "run key.yaml --max-rate nan",
    "run key.yaml --json - --junit -",
    "run key.yaml --junit no/such/folder.xml",
    "run key.yaml --at-most times=0",
    "task check empty.yaml",
    "task check no-yaml.yaml",
    "task check twice.yaml",
    "task check no-version.yaml",
    "task check no-scenario.yaml",
    "task check foreign.yaml",
    "task check runner.yaml",
    "task check concurrency.yaml",
    "task check context.yaml",
    "task check sla.yaml",
    "task check hook.yaml",
    "task check key.yaml",
    "study show none-such",
    "study show study.yaml",
    "study show factor.yaml",
    "study run",
    "compare",
    "compare --cloud a",
    "compare --cloud a --cloud b --same-within x",
    "compare --cloud a --cloud b --base workers=1",
    "audit check facts.json",
    "audit rules NONE-01",
    "audit --lab none-such",
    "lab up it --with none=1",
    "lab down none-such",
    "lab logs none-such",
    "results list --store mistyped",
    "results show none-such",
    "results delete ",
    "results clean none-such",
    "report none-such",
    "report --as none-such",
    "fault --do none-such",
    "fault --do",
    "size",
    "serve --law bursty",
    "serve --max-queue 5",
)


def help_texts(
    command: click.Command, context: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Yield the --help of a command and of the commands below it."""
    command._help_option = None  # without -h, if a test has called the command by itself
    shown = CliRunner().invoke(
        loadstone, [*path, "--help"], prog_name="loadstone", terminal_width=100
    )
    assert shown.exit_code == 0, shown.output
    yield " ".join(("loadstone", *path)), shown.stdout
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from help_texts(below, context, (*path, name))


def test_help(golden: Golden) -> None:
    golden("help.txt", dict(help_texts(loadstone, click.Context(loadstone))))


def test_bad_input_has_a_clear_message(
    golden: Golden, at_once: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    printed = {}
    for line in BAD_INPUT:
        ended = at_once(*line.split(" "))
        assert ended.returncode in (2, 3), line
        assert "Traceback" not in ended.stderr, line
        stderr = re.sub(r"usable are [\d, -]+", "usable are CORES", ended.stderr)
        output = (ended.stdout + stderr).replace(str(tmp_path), "HOME")
        printed[line] = f"exit code {ended.returncode}\n{output}"
    golden("messages.txt", printed)
