"""Own scenarios: the documented example, and what is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from fake_cloud import PASSWORD, fake_cloud

from loadstone.engine.callables.context import Context, whole
from loadstone.engine.callables.model import CallPlan
from loadstone.engine.callables.run import run
from loadstone.engine.callables.worker import load
from loadstone.engine.outcome import Outcome
from loadstone.errors import InvalidInput
from loadstone.keystone.resources import User
from loadstone.plan.load import ClosedLoad
from loadstone.rally import scenarios
from loadstone.rally.functions import plugin
from loadstone.rally.functions.actor import rows
from loadstone.rally.functions.catalogue import FUNCTIONS
from loadstone.rally.functions.plugin import load_plugins
from loadstone.rally.task.catalogue.scenario import ArgType
from loadstone.rally.task.catalogue.scenarios import SCENARIOS
from loadstone.rally.task.read import read
from loadstone.workload.task import TaskTerms, task_groups

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "team_scenarios.py"
(USER,) = rows([User("u", "ann", PASSWORD, "p", "P", "d", "D")])


@pytest.fixture(autouse=True)
def forgotten():
    """Leave what is known as it was."""
    known = (SCENARIOS, FUNCTIONS, scenarios.FIXED, plugin._places)
    before = [dict(one) for one in known]
    yield
    for one, was in zip(known, before, strict=True):
        one.clear()
        one.update(was)


def written(tmp_path, text):
    path = tmp_path / "own.py"
    path.write_text(text)
    return str(path)


def test_the_example_makes_a_function_and_a_data_scenario_known():
    assert load_plugins([str(EXAMPLE)]) == ("Team.list_servers", "Team.list_own_domains")
    assert scenarios.is_data("Team.list_own_domains")
    arguments = {one.name: one.default for one in SCENARIOS["Team.list_servers"].arguments}
    assert arguments == {"times": 1, "detailed": True}
    assert SCENARIOS["Team.list_servers"].about == "List the user's servers several times."


def test_a_data_scenario_of_a_plugin_is_the_same_with_the_requests_of_rally(tmp_path):
    load_plugins([str(EXAMPLE)])
    name = "Team.list_own_domains"
    (tmp_path / "task.yaml").write_text(f"{name}: [{{}}]")
    task = read(str(tmp_path / "task.yaml")).task
    for as_rally in (True, False):
        (group,) = task_groups(task, TaskTerms(requests_as_rally=as_rally))
        generator = group.measurements[0].generator
        assert generator.scenario == scenarios.FIXED[name]
        assert not generator.requests_as_rally


def test_a_scenario_of_a_plugin_that_leaves_things_gets_users_of_the_run(tmp_path):
    text = (
        "from loadstone.keystone.scenarios.model import Scenario\n"
        "from loadstone.plan.script import Step, text\n"
        "STEPS = (Step('a', 'POST', text('/a')),)\n"
        "S = T = Scenario('Team.a', 'a', 'POST /v3/a', STEPS, leaves_with_users=('things',))"
    )
    assert load_plugins([written(tmp_path, text)]) == ("Team.a",)
    (tmp_path / "task.yaml").write_text("Team.a: [{context: {users: {}}}]")
    [workload] = read(str(tmp_path / "task.yaml")).task.workloads
    assert [context.may_be_existing for context in workload.contexts] == [False]


def test_the_example_runs():
    load_plugins([str(EXAMPLE)])
    with fake_cloud() as (fake, settings):
        called = run(
            CallPlan(
                FUNCTIONS["Team.list_servers"],
                ClosedLoad(1, iterations=2),
                {"times": 3, "detailed": False},
                rows=(USER,),
                settings=settings,
            )
        )
        assert called.failures == ()
        assert fake.calls["GET", "compute/v2.1/servers"] == 6
    samples = called.measured.samples
    assert (samples.action == called.actions.index("team.list_servers")).sum() == 6


def test_the_page_shows_the_example_as_it_is():
    example, page = EXAMPLE.read_text(), (DOCS / "plugins.md").read_text()
    function = example[example.index("@scenario") : example.index("\n\n\nDOMAINS")]
    assert function in page


def test_task_check_knows_the_arguments_of_an_own_scenario(tmp_path):
    loadstone = CommandLine(tmp_path)
    task = tmp_path / "task.yaml"
    task.write_text("Team.list_servers: [{args: {times: two}}]")
    unknown = loadstone("task", "check", str(task))
    assert unknown.returncode == 2
    assert 'no scenario "Team.list_servers"' in unknown.stdout
    wrong = loadstone("task", "check", str(task), "--plugin", str(EXAMPLE))
    assert wrong.returncode == 2
    assert '"times" must be a whole number' in wrong.stdout
    task.write_text("Team.list_servers: [{args: {times: 2}}]\nTeam.list_own_domains: [{}]")
    assert loadstone("task", "check", str(task), "--plugin", str(EXAMPLE)).returncode == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "defines no scenario"),
        ("def f(:", "cannot be loaded: SyntaxError"),
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError"),
        (
            "from loadstone.rally.functions.plugin import scenario\n"
            "@scenario('Dummy.dummy')\ndef f(context): pass",
            "there is a scenario Dummy.dummy already",
        ),
        *(
            (
                "from loadstone.rally.functions.plugin import scenario\n"
                f"@scenario('{name}')\ndef f(context): pass",
                f"there is a scenario {name} already",
            )
            for name in ("issue", "oidc-login", "mix:mine=1")
        ),
        (
            "from loadstone.rally.functions.plugin import scenario\n"
            "@scenario('A.b')\ndef f(): pass",
            "must take the iteration's context",
        ),
        (
            "from loadstone.rally.functions.plugin import scenario\n"
            "@scenario('A.b')\ndef f(context): pass\n"
            "@scenario('A.b')\ndef g(context): pass",
            "has 2 scenarios A.b; give each its own name",
        ),
        *(
            (
                "from loadstone.rally.functions.plugin import scenario\n"
                f"@scenario('A.b')\n{function}",
                words,
            )
            for function, words in (
                ("async def f(context): pass", "must be a plain function"),
                ("def f(context): yield 1", "must be a plain function"),
                ("async def f(context): yield 1", "must be a plain function"),
                (
                    "class F:\n    def __init__(self, context): pass\n    def run(self): pass",
                    "must be a plain function: a call of a class",
                ),
                ("def f(context, _word=1): pass", "parameter _word needs another name"),
                ("def f(context, model_config): pass", "model_config needs another name"),
                ("def f(context, *words): pass", "words cannot be given by name"),
                ("def f(context, word, /): pass", "word cannot be given by name"),
            )
        ),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_in_one_line(tmp_path, text, words):
    before = dict(FUNCTIONS)
    with pytest.raises(InvalidInput, match=words) as refused:
        load_plugins([written(tmp_path, text)])
    assert len(str(refused.value).splitlines()) == 1
    assert before == FUNCTIONS


def test_scenarios_whose_functions_have_the_same_name_each_run_their_own(tmp_path):
    text = (
        "from loadstone.rally.functions.plugin import scenario\n"
        "def made(answer):\n"
        "    @scenario(f'Team.answer_{answer}')\n"
        "    def run(context):\n"
        "        return answer\n"
        "    return run\n"
        "one, two = made(1), made(2)\n"
        "run = three = made(3)\n"
    )
    names = load_plugins([written(tmp_path, text)])
    assert names == ("Team.answer_1", "Team.answer_2", "Team.answer_3")
    assert [load(FUNCTIONS[name])(None) for name in names] == [1, 2, 3]


def test_a_default_that_is_no_text_or_number_stays_in_the_function(tmp_path):
    text = (
        "from loadstone.rally.functions.plugin import scenario\n"
        "@scenario('Team.a')\ndef f(context, times, pick=lambda a: a): pass"
    )
    load_plugins([written(tmp_path, text)])
    (tmp_path / "task.yaml").write_text("Team.a: [{args: {times: 2}}]")
    [workload] = read(str(tmp_path / "task.yaml")).task.workloads
    assert workload.scenario.arguments == {"times": 2}


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("async def f(context): pass", "coroutine"),
        ("def f(context): yield 1", "generator"),
        ("async def f(context): yield 1", "async_generator"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_an_iteration_fails_whose_function_a_decorator_kept_from_running(tmp_path, function, kind):
    text = (
        "import functools\n"
        "from loadstone.rally.functions.plugin import scenario\n"
        "def retried(function):\n"
        "    @functools.wraps(function)\n"
        "    def call(*given, **named):\n"
        "        return function(*given, **named)\n"
        "    return call\n"
        f"@scenario('Team.a')\n@retried\n{function}\n"
    )
    load_plugins([written(tmp_path, text)])
    end = whole(Context(0, {}, {}, [].append), load(FUNCTIONS["Team.a"]), {})
    assert end.outcome == Outcome.RAISED
    assert end.cause == f"TypeError: the function has not run: it returned a {kind}"


# The second stands for a folder that may not be entered: nobody knows whether the file is there.
@pytest.mark.parametrize("file", ["/nowhere/own.py", f"/{300 * 'x'}.py"])
def test_a_plugin_that_is_not_there_is_refused(file):
    with pytest.raises(InvalidInput, match="is not a Python file"):
        load_plugins([file])


def test_annotations_that_only_type_checkers_see_are_no_hindrance(tmp_path):
    text = """from __future__ import annotations
from typing import TYPE_CHECKING
from loadstone.rally.functions.plugin import scenario
if TYPE_CHECKING:
    from loadstone.engine.callables.context import Context

@scenario("Own.one")
def one(context: Context, times: int = 1): "Do it."
"""
    assert load_plugins([written(tmp_path, text)]) == ("Own.one",)
    (times,) = SCENARIOS["Own.one"].arguments
    assert (times.name, times.default, times.is_required) == ("times", 1, False)


@pytest.mark.parametrize(
    ("annotation", "good", "wrong"),
    [
        ("int", "3", "three"),
        ("int | None", "null", "three"),
        ("dict[str, str]", "{a: b}", "three"),
        ("list[str]", "[a, b]", None),
        ("int | list[int]", "[1]", None),
        ("tuple[int, ...]", "[1, 2]", None),
        ("Literal['a', 'b']", "a", None),
        ("[str]", "[a]", None),
        ("'the words'", "[a]", None),
    ],
)
def test_values_are_checked_where_an_annotation_is_one_of_the_documented_types(
    tmp_path, annotation, good, wrong
):
    text = (
        "from typing import Literal\n"
        "from loadstone.rally.functions.plugin import scenario\n"
        f"@scenario('Own.one')\ndef one(context, word: {annotation}): 'Do it.'\n"
    )
    load_plugins([written(tmp_path, text)])
    task = tmp_path / "task.yaml"
    task.write_text(f"Own.one: [{{args: {{word: {good}}}}}]")
    read(str(task))
    if wrong is not None:
        task.write_text(f"Own.one: [{{args: {{word: {wrong}}}}}]")
        with pytest.raises(InvalidInput, match='"word" must be'):
            read(str(task))


@pytest.mark.parametrize("annotation", ["int | 'x'", "dict.nothing", "list[int"])
def test_an_annotation_that_cannot_be_evaluated_takes_any_value(tmp_path, annotation):
    text = f"""from loadstone.rally.functions.plugin import scenario
@scenario("Own.two")
def two(context, times: {annotation!r} = 1): "Do it."
"""
    assert load_plugins([written(tmp_path, text)]) == ("Own.two",)
    (times,) = SCENARIOS["Own.two"].arguments
    assert times.kind is ArgType.ANY


def test_a_file_that_ends_the_program_is_named(tmp_path):
    path = written(tmp_path, "raise SystemExit('not here')")
    with pytest.raises(InvalidInput, match=r"own\.py: cannot be loaded: SystemExit: not here"):
        load_plugins([path])


def test_what_a_plugin_prints_while_it_is_imported_is_kept_off_stdout(tmp_path, capsys):
    text = EXAMPLE.read_text() + 'print("a plugin that prints")\n'
    load_plugins([written(tmp_path, text)])
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "a plugin that prints\n"


def test_what_a_function_prints_is_kept_off_stdout(tmp_path):
    path = written(tmp_path, 'def printing(context): print("a function that prints")')
    calls = f"""
from loadstone.engine.callables.model import CallPlan, Function
from loadstone.engine.callables.run import run
from loadstone.engine.callables.worker import load
from loadstone.engine.outcome import Outcome
from loadstone.plan.load import ClosedLoad
if __name__ == "__main__":
    run(CallPlan(Function({path!r}, "printing"), ClosedLoad(1, iterations=2), {{}}, ({{}},)))
    print("the result")
"""
    (tmp_path / "calls.py").write_text(calls)
    command = [sys.executable, str(tmp_path / "calls.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "the result\n"
    assert ran.stderr == 2 * "a function that prints\n"
