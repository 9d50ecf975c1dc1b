"""`loadstone tune` of simulated labs: the gain that is stated is true, or none is stated."""

import json
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from simulator.service import Service
from virtual import Ended, VirtualCommandLine

from loadstone.engine import parquet
from loadstone.errors import EnvironmentUnusable, InvalidInput, LoadstoneError

SHORT = ("--budget=10m", "--users=0", "--concurrency=4", "--seconds=4", "--json=-")
SPACE = """\
settings:
  - {name: threads, levels: [1, 2, 4]}
  - {name: cache, levels: [local, memcached], price: memcached}
  - {name: conf.token.cache_on_issue, levels: [true, false], when: {cache: [memcached]}}
  - {name: hash-rounds, levels: [4, 12], kind: trade, price: weaker hashes}
"""
DEFAULT = ("--with=hash-rounds=12", "--with=conf.token.cache_on_issue=true")
Lab = Callable[[Mapping[str, str]], Service]


def lab_of(**faster: float) -> Lab:
    """Return labs that are so many times as fast with `threads_2`, `cache_memcached`, ..."""

    def lab(settings: Mapping[str, str]) -> Service:
        speed = 1.0
        for name, times in faster.items():
            key, _, level = name.rpartition("_")
            speed *= times if settings.get(key.replace("_", "-")) == level else 1.0
        return Service(workers=2, capacity_rps=100.0 * speed)

    return lab


@pytest.fixture
def space(home: Path) -> Path:
    path = home / "space.yaml"
    path.write_text(SPACE)
    return path


def tuned(loadstone: VirtualCommandLine, space: Path, lab: Lab, *words: str) -> Ended:
    return loadstone("tune", f"--space={space}", *DEFAULT, *SHORT, *words, lab=lab)


def only(ended: Ended) -> dict:
    [found] = ended.data["measurements"]
    return found


def test_the_setting_that_carries_the_gain_is_named_and_the_others_are_dropped(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    ended = tuned(loadstone, space, lab_of(cache_memcached=1.25))
    found = only(ended)
    assert (ended.code, found["has_gain"]) == (0, True), ended.stderr
    assert found["changes"] == {"cache": "memcached"}
    answer = found["answer"]
    assert answer["low"] <= 1.25 <= answer["high"]
    assert found["seen_while_searching"] > 1
    assert {"file": "keystone.conf", "section": "cache", "line": "enabled = true"} in found["lines"]
    assert found["capacities"] is None  # there was no time for two searches
    assert found["proof"]["not_full"] is None


def test_n_of_both_is_searched_if_there_is_time(loadstone: VirtualCommandLine, space: Path) -> None:
    ended = tuned(loadstone, space, lab_of(cache_memcached=1.25), "--budget=20m")
    found = only(ended)
    assert found["changes"]["cache"] == "memcached"
    of_both = found["capacities"]
    assert of_both["default"]["rate_rps"] == pytest.approx(100.0, rel=0.03)
    assert of_both["changed"]["rate_rps"] == pytest.approx(125.0, rel=0.03)
    assert len(of_both["runs"]) == 2
    listed = loadstone("results", "list", "--json=-").data
    assert {one["origin"] for one in listed if one["run_id"] in of_both["runs"]} == {"tune"}
    [told] = [one["text"] for one in found["facts"] if one["label"] == "N"]
    assert "with the default" in told


def test_a_gain_of_a_service_that_was_not_full_says_so(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    """More workers than requests in flight: with more, it might complete more."""

    def lab(settings: Mapping[str, str]) -> Service:
        threads = int(settings.get("threads", "1"))
        return Service(workers=4 * threads, capacity_rps=100.0 * threads, variation=0.2)

    words = (*DEFAULT, "--keep=cache=local", *SHORT, "--concurrency=8", "--budget=20m")
    ended = loadstone("tune", f"--space={space}", *words, "--html=tune.html", lab=lab)
    found = only(ended)
    assert found["changes"]["threads"] in ("2", "4")
    sentence = "The change served all 8 in flight at once, and may not have been full"
    assert found["proof"]["not_full"].startswith(sentence)
    assert sentence in (loadstone.home / "tune.html").read_text()
    [told] = [one["text"] for one in found["facts"] if one["label"] == "not full"]
    assert told == found["proof"]["not_full"]


def test_without_an_effect_no_gain_is_shown(loadstone: VirtualCommandLine, space: Path) -> None:
    ended = tuned(loadstone, space, lab_of())
    assert (ended.code, only(ended)["has_gain"]) == (0, False), ended.stderr
    assert ended.data["headline"].startswith("No gain shown")
    assert only(ended)["lines"] == []


def test_a_trade_is_measured_apart_and_never_a_gain(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    lab = lab_of(hash_rounds_4=2.0)
    without = only(tuned(loadstone, space, lab))
    assert (without["has_gain"], without["trades"]) == (False, [])
    assert not any("hash-rounds" in one["changes"] for one in without["trials"])
    found = only(tuned(loadstone, space, lab, "--with-trades"))
    [trade] = found["trades"]
    assert (trade["setting"], trade["value"], found["has_gain"]) == ("hash-rounds", "4", False)
    assert trade["ratio"] == pytest.approx(2.0, rel=0.1)
    assert "hash-rounds" not in found["changes"]


def test_a_kept_setting_is_not_changed(loadstone: VirtualCommandLine, space: Path) -> None:
    found = only(tuned(loadstone, space, lab_of(cache_memcached=1.25), "--keep=cache=local"))
    assert not found["has_gain"]
    assert not any("cache" in one["changes"] for one in found["trials"])


def test_a_tuning_that_was_interrupted_goes_on_where_it_ended(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    lab = lab_of(threads_2=1.2)
    whole = tuned(loadstone, space, lab)
    [path] = loadstone.home.glob("home/results/tunings/*/comparisons.jsonl")
    assert stat.S_IMODE(path.parents[2].stat().st_mode) == 0o700
    tuning_id = path.parent.name
    lines = path.read_text().splitlines(keepends=True)
    again = loadstone("tune", f"--resume={tuning_id}", "--json=-", lab=lab)
    assert (again.code, again.data) == (0, whole.data)
    assert not again.engine.plans
    results = path.parents[2] / "results.db"
    kept = results.read_bytes()
    results.write_bytes(b"no database")
    shown = loadstone("tune", f"--resume={tuning_id}", "--json=-", lab=lab)
    assert (shown.code, shown.data) == (0, whole.data)  # a tuning that has ended needs none
    page = loadstone("tune", f"--resume={tuning_id}", "--html=-", lab=lab)
    assert page.stdout.lower().startswith("<!doctype html>")
    assert page.stdout.endswith("</html>\n")  # and no table
    written = loadstone("tune", f"--resume={tuning_id}", "--html=tuned.html", lab=lab)
    [line] = [one for one in written.stdout.splitlines() if one.lstrip().startswith("page")]
    assert line.split() == ["page", "tuned.html"]
    results.write_bytes(kept)
    path.with_name("result.json").unlink()
    replayed = loadstone("tune", f"--resume={tuning_id}", "--json=-", lab=lab)
    assert (replayed.code, replayed.data) == (0, whole.data)
    assert not replayed.engine.plans
    # As after a kill: the last line is cut short.
    path.with_name("result.json").unlink()
    path.write_text("".join(lines[:4]) + lines[4][:20])
    resumed = loadstone("tune", f"--resume={tuning_id}", "--json=-", lab=lab)
    assert resumed.code == 0, resumed.stderr
    assert resumed.engine.plans
    assert only(resumed)["changes"] == only(whole)["changes"]
    assert path.read_text().startswith("".join(lines[:4]))


@pytest.mark.parametrize(
    "problem",
    [
        EnvironmentUnusable("memcached ended while starting\nits log"),
        InvalidInput("conf.cache.x=1: Keystone 30.0.0 has no option x in [cache]"),
    ],
    ids=["a part fails", "a release lacks an option"],
)
def test_combinations_that_do_not_start_are_findings(
    loadstone: VirtualCommandLine, space: Path, problem: LoadstoneError
) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        if settings["cache"] == "memcached":
            raise problem
        return lab_of(threads_4=1.2)(settings)

    ended = tuned(loadstone, space, lab)
    found = only(ended)
    assert (ended.code, found["changes"]) == (0, {"threads": "4"}), ended.stderr
    failed = [one for one in found["trials"] if one["failure"]]
    assert failed
    assert all(one["changes"]["cache"] == "memcached" for one in failed)
    first_line = str(problem).splitlines()[0]
    assert all(first_line in one["failure"] for one in failed)
    words = (f"--resume={ended.data['tuning_id']}", "--markdown=tuned.md")
    shown = " ".join(loadstone("tune", *words, lab=lab).stdout.split())
    markdown = (loadstone.home / "tuned.md").read_text()
    for told in (shown, markdown):
        assert "threads=4" in told  # what was tried
        assert "cache=memcached" in told
        assert first_line in told.replace("\\", "")
        assert "costs" in told


def test_combinations_that_all_fail_are_no_answer(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        if settings["threads"] != "1" or settings["cache"] == "memcached":
            raise EnvironmentUnusable("uwsgi is not installed")
        return Service(workers=2, capacity_rps=100.0)

    ended = tuned(loadstone, space, lab)
    found = only(ended)
    assert (ended.code, ended.data["exit_code"], found["has_gain"]) == (4, 4, False)
    count = len(found["trials"])
    assert ended.data["headline"] == (
        "No gain shown in throughput of issue: none of "
        f"{count} combinations could be measured to the end: uwsgi is not installed"
    )


def test_what_a_failed_comparison_measured_can_be_found_afterwards(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    def lab(settings: Mapping[str, str]) -> Service:
        return Service(error_share=0.5) if settings["cache"] == "memcached" else lab_of()(settings)

    found = only(tuned(loadstone, space, lab))
    [path] = loadstone.home.glob("home/results/tunings/*/comparisons.jsonl")
    kept = {one.name for one in loadstone.home.glob("home/results/runs/*")}
    failed = [one for one in found["trials"] if one["failure"]]
    assert failed
    for one in failed:
        assert len(one["failed_runs"]) == 4  # of two attempts
        assert kept.issuperset(one["failed_runs"])
        assert all(run_id in path.read_text() for run_id in one["failed_runs"])


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (EnvironmentUnusable("no port\nits log"), "the default does not start: no port"),
        (InvalidInput("conf.cache.x=1: no option"), "conf.cache.x=1: no option"),
    ],
    ids=["a part fails", "a release lacks an option"],
)
def test_a_default_that_does_not_start_ends_it(
    loadstone: VirtualCommandLine, space: Path, problem: LoadstoneError, message: str
) -> None:
    def lab(_: Mapping[str, str]) -> Service:
        raise problem

    ended = tuned(loadstone, space, lab)
    assert ended.code == problem.exit_code
    assert message in ended.stderr
    assert json.loads(ended.stdout)["exit_code"] == problem.exit_code


def test_a_full_disk_ends_a_tuning_and_is_no_failure_of_a_combination(
    loadstone: VirtualCommandLine, space: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_of(cache_memcached=1.25)
    written, engine = list[Path](), vars(parquet)
    write, refused = engine["write_samples"], engine["EngineUnusable"]

    def until_full(path: Path, columns: object) -> None:
        written.append(path)
        if len(written) > 60:
            raise refused("No space left on device")
        write(path, columns)

    with monkeypatch.context() as disk:
        disk.setattr(parquet, "write_samples", until_full)
        ended = tuned(loadstone, space, lab)
    assert ended.code == 3
    assert "No space left on device; free space there" in ended.stderr
    assert "dropped" not in ended.stderr
    [path] = loadstone.home.glob("home/results/tunings/*/comparisons.jsonl")
    resumed = loadstone("tune", f"--resume={path.parent.name}", "--json=-", lab=lab)
    assert (resumed.code, only(resumed)["has_gain"]) == (0, True), resumed.stderr


def test_a_journal_that_is_no_text_names_the_line_and_the_mend(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    assert tuned(loadstone, space, lambda _: Service(error_share=0.5)).code == 3
    [path] = loadstone.home.glob("home/results/tunings/*/comparisons.jsonl")
    count = len(path.read_bytes().splitlines())
    path.write_bytes(path.read_bytes() + b"\xff\xfe\n")
    damaged = loadstone("tune", f"--resume={path.parent.name}")
    assert damaged.code == 2
    assert f"{path}:{count + 1}: not a line of a tuning's journal: " in damaged.stderr
    assert "without this line, --resume makes its comparison again" in damaged.stderr
    path.write_bytes(b"\xff" + path.read_bytes())
    damaged = loadstone("tune", f"--resume={path.parent.name}")
    assert damaged.code == 2
    assert f"{path}:1: not a line of a tuning's journal: " in damaged.stderr
    assert "begin the tuning again" in damaged.stderr


def test_a_default_that_could_not_be_measured_is_measured_again_by_resume(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    failed = tuned(loadstone, space, lambda _: Service(error_share=0.5))
    assert failed.code == 3
    assert "the default cannot be measured" in failed.stderr
    [path] = loadstone.home.glob("home/results/tunings/*/comparisons.jsonl")
    lab = lab_of(cache_memcached=1.25)
    resumed = loadstone("tune", f"--resume={path.parent.name}", "--json=-", lab=lab)
    assert (resumed.code, only(resumed)["has_gain"]) == (0, True), resumed.stderr
    path.with_name("result.json").unlink()
    replayed = loadstone("tune", f"--resume={path.parent.name}", "--json=-", lab=lab)
    assert (replayed.code, replayed.data) == (0, resumed.data)
    assert not replayed.engine.plans


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("settings: []", "nothing to search: it has no setting of kind gain"),
        (
            "settings: [{name: turbo, levels: [1, 2]}]",
            "the lab has no setting 'turbo'; its settings are",
        ),
        ("settings: [{name: threads, levels: [1]}]", "threads has one level, 1; give two or more"),
        ("settings: [{name: threads, levels: [1, 1]}]", "threads has one level, 1"),
        ("settings: [{name: threads, levels: [1, x]}]", "threads must be a whole number"),
        ("settings: [{name: threads, levels: ['{4 // 0}', 2]}]", "{4 // 0} cannot be computed"),
        (
            "settings: [{name: threads, levels: ['{host.cpus ** 2}', 2]}]",
            "{host.cpus ** 2}: BinOp is not allowed in an expression",
        ),
        ("settings: [{name: threads}]", 'the space: "settings[0]" needs levels or a range'),
        (
            "settings: [{name: threads, levels: [1, 2], kinds: gain}]",
            'the space has no "settings[0].kinds"; did you mean "kind"?',
        ),
        ("settings: [{name: threads, range: {low: 4, high: 2, step: 1}}]", "low must be below"),
        (
            "settings: [{name: threads, range: {low: 1, high: 101, step: 1}}]",
            '"settings[0].range" has more than 100 levels',
        ),
        (
            f"settings: [{{name: threads, range: {{low: 1, high: {2**100}, times: 2}}}}]",
            '"settings[0].range" has more than 100 levels',
        ),
        ("settings: [{name: maxconn, levels: [1, 2]}]", "maxconn=1 needs nodes=2"),
        (
            "settings: [{name: threads, levels: [1, 2]}, {name: threads, levels: [1, 4]}]",
            "threads stands twice",
        ),
        (
            "settings: [{name: listen, levels: [1, 2], when: {web: [uwsgi]}},"
            "{name: web, levels: [uwsgi, gunicorn]}]",
            "the condition of listen needs web, which must come first",
        ),
        ("settings: [{name: port, levels: [1, 2]}]", "an address, not a setting"),
        ("title: nothing", 'the space needs "settings"'),
        ("- a", "the space must be a mapping, not a list"),
        (
            "settings:\n  - {name: threads, levels: [1, 2]}\n  - {name: thread, levels: [1, 2]}\n",
            ":3: ",
        ),
        ("settings: [{name: threads, levels: [1, [2]]}]", "must be a text, a number, true or"),
        (
            "settings: [{name: threads, levels: [1, 2], kind: gian}]",
            "must be 'gain' or 'trade', not",
        ),
        ("settings: 3", '"settings" must be a list, not 3'),
        (
            "settings: [{name: threads, levels: [2, 4], when: {web: [gunicorn]}}]",
            "there is nothing to search: no setting of kind gain applies to the default",
        ),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused_in_one_line(
    loadstone: VirtualCommandLine, space: Path, text: str, message: str
) -> None:
    space.write_text(text)
    ended = loadstone("tune", f"--space={space}")
    assert ended.code == 2
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--budget=2m",), 2, "give --budget 9m or more"),
        (("--budget=soon",), 2, "'soon' is not a time"),
        (("--space=nowhere.yaml",), 2, "no such file; built in is lab"),
        (("--resume=nothing",), 2, "no tuning 'nothing' has begun"),
        (("--resume=",), 2, "the ID is empty"),
        (("--resume=nothing", "--keep=web=uwsgi"), 2, "--keep does not go with --resume"),
        (("--with=turbo=on",), 2, "the lab has no setting 'turbo'; its settings are"),
        (("--keep=worker=2",), 2, "the lab has no setting 'worker'; did you mean 'workers'?"),
        (("--with=service=oidc-provider",), 2, "only settings of a Keystone are searched"),
        (("--with=conf.ldap.password=x",), 2, "conf.ldap.password: a secret"),
        (("--scenario=nothing",), 2, "nothing"),
    ],
)
def test_wrong_use_is_refused(
    loadstone: VirtualCommandLine, words: tuple[str, ...], code: int, message: str
) -> None:
    ended = loadstone("tune", *words)
    assert (ended.code, message in ended.stderr) == (code, True), ended.stderr


def test_a_dry_run_shows_the_space_and_measures_nothing(
    loadstone: VirtualCommandLine, space: Path
) -> None:
    words = ("--dry-run", "--with-trades", "--budget=10h")
    ended = loadstone("tune", f"--space={space}", *words)
    assert ended.code == 0
    assert "gain       threads: the default, 2, 4" in ended.stdout
    assert "only where cache is memcached" in ended.stdout
    assert "trade      hash-rounds: the default, 4, 12" in ended.stdout
    # 3 x 2 x 3 with the default, which has no cache_on_issue.
    assert "about 17 combinations of 17 in 600 min" in ended.stdout
    assert not ended.engine.plans
    assert not list(loadstone.home.glob("home/results/tunings/*"))


def test_a_dry_run_shows_a_condition_of_many_numbers_as_their_range(
    loadstone: VirtualCommandLine,
) -> None:
    ended = loadstone("tune", "--dry-run")
    assert ended.code == 0, ended.stderr
    assert "only where nodes is 2 to 16" in ended.stdout
    assert "only where database is mariadb or postgres" in ended.stdout
