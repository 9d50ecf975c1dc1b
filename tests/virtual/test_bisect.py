"""`loadstone bisect` of simulated labs: the first slow version is found, or none is blamed."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from fake_keystone import keeping_the_first_domain
from simulator.service import Service
from virtual import Ended, VirtualCommandLine

from loadstone.engine import parquet
from loadstone.engine.samples import Samples
from loadstone.errors import InvalidInput, StoreUnusable

VERSIONS = tuple(f"{major}.0.0" for major in range(20, 28))
SHORT = ("--seconds=4", "--concurrency=6", "--pairs=12", "--users=0", "--json=-")


def slow_since(first_bad: str, slower: float) -> Callable[[Mapping[str, str]], Service]:
    def lab(settings: Mapping[str, str]) -> Service:
        is_slow = VERSIONS.index(settings["release"]) >= VERSIONS.index(first_bad)
        return Service(workers=2, capacity_rps=100.0 / (slower if is_slow else 1.0))

    return lab


def bisected(
    loadstone: VirtualCommandLine, lab: Callable[[Mapping[str, str]], Service], *words: str
) -> Ended:
    releases = [f"--release={one}" for one in VERSIONS]
    return loadstone("bisect", *releases, *SHORT, *words, lab=lab)


@pytest.mark.parametrize("first_bad", [VERSIONS[1], VERSIONS[4], VERSIONS[7]])
def test_the_first_slow_version_is_found(loadstone: VirtualCommandLine, first_bad: str) -> None:
    ended = bisected(loadstone, slow_since(first_bad, 1.3))
    found = ended.data["bisection"]
    assert (ended.code, found["first_bad"]) == (0, first_bad), ended.stderr
    assert found["last_good"] == VERSIONS[VERSIONS.index(first_bad) - 1]
    assert found["slowdown"] == pytest.approx(1.3, rel=0.1)
    assert 2 <= len(found["steps"]) <= 3
    assert f"{first_bad} is the first that is slower" in found["sentence"]


def test_a_version_that_lacks_a_setting_is_left_out(loadstone: VirtualCommandLine) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        if settings["release"] == VERSIONS[3]:
            raise InvalidInput("conf.cache.x=1: Keystone 23.0.0 has no option x in [cache]")
        return slow_since(VERSIONS[6], 1.3)(settings)

    ended = bisected(loadstone, lab)
    found = ended.data["bisection"]
    assert (ended.code, found["first_bad"]) == (0, VERSIONS[6]), ended.stderr
    assert f"{VERSIONS[3]} cannot be measured: conf.cache.x=1: Keystone" in ended.stderr


def test_without_a_slowdown_no_version_is_blamed(loadstone: VirtualCommandLine) -> None:
    ended = bisected(loadstone, slow_since(VERSIONS[3], 1.0), "--same-within=15%")
    assert ended.code == 4
    found = ended.data["bisection"]
    assert (found["first_bad"], found["last_good"], found["slowdown"]) == (None, None, None)
    assert "there is no slowdown to find" in found["sentence"]


def test_several_versions_that_share_a_slowdown_are_not_one(loadstone: VirtualCommandLine) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        slower = 1.03 ** VERSIONS.index(settings["release"])
        return Service(workers=2, capacity_rps=100.0 / slower)

    ended = bisected(loadstone, lab)
    assert ended.data["bisection"]["first_bad"] is None or ended.code == 0


def test_the_first_faster_version_is_found(loadstone: VirtualCommandLine) -> None:
    ended = bisected(loadstone, slow_since(VERSIONS[5], 1 / 1.3), "--faster")
    found = ended.data["bisection"]
    assert (ended.code, found["first_bad"], found["last_good"]) == (0, VERSIONS[5], VERSIONS[4])
    assert f"{VERSIONS[5]} is the first that is faster" in found["sentence"]


def test_settings_are_added_one_by_one(loadstone: VirtualCommandLine) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        slower = 1.4 if settings.get("token") == "jws" else 1.0
        return Service(workers=2, capacity_rps=100.0 / slower)

    changes = ("--with=cache=memcached", "--with=token=jws", "--with=hash-rounds=10")
    ended = loadstone("bisect", *changes, *SHORT, lab=lab)
    assert (ended.code, ended.data["bisection"]["first_bad"]) == (0, "token=jws"), ended.stderr


def test_a_dry_run_says_how_many_comparisons_it_takes(loadstone: VirtualCommandLine) -> None:
    ended = bisected(loadstone, slow_since(VERSIONS[4], 1.3), "--dry-run")
    assert ended.code == 0
    assert "about 5 such comparisons, of 8 versions" in ended.stderr
    assert not ended.engine.plans


def test_an_earlier_run_is_resumed(loadstone: VirtualCommandLine) -> None:
    lab = slow_since(VERSIONS[4], 1.3)
    first = bisected(loadstone, lab)
    again = bisected(loadstone, lab, "--resume")
    assert again.data["bisection"] == first.data["bisection"]
    assert again.code == first.code == 0
    assert not again.engine.plans


def test_a_comparison_whose_samples_are_gone_is_measured_anew(
    loadstone: VirtualCommandLine,
) -> None:
    lab = slow_since(VERSIONS[4], 1.3)
    first = bisected(loadstone, lab)
    for samples in [*loadstone.home.rglob("samples")]:
        shutil.rmtree(samples)
    again = bisected(loadstone, lab, "--resume")
    assert (again.code, again.data["bisection"]) == (0, first.data["bisection"]), again.stderr
    assert "measured before" not in again.stderr


def test_a_full_disk_ends_a_bisection_and_says_nothing_of_a_version(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = slow_since(VERSIONS[4], 1.3)
    written, write = list[Path](), parquet.write

    def until_full(path: Path, samples: Samples) -> None:
        written.append(path)
        if len(written) > 80:
            raise StoreUnusable("No space left on device")
        write(path, samples)

    with monkeypatch.context() as disk:
        disk.setattr(parquet, "write", until_full)
        ended = bisected(loadstone, lab)
    assert ended.code == 3
    assert "cannot be measured" not in ended.stderr
    assert "bisect: 23.0.0 compared with 20.0.0" in ended.stderr  # it was in the midst of it
    resumed = bisected(loadstone, lab, "--resume")
    assert (resumed.code, resumed.data["bisection"]["first_bad"]) == (0, VERSIONS[4])


def test_a_patch_with_other_content_is_measured_anew(loadstone: VirtualCommandLine) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        return Service(workers=2, capacity_rps=100.0 if settings["release"] == "29.0.0" else 77.0)

    patch = loadstone.home / "fix.patch"
    releases = ("--release=29.0.0", "--release=29.0.1", f"--release=30.0.0+{patch}")
    for text, is_known in (("one", False), ("one", True), ("another", False)):
        patch.write_text(text)
        ended = loadstone("bisect", *releases, *SHORT, "--resume", lab=lab)
        assert (ended.code, not ended.engine.plans) == (0, is_known)


def test_the_steps_are_shown_if_the_last_comparison_fails(loadstone: VirtualCommandLine) -> None:
    """The slow version breaks when it is started for the second time, beside the one before."""
    begun = list[str]()

    def lab(settings: Mapping[str, str]) -> Service:
        begun.append(settings["release"])
        if begun.count(VERSIONS[2]) > 1 and begun[-1] == VERSIONS[2]:
            return Service(error_share=0.5)
        return slow_since(VERSIONS[2], 1.3)(settings)

    releases = [f"--release={one}" for one in VERSIONS[:3]]
    ended = loadstone("bisect", *releases, *SHORT, lab=lab)
    assert (ended.code, ended.data["exit_code"]) == (4, 4), ended.stderr
    found = ended.data["bisection"]
    assert [one["version"] for one in found["steps"]] == [VERSIONS[1]]
    assert found["first_bad"] is None
    assert f"{VERSIONS[2]} is the first on the slower side" in found["sentence"]
    assert f"its comparison with {VERSIONS[1]} failed" in found["sentence"]


@pytest.mark.parametrize("is_removed", [True, False], ids=["removed", "lab stays"])
def test_what_a_step_leaves_is_said_at_the_end_unless_its_lab_was_removed(
    loadstone: VirtualCommandLine, monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
) -> None:
    """One domain of the first comparison stays, and so the answer does not end with 0."""
    monkeypatch.setattr("loadstone.lab.deployment.is_here", lambda _: not is_removed)
    loadstone.fake.disturb = keeping_the_first_domain()
    releases = [f"--release={one}" for one in VERSIONS[2:5]]
    words = ("bisect", *releases, *SHORT[:-1], "--users=2", "--json=out.json")
    lab, code = slow_since(VERSIONS[4], 1.3), 0 if is_removed else 1
    for more in ((), ("--resume",)):  # which measures nothing: what was left is still there
        ended = loadstone(*words, *more, lab=lab)
        data = json.loads((loadstone.home / "out.json").read_text())
        assert (ended.code, data["exit_code"]) == (code, code), ended.stderr
        assert data["bisection"]["first_bad"] == VERSIONS[4]
        printed = " ".join(ended.stdout.split())
        assert printed.count("is left; remove it: loadstone results clean 20") == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give --good and --bad"),
        (("--good=24.0.0",), "give --good and --bad"),
        (("--release=24.0.0", "--release=25.0.0"), "there is nothing between"),
        (("--good=24.0.0", "--bad=git+file:///nowhere@main"), "are not known"),
        (("--good=/tmp/a-1.whl", "--bad=/tmp/a-2.whl"), "is not a wheel of Keystone"),
    ],
)
def test_what_cannot_be_bisected_is_refused(
    loadstone: VirtualCommandLine, words: tuple[str, ...], message: str
) -> None:
    ended = loadstone("bisect", *words)
    assert ended.code == 2
    assert message in ended.stderr
