"""The guard of a merge request: what it says, when it speaks, and what if it did not run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FAKE = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        --markdown) echo "the table" > "$2" ;;
        --json) [ -z "$ANSWER" ] || echo "$ANSWER" > "$2" ;;
    esac
    shift
done
echo "a message" >&2
exit $CODE
"""


def guarded(
    folder: Path, code: int, answer: str | None = None, outcome: str = "not slower", **metrics: str
) -> tuple[int, str, str]:
    """Run the guard with a Loadstone that ends so; return exit code, state and text."""
    command = folder / "loadstone"
    command.write_text(FAKE)
    command.chmod(0o755)
    answers = {"throughput": answer} | {n.replace("_", " "): one for n, one in metrics.items()}
    measurement = {"metrics": {name: {"answer": one} for name, one in answers.items()}}
    guard = {"guard": {"outcome": outcome}} if outcome else {}
    data = {"measurements": [measurement]} | guard if answer else None
    variables = os.environ | {"CODE": str(code), "ANSWER": json.dumps(data) if data else ""}
    return run_guard(folder, str(command), variables)


def run_guard(folder: Path, command: str, variables: dict[str, str]) -> tuple[int, str, str]:
    words = ["--loadstone", command, "--out", folder / "out", "--", "--fail-if-slower", "5%"]
    output = folder / "github"
    ended = subprocess.run(
        [sys.executable, ROOT / "ci/guard.py", *words],
        check=False,
        capture_output=True,
        env=variables | {"GITHUB_OUTPUT": str(output)},
    )
    state = (folder / "out/state").read_text().strip()
    assert output.read_text().endswith(f"state={state}\n")
    return ended.returncode, state, (folder / "out/guard.md").read_text()


@pytest.mark.parametrize(
    ("code", "answer", "state", "head"),
    [
        (0, "same", "same", "Not slower."),
        (0, "unknown", "same", "Not slower."),
        (0, "faster", "changed", "makes it faster."),
        (0, "slower", "changed", "by less than the guard allows."),
        (4, "unknown", "undecided", "**Undecided**"),
        (3, None, "failed", "**The guard did not run**"),
        (70, None, "failed", "**The guard did not run**"),
        (1, None, "failed", "**The guard did not run**"),  # of Python itself
    ],
)
def test_the_first_line_says_what_came_out(tmp_path, code, answer, state, head):
    ended, found, text = guarded(tmp_path, code, answer)
    assert (ended, found) == (code, state)
    mark, first = text.splitlines()[0], text.splitlines()[2]
    assert mark == "<!-- loadstone guard -->"
    assert head in first
    assert f"ended with {code}" in first
    assert "the table" in text


@pytest.mark.parametrize(
    ("throughput", "request_time", "head"),
    [
        ("faster", "slower", "by less than the guard allows."),
        ("same", "slower", "by less than the guard allows."),
        ("same", "faster", "makes it faster."),
        ("unknown", "faster", "makes it faster."),
    ],
)
def test_the_request_time_counts_as_throughput_does(tmp_path, throughput, request_time, head):
    more = {"request_time": request_time, "latency_p50": "slower"}
    _, state, text = guarded(tmp_path, 0, throughput, **more)
    assert state == "changed"
    assert head in text.splitlines()[2]


@pytest.mark.parametrize(
    ("outcome", "head"),
    [("slower", "**This change makes it slower**"), ("not slower", "Not slower, but **something")],
)
def test_exit_code_1_is_slower_only_if_the_guard_says_so(tmp_path, outcome, head):
    _, state, text = guarded(tmp_path, 1, "same", outcome)
    assert state == "changed"
    assert head in text.splitlines()[2]


def test_a_loadstone_that_was_not_installed_is_a_guard_that_did_not_run(tmp_path):
    code, state, text = run_guard(tmp_path, str(tmp_path / "absent"), dict(os.environ))
    assert (code, state) == (3, "failed")
    assert "**The guard did not run**" in text
    assert "No such file" in text


def test_an_answer_of_an_earlier_run_is_not_taken_for_this_one(tmp_path):
    guarded(tmp_path, 0, "same")
    of_earlier = tmp_path / "out/compare.xml"
    of_earlier.write_text('<testsuites failures="0"/>')
    assert guarded(tmp_path, 1, None)[1] == "failed"
    assert not of_earlier.exists()


def scripts(path: Path) -> list[str]:
    steps = yaml.safe_load(path.read_text())["runs"]["steps"]
    return [step["run"] for step in steps if "run" in step]


def test_a_slower_change_without_a_limit_is_not_called_allowed(tmp_path):
    _, state, text = guarded(tmp_path, 0, "slower", outcome="")
    assert state == "changed"
    assert "slower; no limit was set" in text.splitlines()[2]


@pytest.mark.parametrize("script", scripts(ROOT / "action.yml"))
def test_the_scripts_of_the_action_are_bash(script):
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_example_gives_the_action_inputs_that_it_has():
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    job = yaml.safe_load((ROOT / "docs/examples/github-guard.yml").read_text())["jobs"]["guard"]
    given = job["steps"][-1]["with"]
    needed = {name for name, one in action["inputs"].items() if one.get("required")}
    assert needed <= set(given) <= set(action["inputs"])


def test_the_action_calls_the_guard_without_a_shell_for_its_options(tmp_path):
    """Run the action's own step with a Python whose pip installs the fake."""
    script = scripts(ROOT / "action.yml")[0]
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'[ "$2" = venv ] || exec {sys.executable} "$@"\n'
        f"mkdir -p $3/bin && cp {tmp_path}/fake $3/bin/loadstone && cp /bin/true $3/bin/pip\n"
    )
    (tmp_path / "fake").write_text(
        FAKE.replace("exit $CODE", "exit 0").replace("\n", '\necho "$@" >words\n', 1)
    )
    for name in ("python", "fake"):
        (tmp_path / name).chmod(0o755)
    variables = {
        "ACTION": str(ROOT),
        "ANSWER": json.dumps({"measurements": [{"metrics": {"throughput": {"answer": "same"}}}]}),
        "COMPARE": "--release a --release b;touch${IFS}x\n--fail-if-slower 5%\n",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "PYTHON": str(python),
        "RUNNER_TEMP": str(tmp_path),
        "WHEEL": "loadstone.whl",
    }
    subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        check=True,
        cwd=tmp_path,
        env=os.environ | variables,
        capture_output=True,
    )
    assert not (tmp_path / "x").exists()
    assert (
        "--release a --release b;touch${IFS}x --fail-if-slower 5%"
        in (tmp_path / "words").read_text()
    )
    assert "Not slower." in (tmp_path / "summary").read_text()
    assert (tmp_path / "output").read_text() == "state=same\n"
