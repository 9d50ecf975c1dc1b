"""`loadstone tune --apply --revert`: a cloud that commands change, and that is put back."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

import pytest
from fake_keystone import keeping_the_first_domain
from simulator.service import Service
from virtual import Ended, VirtualCommandLine

from loadstone.errors import EnvironmentUnusable, InvalidInput

SPACE = """\
settings:
  - {name: WORKERS, levels: [1, 2, 4], price: memory}
  - {name: CACHE, levels: [none, memcached]}
  - {name: ROUNDS, levels: [4, 12], kind: trade, price: weaker hashes}
"""
SHORT = ("--users=0", "--concurrency=4", "--seconds=3", "--json=-", "--budget=12m")
NOW = ("--with=WORKERS=1", "--with=CACHE=none", "--with=ROUNDS=12")


@dataclass
class Applied:
    """A pace that follows the settings in a file, as a service that its commands restart."""

    file: Path
    faster: dict[str, float]
    read: tuple[int, int, int] | None = None  # the version of the file that `factor` is of
    factor: float = 1.0

    def slower(self, at_s: float, inside: int, served: int) -> float:  # noqa: ARG002
        """Return the factor of what is applied now; reading the file for each request is slow."""
        try:
            found = self.file.stat()
        except FileNotFoundError:
            return 1.0
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if version != self.read:
            speeds = [self.faster.get(word, 1.0) for word in self.file.read_text().split()]
            self.read, self.factor = version, 1 / prod(speeds)
        return self.factor


class Commanded:
    """A cloud with a script for each command; what they did is in `log`."""

    def __init__(self, loadstone: VirtualCommandLine) -> None:
        self.loadstone, home = loadstone, loadstone.home
        self.applied, self.log = home / "applied", home / "log"
        self.space = home / "space.yaml"
        self.space.write_text(SPACE)
        self.apply = self._script(
            "apply",
            'echo "apply $WORKERS $CACHE $ROUNDS" >> log\n'
            "for name in WORKERS CACHE ROUNDS; do\n"
            '  eval value=\\$$name; [ -z "$value" ] || echo "$name=$value"\n'
            "done > applied\n",
        )
        self.revert = self._script("revert", "echo revert >> log\nrm -f applied\n")

    def _script(self, name: str, text: str) -> str:
        path = self.loadstone.home / name
        path.write_text(f"#!/bin/sh\nset -e\n{text}")
        path.chmod(0o755)
        return f"./{name}"

    def tuned(self, *words: str, **faster: float) -> Ended:
        speeds = {name.replace("_", "=", 1): times for name, times in faster.items()}
        pace = Applied(self.applied, speeds)
        return self.loadstone(
            *("tune", "--cloud=mine", f"--space={self.space}", *NOW, *SHORT),
            *(f"--apply={self.apply}", f"--revert={self.revert}"),
            *(words or ("--yes-change-this-target",)),
            clouds={"mine": Service(workers=2, capacity_rps=100.0, pace=pace)},
        )


@pytest.fixture
def cloud(loadstone: VirtualCommandLine) -> Commanded:
    return Commanded(loadstone)


def only(ended: Ended) -> dict:
    [found] = ended.data["measurements"]
    return found


@pytest.mark.processes
def test_the_gain_of_a_setting_is_proven_and_the_settings_are_put_back(cloud: Commanded) -> None:
    ended = cloud.tuned(WORKERS_4=1.3)
    found = only(ended)
    assert (ended.code, found["has_gain"]) == (0, True), ended.stderr
    assert found["changes"] == {"WORKERS": "4"}
    assert found["answer"]["low"] <= 1.3 <= found["answer"]["high"]
    assert found["lines"] == [
        {"file": "environment of --apply", "section": None, "line": "WORKERS=4"}
    ]
    log = cloud.log.read_text().split("\n")[:-1]
    assert log[-1] == "revert"
    assert not cloud.applied.exists()
    # Every combination is applied to the settings that were put back, never to another one.
    assert all(log[at - 1] == "revert" for at, one in enumerate(log) if one.startswith("apply"))
    assert not list(cloud.loadstone.home.glob("home/faults/*.json"))
    # With the same outcomes, nothing is measured again.
    [path] = cloud.loadstone.home.glob("home/results/tunings/*/comparisons.jsonl")
    path.with_name("result.json").unlink()
    words = ("tune", f"--resume={path.parent.name}", "--json=-")
    resumed = cloud.loadstone(*words, clouds={"mine": Service()})
    assert (resumed.code, resumed.data) == (0, ended.data)
    assert not resumed.engine.plans


@pytest.mark.processes
def test_what_a_tuning_leaves_in_its_cloud_is_no_success(cloud: Commanded) -> None:
    cloud.loadstone.fake.disturb = keeping_the_first_domain()
    ended = cloud.tuned("--yes-change-this-target", "--users=2", "--seconds=2", "--budget=10m")
    assert (ended.code, ended.data["exit_code"]) == (1, 1), ended.stderr
    shown = cloud.loadstone("tune", f"--resume={ended.data['tuning_id']}")
    assert shown.code == 1
    assert "is left; remove it: loadstone results clean" in " ".join(shown.stdout.split())


@pytest.mark.processes
def test_a_trade_is_measured_apart_and_is_not_a_gain(cloud: Commanded) -> None:
    ended = cloud.tuned("--yes-change-this-target", "--with-trades", ROUNDS_4=2.0)
    found = only(ended)
    assert (ended.code, found["has_gain"]) == (0, False), ended.stderr
    assert [one["setting"] for one in found["trades"]] == ["ROUNDS"]


@pytest.mark.processes
def test_a_combination_that_cannot_be_applied_is_a_finding(cloud: Commanded) -> None:
    script = cloud.loadstone.home / "apply"
    text = 'if [ "$WORKERS" = 4 ]; then echo "no memory for 4" >&2; exit 1; fi\n'
    script.write_text(script.read_text().replace("set -e\n", f"set -e\n{text}"))
    ended = cloud.tuned(CACHE_memcached=1.3)
    found = only(ended)
    assert (ended.code, found["changes"]) == (0, {"CACHE": "memcached"}), ended.stderr
    failed = [one for one in found["trials"] if one["failure"]]
    assert failed
    assert all("no memory for 4" in one["failure"] for one in failed)
    assert not cloud.applied.exists()


@pytest.mark.processes
def test_settings_that_cannot_be_put_back_end_it_with_the_command(cloud: Commanded) -> None:
    script = cloud.loadstone.home / "revert"
    script.write_text("#!/bin/sh\n[ ! -e applied ] || { echo 'disk is full' >&2; exit 1; }\n")
    ended = cloud.tuned(WORKERS_4=1.3)
    assert ended.code == 3
    assert "disk is full" in ended.stderr
    assert "by hand: cd" in ended.stderr
    assert "./revert" in ended.stderr
    assert cloud.applied.exists()
    again = cloud.tuned(WORKERS_4=1.3)
    assert again.code == 3
    assert "loadstone fault --undo" in again.stderr
    assert not again.engine.plans
    script.write_text("#!/bin/sh\nrm -f applied\n")
    undone = cloud.loadstone("fault", "--undo")
    assert undone.code == 0, undone.stderr
    assert not cloud.applied.exists()


def test_a_resumed_tuning_may_be_permitted_more_than_when_it_began(
    cloud: Commanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise EnvironmentUnusable("stopped")

    def is_far(*_: object) -> None:
        raise InvalidInput("far is not this machine; add --yes-load-this-target")

    def resumed(*words: str) -> Ended:
        clouds = {"mine": Service(workers=2, capacity_rps=100.0)}
        return cloud.loadstone("tune", f"--resume={folder.name}", *words, clouds=clouds)

    monkeypatch.setattr("loadstone.tune.tuning.tune", stopped)
    assert cloud.tuned().code == 3
    [folder] = cloud.loadstone.home.glob("home/results/tunings/*")
    monkeypatch.setattr("loadstone.cloud.permission.require_loopback", is_far)
    refused = resumed()
    assert (refused.code, "add --yes-load-this-target" in refused.stderr) == (2, True)
    assert resumed("--yes-load-this-target").code == 3
    assert cloud.tuned().code == 2  # before it begins
    assert len(list(cloud.loadstone.home.glob("home/results/tunings/*"))) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--with-trades",), "add --yes-change-this-target"),
        (("--yes-change-this-target", "--revert="), "--revert: the command is empty"),
        (("--yes-change-this-target", "--with=PATH=/bin"), "PATH: other programs read this"),
        (("--yes-change-this-target", "--with=DB_PASSWORD=x"), "DB_PASSWORD is a secret"),
        (("--yes-change-this-target", "--with=no-name=x"), "'no-name' is not the name of a"),
        (("--yes-change-this-target", "--space=lab"), "add --space FILE"),
        (
            ("--yes-change-this-target", "--apply=curl -H 'X-Auth-Token: gAAAAABk' x"),
            "--apply: a secret would be kept",
        ),
        (("--yes-change-this-target", "--budget=2m"), "is too short to prove a gain"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_changed(
    cloud: Commanded, words: tuple[str, ...], message: str
) -> None:
    ended = cloud.tuned(*words)
    assert (ended.code, message in ended.stderr) == (2, True), ended.stderr
    assert not cloud.log.exists()


def test_a_condition_on_an_unknown_variable_is_refused(cloud: Commanded) -> None:
    """It would never hold, and the setting would never be tried."""
    cloud.space.write_text("settings: [{name: WORKERS, levels: [1, 2], when: {CAHCE: [none]}}]")
    ended = cloud.tuned()
    assert ended.code == 2
    assert "the condition of WORKERS needs CAHCE, which is no setting of the space" in ended.stderr
    assert not cloud.log.exists()
    assert cloud.tuned("--yes-change-this-target", "--dry-run", "--with=CAHCE=none").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--apply=true", "--revert=true"), "add --cloud NAME"),
        (("--cloud=mine", "--apply=true"), "add --apply COMMAND and --revert COMMAND"),
        (("--cloud=mine", "--lab=x"), "not both"),
    ],
)
def test_a_cloud_and_its_commands_go_together(
    loadstone: VirtualCommandLine, words: tuple[str, ...], message: str
) -> None:
    ended = loadstone("tune", *words, clouds={"mine": Service()})
    assert (ended.code, message in ended.stderr) == (2, True), ended.stderr


def test_a_setting_that_the_environment_has_is_refused(
    cloud: Commanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHE", "memcached")
    ended = cloud.tuned()
    assert ended.code == 2
    assert "unset CACHE" in ended.stderr
    assert not cloud.log.exists()
