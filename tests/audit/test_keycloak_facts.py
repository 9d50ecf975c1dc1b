"""What the collector reads of a Keycloak, from a process that looks like one."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from loadstone.audit.document import Document, parse
from loadstone.audit.extract import extract
from loadstone.audit.transport import COLLECTOR

pytestmark = pytest.mark.processes
BUSYBOX = shutil.which("busybox")
SECRET = "s3cr3t-that-must-not-leave"
BUILT = f"kc.db=postgres\nkc.db-url=jdbc:postgresql://db/k?password={SECRET}\nkc.optimized=true\n"
CONF = f"""# db-pool-max-size=1
db-password={SECRET}
hostname=https://id.example.com

http-max-queued-requests = 700
db-pool-min-size=5
"""


@pytest.fixture
def keycloak(tmp_path):
    """Start a process named java, with Keycloak's arguments, files and environment."""
    if BUSYBOX is None and "CI" not in os.environ:
        pytest.skip("apt-get install busybox")
    home, runtime = tmp_path / "keycloak", tmp_path / "jdk" / "bin"
    for folder in (home / "conf", home / "lib" / "quarkus", home / "lib" / "lib" / "main", runtime):
        folder.mkdir(parents=True)
    (home / "conf" / "keycloak.conf").write_text(CONF)
    (home / "lib" / "lib" / "main" / "org.keycloak.keycloak-core-26.7.3.jar").touch()
    with zipfile.ZipFile(home / "lib" / "quarkus" / "generated-bytecode.jar", "w") as jar:
        jar.writestr("META-INF/keycloak-persisted.properties", BUILT)
    (runtime.parent / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.9"\n')
    java = runtime / "java"
    shutil.copy(BUSYBOX, java)
    words = [f"-Dkc.home.dir={home}/bin/..", f"-Djavax.net.ssl.keyStorePassword={SECRET}"]
    words += ["-Xmx2g", "start", "--db-password", SECRET, "--db-pool-max-size", "40"]
    (home / "bin").mkdir()
    environment = {"KC_DB_PASSWORD": SECRET, "KC_DB_POOL_MIN_SIZE": "10", "KC_LOG_LEVEL": "DEBUG"}
    environment["KC_DB"] = "mariadb"  # does not count: the build has fixed it
    with subprocess.Popen(
        # The shell reads from its standard input, which stays open, and ignores the other words.
        ["sh", "-c", "read ended", *words],
        executable=java,
        env=environment,
        stdin=subprocess.PIPE,
    ) as process:
        yield process.pid
        process.stdin.close()


def collected(
    tmp_path: Path, pid: int, tools: str = "/usr/bin:/bin", cgroups: str = "/sys/fs/cgroup"
) -> Document:
    variables = {"PATH": tools, "AUDIT_ETC": str(tmp_path), "AUDIT_PYTHON": "/none"}
    variables["AUDIT_CGROUPS"] = cgroups
    ended = subprocess.run(
        ["sh", COLLECTOR],
        env=variables | {"AUDIT_PIDS": str(pid)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""
    assert SECRET not in ended.stdout
    assert "id.example.com" not in ended.stdout
    return parse(ended.stdout)


@pytest.mark.parametrize("tools", ["those of this machine", "those of busybox"])
def test_options_are_read_from_where_keycloak_reads_them(keycloak, tmp_path, tools):
    path = "/usr/bin:/bin"
    if tools == "those of busybox":
        path = str(tmp_path / "tools")
        (tmp_path / "tools").mkdir()
        subprocess.run([BUSYBOX, "--install", "-s", path], check=True)
    found = extract("a", collected(tmp_path, keycloak, path), {}).facts
    expected = {
        "version": "26.7.3",
        "java": 17,
        "heap_mb": 2048.0,
        "command": "start",
        "db": "postgres",  # kc.sh build
        "http_max_queued_requests": 700,  # the file
        "db_pool_min_size": 10,  # the environment, before the file
        "db_pool_max_size": 40,  # an argument
        "verbose_logs": ("DEBUG",),
        "metrics_enabled": False,
    }
    assert {name: found.values.get(f"keycloak.{name}") for name in expected} == expected
    assert found.roles >= {"keycloak"}
    origin = found.origins["keycloak.http_max_queued_requests"]
    assert (Path(origin.path).name, origin.line) == ("keycloak.conf", 5)
    assert "keycloak.db_pool_min_size" not in found.origins


def test_the_least_limit_of_the_control_groups_of_keycloak_is_read(keycloak, tmp_path):
    cgroups = tmp_path / "cgroups"
    for line in Path(f"/proc/{keycloak}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            group = cgroups / controllers / path.lstrip("/")
            group.mkdir(parents=True, exist_ok=True)
            name = "memory.limit_in_bytes" if controllers else "memory.max"
            (group / name).write_text("1073741824\n")
            if group != cgroups / controllers:
                (cgroups / controllers / name).write_text("max\n")
    document = collected(tmp_path, keycloak, cgroups=str(cgroups))
    assert document.pairs("keycloak")["memory_bytes"] == "1073741824"


@pytest.mark.parametrize(
    ("limit", "container", "heap_mb"),
    [
        ("", 0, 44800.0),
        ("", 1, None),
        ("1073741824", 0, 716.8),  # in a container of this host
        ("1073741824", 1, 716.8),
        ("9223372036854771712", 0, 44800.0),
    ],
)
def test_the_heap_is_a_share_of_what_the_control_group_allows(limit, container, heap_mb):
    sections = {
        "keycloak": f"pid=9\nheap_percent=70\nmemory_bytes={limit}\n",
        "memory": "MemTotal:       65536000 kB\n",
        "meta": f"container={container}\n",
    }
    values = extract("a", Document(sections), {}).facts.values
    assert values.get("keycloak.heap_mb") == heap_mb


def test_what_the_build_has_fixed_is_unknown_if_it_cannot_be_read(keycloak, tmp_path):
    (tmp_path / "keycloak" / "lib" / "quarkus" / "generated-bytecode.jar").unlink()
    found = extract("a", collected(tmp_path, keycloak), {}).facts
    assert "keycloak.db" not in found.values
    assert found.values["keycloak.db_pool_max_size"] == 40


def test_another_java_is_no_keycloak_and_its_arguments_stay(tmp_path):
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    code = "import sys; sys.stdin.read()"
    words = [java, "-c", code, f"-Djavax.net.ssl.keyStorePassword={SECRET}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=dict(os.environ)) as process:
        document = collected(tmp_path, process.pid)
        process.stdin.close()
    assert "keycloak" not in extract("a", document, {}).facts.roles
