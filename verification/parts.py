"""The parts of `make verify`, by topic. Tests marked `verify` are parts, too."""

import re
from pathlib import Path

from verification.part import Part

ROOT = Path(__file__).parents[1]
TESTS = "tests"
TOPICS = {
    "engine": "what a request and the live page cost, and how true the times are",
    "search": "N of services whose capacity is known, simulated and on real sockets",
    "comparison": "answers of `compare` and `tune` for services whose difference is known",
    "diagnosis": "bottlenecks, predictions and sizings beside what was measured",
    "faults": "figures of known faults; everything undone after kills",
    "fuzz": "made-up input: HTTP, sample files, imports, task files, facts",
    "fleet": "one load from several hosts: counts, agreement, cost, losses",
    "lab": "starts of the lab, audits over ssh, proofs of audit rules",
    "studies": "the built-in studies, most in their quick forms",
    "release": "two builds with the same hashes; installation on systems with Python alone",
    TESTS: "tests marked `verify`: the full matrix with real services",
}
MINUTE_S, HOUR_S = 60.0, 3600.0
RALLY = "RALLY=VENV"  # an environment with Rally in it


def engine(name: str, shows: str, about_s: float, needs: tuple[str, ...] = ()) -> Part:
    """Return a section of docs/performance.md as a part."""
    command = f"{{python}} -m verification.engine --only {name}"
    return Part(
        f"engine-{name}",
        "engine",
        shows,
        about_s,
        f"{command} --rounds 9",
        f"{command} --rounds 1 --seconds 1",
        needs,
        is_first=name == "stall",
    )


ENGINE = (
    engine("http", "CPU per request and throughput beside wrk, ab, oha, vegeta", 360),
    engine("https", "the same over TLS, beside wrk", 240, ("nginx", "openssl", "wrk")),
    engine("http2", "the same over HTTP/2, beside h2load", 240, ("nginx", "openssl", "h2load")),
    engine("lag", "how late requests are sent, and their CPU, beside wrk2", 300),
    engine("stall", "p99 of a target that stalls, beside the target's own log", 120),
    engine("waits", "how late `loadstone serve` ends a service time", 120),
    engine("memory", "memory of runs of 100,000 and 400,000 requests", 90),
    engine("summaries", "time and memory of the statistics of 10 million samples", 120),
    engine("command", "CPU of `loadstone run` as a whole, beside wrk and wrk2", 420, ("wrk",)),
    Part(
        "engine-soak",
        "engine",
        "sent = recorded = seen by the target: 3 million requests in 10 minutes",
        11 * MINUTE_S,
        "{python} -m verification.engine.soak --rate 5000 --minutes 10",
        "{python} -m verification.engine.soak --rate 500 --minutes 0.1",
        is_first=True,
    ),
    Part(
        "engine-hot",
        "engine",
        "time of the work per request without sockets",
        3 * MINUTE_S,
        "cargo bench --profile editable -p loadstone-engine --features bench --bench hot_path",
        needs=("cargo",),
    ),
    Part(
        "engine-rally",
        "engine",
        "CPU, memory and rate of `loadstone run` beside Rally",
        40 * MINUTE_S,
        "{python} -m verification.engine --only rally --rounds 2 --rally $RALLY",
        needs=(RALLY,),
    ),
)

FAMILIES = "{python} -m verification.search.families --processes 2"
SIMULATED = "{python} -m verification.search.simulated --processes 2"
PLAIN = "deterministic,poisson,leak,bursts,gc,overflow,fsync,mix"
FEW = "--services 2 --rival-services 2 --families deterministic"


def simulated(name: str, shows: str, about_s: float, words: str, few: str = FEW) -> Part:
    """Return searches of simulated services as a part."""
    return Part(
        f"search-{name}", "search", shows, about_s, f"{SIMULATED} {words}", f"{SIMULATED} {few}"
    )


def families(group: str, shows: str, minutes: float) -> Part:
    """Return searches of a group of families of simulated services as a part."""
    command = f"{FAMILIES} --groups {group}"
    quick = f"{command} --services 1 --budgets 60"
    name = f"search-families-{group}"
    return Part(name, "search", shows, minutes * MINUTE_S, command, quick)


def limits(
    name: str, shows: str, about_s: float, words: str, kind: str, needs: tuple[str, ...] = ()
) -> Part:
    """Return searches of services that refuse, on real sockets, as a part."""
    command = "{python} -m verification.search.limits"
    quick = f"{command} --runs 1 --budget 20 --kind '{kind}'"
    return Part(f"search-{name}", "search", shows, about_s, f"{command} {words}", quick, needs)


SEARCH = (
    families("ordinary", "N of eight families of simulated services, in 4 minutes and in one", 5),
    families("refusing", "the same for eleven families that refuse requests", 7),
    families("changing", "the same for five that change, or that have no single N", 4),
    families("regimes", "the same for 13 of other kinds that the search names", 10),
    families("unknown", "the same for ten of kinds that the search does not know", 8),
    families("unseen", "the same for ten by someone who did not look at the search", 8),
    Part(
        "search-slow",
        "search",
        "the same for ordinary services of 3 to 20 requests a second",
        4 * MINUTE_S,
        f"{FAMILIES} --groups ordinary --rates 3-20",
        f"{FAMILIES} --groups ordinary --services 1 --budgets 60",
    ),
    simulated(
        "rivals",
        "N by bisect, mlrsearch and the closed-loop peak, 40 services of 8 families each",
        6 * MINUTE_S,
        "--methods bisect,mlrsearch,closed-loop-peak --rival-services 40 --first 30000"
        f" --families {PLAIN}",
        f"--methods bisect,closed-loop-peak {FEW}",
    ),
    simulated(
        "isp-ras",
        "the same for the method of the ISP RAS 2015 paper",
        10 * MINUTE_S,
        "--methods isp-ras-2015,isp-ras-2015-text --rival-services 40 --first 30000"
        f" --budget 7200 --families {PLAIN}",
        f"--methods isp-ras-2015 --budget 7200 {FEW}",
    ),
    Part(
        "search-real",
        "search",
        "N of `loadstone serve` on real sockets: 20 each at 50, 200, 1,000/s",
        95 * MINUTE_S,
        "{python} -m verification.search.real --rates 50,200,1000 --law all --runs 20 --first 100",
        "{python} -m verification.search.real --rates 200 --runs 1 --budget 20",
        is_first=True,
    ),
    Part(
        "search-oidc",
        "search",
        "N of each OpenID Connect flow of `loadstone serve --oidc`, ten times",
        25 * MINUTE_S,
        "{python} -m verification.search.oidc --runs 10 --at-once 4",
        "{python} -m verification.search.oidc --scenario oidc-refresh --budget 20",
    ),
    Part(
        "search-regimes",
        "search",
        "what is said of services without one plain N, on real sockets, ten times each",
        95 * MINUTE_S,
        "{python} -m verification.search.regimes --runs 10",
        "{python} -m verification.search.regimes --runs 1 --budget 20 --row '50/s for all users'",
    ),
    limits(
        "limits",
        "the same for limiters, a short queue and a limit on connections",
        90 * MINUTE_S,
        "--runs 10 --budget 60 --kind 'limiter of 30/s' --kind 'limiter of 90/s'"
        " --kind 'limiter of 400/s' --kind 'limiter of 2,000/s' --kind 'queue of 20'"
        " --kind '40 connections'",
        "limiter of 90/s",
    ),
    limits(
        "distant",
        "the same for services that are 1 s and 6 s away",
        20 * MINUTE_S,
        "--runs 3 --budget 150 --kind '1 s away' --kind '6 s away'",
        "1 s away",
    ),
    limits(
        "haproxy",
        "the same for haproxy's limiter, 5 in 1 s and 15 in 3 s",
        15 * MINUTE_S,
        "--runs 3 --budget 100 --at-once 3 --kind 'haproxy, 5 in 1 s' --kind 'haproxy, 15 in 3 s'",
        "haproxy, 5 in 1 s",
        ("haproxy",),
    ),
)

COMPARISON = (
    Part(
        "comparison-simulated",
        "comparison",
        "error rates and power of `compare` on simulated noise",
        4 * MINUTE_S,
        "{python} -m verification.comparison.simulated",
        "{python} -m verification.comparison.simulated --count 20",
    ),
    Part(
        "comparison-real",
        "comparison",
        "answers for real Keystones of known difference, 20 times each, three at the same time",
        4 * HOUR_S,
        "{python} -m verification.comparison.real --at-once 3",
        "{python} -m verification.comparison.real --times 1 --difference 'capacity 200 and 206'",
    ),
    Part(
        "comparison-quiet",
        "comparison",
        "answers for real Keystones of known difference, 20 times each, without other work",
        2.7 * HOUR_S,
        "{python} -m verification.comparison.real --difference 'hash rounds 4 and 6' "
        "--difference '2 ms more' --difference '24.0.0 and 25.0.0, application credentials' "
        "--difference '1 and 4 threads'",
        "{python} -m verification.comparison.real --times 1 --difference 'capacity 200 and 206'",
    ),
    Part(
        "comparison-equal",
        "comparison",
        "answers for two equal Keystones, 20 times, beside two busy processes",
        2 * HOUR_S,
        "{python} -m verification.comparison.real --busy 2 --difference equal",
        "{python} -m verification.comparison.real --times 1 --difference 'capacity 200 and 200'",
    ),
    Part(
        "comparison-idle",
        "comparison",
        "error rates of comparisons in turns of simulated services with several workers",
        3 * MINUTE_S,
        "{python} -m verification.comparison.workers --count 1000",
        "{python} -m verification.comparison.workers --count 2",
    ),
    Part(
        "comparison-workers",
        "comparison",
        "how many times as much as one worker four complete, by `compare`, ten times",
        11 * MINUTE_S,
        "{python} -m verification.comparison.real --times 10 "
        "--difference '1 and 4 workers of 20 a second'",
        "{python} -m verification.comparison.real --times 1 "
        "--difference '1 and 4 workers of 20 a second'",
    ),
    Part(
        "comparison-starts",
        "comparison",
        "CPU time of two equal Keystones that were started in turn, or at the same time",
        20 * MINUTE_S,
        "{python} -m verification.comparison.starts",
        "{python} -m verification.comparison.starts --times 1 --pairs 2",
    ),
    Part(
        "comparison-bisections",
        "comparison",
        "how often `bisect` blames the right one of 16 simulated versions",
        3 * MINUTE_S,
        "{python} -m verification.comparison.bisections",
        "{python} -m verification.comparison.bisections --count 4",
    ),
    Part(
        "comparison-turns",
        "comparison",
        "error rates of comparisons in turns, beside blocks in the same simulated noise",
        6 * MINUTE_S,
        "{python} -m verification.comparison.turns",
        "{python} -m verification.comparison.turns --count 8",
    ),
)

TUNED = "{python} -m verification.tuning.simulated"
TUNING = (
    Part(
        "tune-null",
        "comparison",
        "how often `tune` shows a gain where there is none: 1,000 tunings on each machine",
        25 * MINUTE_S,
        f"{TUNED} --null",
        f"{TUNED} --null --count 2",
    ),
    Part(
        "tune-coverage",
        "comparison",
        "whether the stated interval holds the true gain: 100 tunings on each machine",
        2 * MINUTE_S,
        TUNED,
        f"{TUNED} --count 2",
    ),
    Part(
        "tune-real-null",
        "comparison",
        "ten tunings at once of services on real sockets: no gain where there is none",
        16 * MINUTE_S,
        "{python} -m verification.tuning.real --null --budget 15m",
        "{python} -m verification.tuning.real --help",
    ),
    Part(
        "tune-real-gain",
        "comparison",
        "the same with 36 combinations of known gain: the interval, and how near to the best",
        21 * MINUTE_S,
        "{python} -m verification.tuning.real",
        "{python} -m verification.tuning.real --help",
    ),
)

DIAGNOSIS = (
    Part(
        "bottlenecks",
        "diagnosis",
        "the finding that comes first in eleven labs with a known limit; needs root",
        50 * MINUTE_S,
        "{python} -m verification.diagnosis.bottlenecks --times 10",
        "{python} -m verification.diagnosis.bottlenecks --times 1 --target nothing",
        ("mariadbd", "memcached", "apache2", "haproxy", "cc", "node", "npm", "root"),
    ),
    Part(
        "provider-bottlenecks",
        "diagnosis",
        "the finding that comes first in four Keycloaks with a known limit; needs root",
        9 * MINUTE_S,
        "{python} -m verification.diagnosis.provider_bottlenecks",
        "{python} -m verification.diagnosis.provider_bottlenecks --times 1 --target nothing",
        ("java", "mvn", "mariadbd", "root"),
    ),
    Part(
        "prediction",
        "diagnosis",
        "capacity predicted from a low load beside measured N, five labs",
        35 * MINUTE_S,
        "{python} -m verification.diagnosis.prediction --budget 40",
        "{python} -m verification.diagnosis.prediction --budget 20 --repeats 1"
        " --lab '1 worker, SQLite'",
        ("mariadbd", "postgres", "apache2", "haproxy"),
    ),
    Part(
        "monitoring",
        "diagnosis",
        "CPU of a login by the monitor and by the kernel's account; cost of monitoring",
        25 * MINUTE_S,
        "{python} -m verification.diagnosis.monitoring --pairs 20",
        "{python} -m verification.diagnosis.monitoring --pairs 2 --logins 20",
        ("mariadbd", "memcached"),
        is_first=True,
    ),
    Part(
        "sizing",
        "diagnosis",
        "measured N beside the rate at which `loadstone size` says the machine is full",
        40 * MINUTE_S,
        "{python} -m verification.diagnosis.sizing",
        "{python} -m verification.diagnosis.sizing --budget 20 --repeats 1"
        " --load '4 workers, validation'",
        ("mariadbd", "memcached", "haproxy", "apache2"),
    ),
    Part(
        "tests-simulated",
        "diagnosis",
        "predictions, growth, percentiles and effects of faults, simulated",
        2 * MINUTE_S,
        "{python} -m pytest -q tests/monitor tests/analysis tests/diagnosis"
        " -k 'prediction or growth or effect or percentile'",
    ),
)

FAULTS = (
    Part(
        "fault-figures",
        "faults",
        "downtime, recovery and degradation of known faults, 20 rounds",
        6 * MINUTE_S,
        "{python} -m verification.faults.figures --rounds 20 --at-once 5",
        "{python} -m verification.faults.figures --rounds 1",
        is_first=True,
    ),
    Part(
        "fault-recovery",
        "faults",
        "how often a recovery is stated wrongly, on simulated loads",
        5 * MINUTE_S,
        "{python} -m verification.faults.recovery",
        "{python} -m verification.faults.recovery --rounds 2",
    ),
    Part(
        "fault-undo",
        "faults",
        "`loadstone fault` killed 30 times: is everything undone?",
        40 * MINUTE_S,
        "{python} -m verification.faults.undo --times 30",
        "{python} -m verification.faults.undo --times 1",
        ("mariadbd", "memcached", "haproxy"),
    ),
    Part(
        "kills",
        "faults",
        "200 kills and lost terminals of runs, searches, faults, fleets, studies and labs",
        90 * MINUTE_S,
        "{python} -m verification.faults.kills --times 200 --users 20",
        "{python} -m verification.faults.kills --times 1 --users 4 --serve",
        ("mariadbd",),
    ),
)

FUZZ = "{python} -m pytest -q -p no:cacheprovider tests/fuzz tests/engine/test_hostile_servers.py"
MADE_UP = (
    Part(
        "fuzz-input",
        "fuzz",
        "3,000 made-up inputs of each kind: one outcome or one of our errors, in bounded memory",
        25 * MINUTE_S,
        f"{FUZZ} --hypothesis-profile long --timeout 0",
        "{python} -m pytest -q -p no:cacheprovider tests/fuzz/test_http2.py",
    ),
    Part(
        "fuzz-engine",
        "fuzz",
        "a million made-up answers of HTTP/1",
        10 * MINUTE_S,
        "env PROPTEST_CASES=1000000 cargo test --release --quiet -p loadstone-engine any_bytes",
        "env PROPTEST_CASES=100 cargo test --quiet -p loadstone-engine any_bytes",
        ("cargo",),
    ),
)

COST = "{python} -m verification.fleet.cost"


def fleet_cost(name: str, shows: str, about_s: float, quick: str) -> Part:
    """Return a cost of a fleet as a part."""
    command = f"{COST} {name}"
    return Part(f"fleet-{name}", "fleet", shows, about_s, command, f"{command} {quick}")


FLEET = (
    Part(
        "fleet-counts",
        "fleet",
        "recorded = seen by the target: 3 million requests from four hosts",
        10 * MINUTE_S,
        f"{COST} counts --namespaces",
        f"{COST} counts --requests 2000",
        ("root",),
        is_first=True,
    ),
    Part(
        "fleet-agreement",
        "fleet",
        "N by four hosts and by one, ten times",
        30 * MINUTE_S,
        f"{COST} agreement --namespaces",
        f"{COST} agreement --searches 1",
        ("root",),
    ),
    fleet_cost("requests", "CPU of a request with and without a fleet", 60, "--rounds 1"),
    fleet_cost("start", "time until the first request", 60, "--rounds 1"),
    fleet_cost("idle", "CPU of a worker that waits", 60, "--seconds 2"),
    fleet_cost("scheduler", "CPU of a scheduler of 100 workers", 120, "--seconds 2 --workers 4"),
    fleet_cost("samples", "bytes and CPU of a sample", 180, "--requests 20000"),
    Part(
        "fleet-losses",
        "fleet",
        "hosts, schedulers and clients lost under load, five times each",
        25 * MINUTE_S,
        "{python} -m verification.fleet.losses --times 5",
        "{python} -m verification.fleet.losses --times 1",
        ("root",),
    ),
)

LIVE = (
    Part(
        "live-cost",
        "engine",
        "N with and without the live page in Chromium, 20 pairs",
        25 * MINUTE_S,
        "{python} -m verification.live.cost --pairs 20",
        "{python} -m verification.live.cost --pairs 1 --budget 20s",
        ("chromium",),
    ),
    Part(
        "live-memory",
        "engine",
        "memory of the command and of the page over two hours",
        2.1 * HOUR_S,
        "{python} -m verification.live.memory --turns 3 --minutes 40",
        "{python} -m verification.live.memory --turns 2 --minutes 0.2 --every 0.1",
        ("chromium", "memcached"),
    ),
)

LAB = (
    Part(
        "lab-starts",
        "lab",
        "time and memory of the lab's first and later starts",
        15 * MINUTE_S,
        "{python} -m verification.lab.starts",
        needs=("mariadbd", "postgres", "memcached", "haproxy", "nginx", "apache2", "slapd"),
    ),
    Part(
        "audit-hosts",
        "lab",
        "time of `loadstone audit` for 8 hosts over ssh",
        MINUTE_S,
        "{python} -m verification.lab.audit",
        "{python} -m verification.lab.audit --hosts 2 --rounds 1",
        ("sshd",),
    ),
    Part(
        "audit-proofs",
        "lab",
        "gain of the fixes of WEB-01 and KS-01, by `loadstone audit prove`",
        8 * MINUTE_S,
        "{python} -m verification.lab.proofs WEB-01 KS-01",
        "{python} -m verification.lab.proofs KS-01 --seconds 1",
        ("memcached",),
    ),
)

STUDIES = {
    "isp-ras-2015": ("storage, web server and database of the ISP RAS 2015 paper", 19),
    "workers": ("N of 1, 2 and 4 workers", 6),
    "cache-settings": ("N without cache, with local and with memcached", 6),
    "rally-authenticate": ("durations of logins, 4 to 32 at once", 4),
    "two-releases": ("Keystone 25.0.0 and 30.0.0", 9),
    "revocation-events": ("validation with 10,000 revocation events", 8),
    "population": ("issue, validation and list of users with 100 to 100,000 users", 3),
    "expired-tokens": ("issue and validation with 10,000 expired tokens", 4),
    "uuid-or-fernet": ("UUID and Fernet on Keystone 13.0.2", 4),
    "wiki-sequential": ("100 requests one after the other, SQL and LDAP", 5),
    "wiki-memcached": ("local and memcached, one after the other and 8 at once", 4),
    "ldap-pool": ("logins of users in LDAP, with and without pools of connections", 6),
    "wiki-hosts": ("1 to 4 Apaches behind haproxy", 7),
    "wiki-user-creation": ("creation of 100 users, 1 to 32 at once", 8),
    "sql-per-request": ("SQL statements and cache operations per request", 3),
    "keystone-per-boot": ("requests to Keystone per booted server", 30),
    "refarch-boot": ("10 to 160 servers booted at once", 20),
    "reliability-keystone": ("the four published faults of Keystone", 7),
    "rolling-upgrade": ("changes of a release and of settings under load", 8),
    "overload": ("twice N, and the return", 7),
    "population-capacity": ("N and p99 with 100 and 100,000 users, two databases", 10),
    "app-credential-fix": ("tokens of application credentials, Keystone 24.0.0 and 25.0.0", 4),
    "memcached-death": ("one of three memcached servers killed and frozen", 12),
    "token-formats": ("Fernet and JWS, with and without memcached", 7),
    "rackspace-2016": ("Apache and nginx-uwsgi at 100 to 1,000 connections", 35),
    "scenario-statements": ("SQL statements and cache operations of every scenario", 16),
    "keystone-in-rust": ("Keystone in Python and in Rust, which `make keystone-rust` builds", 9),
    "identity-servers": ("Keystone, Keycloak and oidc-provider; needs Java, Maven and Node", 54),
}
IN_FULL = ("identity-servers",)


CLEAN_ROOT = "{python} -m verification.release.clean_root --suite"
RELEASE = (
    Part(
        "release-wheels",
        "release",
        "wheels and source distribution, built twice: the same hashes",
        15 * MINUTE_S,
        "make reproduce wheelhouse LAB=1",
        "make toolchain",
        ("cargo", "git"),
    ),
    Part(
        "release-dependencies",
        "release",
        "licences and sources of all dependencies; advisories, where their data can be had",
        2 * MINUTE_S,
        "make dependencies",
        "make toolchain",
        ("cargo", "git"),
    ),
    *(
        Part(
            f"release-{suite}",
            "release",
            f"installation without Rust on Debian {number}: seconds, megabytes, demo, removal",
            15 * MINUTE_S,
            f"{CLEAN_ROOT} {suite}",
            f"{CLEAN_ROOT} {suite} --help",
            ("root", "mmdebstrap"),
        )
        for suite, number in (("bookworm", 12), ("trixie", 13))
    ),
)


def studies() -> tuple[Part, ...]:
    """Return each study as a part: its quick form, unless a claim needs its repeats."""
    return tuple(
        Part(
            f"study-{name}",
            "studies",
            shows,
            minutes * MINUTE_S,
            f"{{python}} -m verification.studies {name}{'' if name in IN_FULL else ' --quick'}",
        )
        for name, (shows, minutes) in STUDIES.items()
    )


_MARK = re.compile(r"\bmark\.verify\b")


def marked(root: Path) -> tuple[Part, ...]:
    """Return the tests marked `verify`: a part for each file of live/, else for each folder."""
    found: dict[str, Path] = {}
    for file in sorted(root.rglob("test_*.py")):
        if not _MARK.search(file.read_text()):
            continue
        words = file.relative_to(root).with_suffix("").parts
        if words[0] == "live":
            found[f"live-{words[-1].removeprefix('test_').replace('_', '-')}"] = file
        else:
            topmost = root / words[0] if len(words) > 1 else file
            found[f"tests-{topmost.stem.removeprefix('test_').replace('_', '-')}"] = topmost
    return tuple(
        Part(
            name,
            TESTS,
            f"tests marked `verify` in {path.relative_to(root.parent)}",
            20 * MINUTE_S,
            f"{{python}} -m pytest -q -m verify {path.relative_to(root.parent)}",
            f"{{python}} -m pytest -q -m verify --collect-only {path.relative_to(root.parent)}",
        )
        for name, path in found.items()
    )


def fixed() -> tuple[Part, ...]:
    """Return the parts that are no marked tests."""
    measured = (*ENGINE, *SEARCH, *COMPARISON, *TUNING, *DIAGNOSIS, *FAULTS, *MADE_UP, *FLEET)
    return (*measured, *LIVE, *LAB, *RELEASE, *studies())


def every() -> tuple[Part, ...]:
    """Return all parts."""
    return (*fixed(), *marked(ROOT / "tests"))


def chosen(words: str) -> tuple[Part, ...]:
    """Return the parts of a comma list of parts and topics; all parts of an empty one."""
    parts = every()
    names = [word.strip() for word in words.split(",") if word.strip()]
    known = {part.name for part in parts} | set(TOPICS)
    if unknown := [name for name in names if name not in known]:
        raise LookupError(
            f"no part or topic {', '.join(unknown)}; `make verify LIST=1` shows what there is"
        )
    return tuple(p for p in parts if not names or p.name in names or p.topic in names)
