"""Facts of a web server whose settings could be read only in part, or not at all."""

import pytest
from audited import CONTEXT, document

from loadstone.audit import rule as rules
from loadstone.audit.document import Document
from loadstone.audit.evaluate import RuleState, evaluate
from loadstone.audit.extract import extract
from loadstone.audit.facts import SettingOrigin

INI = "/etc/keystone/uwsgi.ini"
OF_SETTINGS = ("WEB-02", "WEB-04", "WEB-06", "WEB-07", "WEB-09")


def uwsgi_with(workers, *arguments):
    """Return the lines of a uWSGI master and its workers."""
    words = "\t".join(("/usr/bin/uwsgi", *arguments))
    rows = [f"900\t1\t60000\t1\t65536\tuwsgi\t{words}\n"]
    rows += [f"{901 + n}\t900\t120000\t1\t65536\tuwsgi\t{words}\n" for n in range(workers)]
    return "".join(rows)


def facts_of(processes, files):
    sections = {**document().sections, "processes": processes, "uwsgi": files}
    return extract("a", Document(sections), CONTEXT)


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        (("--ini", INI), f"@ {INI}\n! cannot be read by uid 1000\n"),
        (("--ini", "keystone.ini"), "@ keystone.ini\n! cannot be read by uid 1000\n"),
        (("--yaml", "/etc/keystone/uwsgi.yaml"), ""),
        (("/etc/keystone/uwsgi.yml",), ""),
        (("--json=/etc/keystone/uwsgi.json",), f"@ {INI}\n1\t[uwsgi]\n2\tprocesses = 1\n"),
        (("--module", "keystone.server.wsgi:initialize_public_application()"), ""),
    ],
)
def test_settings_that_were_not_read_are_unknown_and_no_defaults(arguments, files):
    host = facts_of(uwsgi_with(8, *arguments), files)
    assert host.facts.values["web.processes"] == 8  # as many as run
    results = {r.rule.id: r.state for r in evaluate(rules.select(()), [host]).results}
    assert results["WEB-01"] is RuleState.PASS
    assert {results[rule] for rule in OF_SETTINGS} == {RuleState.UNKNOWN}
    assert "uwsgi.file" not in host.facts.values  # the playbook changes nothing


@pytest.mark.parametrize("computed", ["%k", "$(WORKERS)", "%(workers)"])
def test_processes_that_uwsgi_computes_are_those_that_run(computed):
    text = f"@ {INI}\n1\t[uwsgi]\n2\tprocesses = {computed}\n3\tthreads = $(N)\n4\tlisten = $(L)\n"
    facts = facts_of(uwsgi_with(6, "--ini", INI), text).facts
    assert facts.values["web.processes"] == 6
    assert facts.values["uwsgi.harakiri"] == 0
    assert "threads = $(N)" in facts.missing["web.threads"]
    assert "listen = $(L)" in facts.missing["uwsgi.listen"]


def test_processes_of_the_command_line_count_where_the_file_is_not_read():
    words = ("--processes", "4", "--ini=/etc/keystone/uwsgi.ini")
    facts = facts_of(uwsgi_with(1, *words), f"@ {INI}\n! cannot be read by uid 1000\n").facts
    assert facts.values["web.processes"] == 4
    assert "cannot be read" in facts.missing["web.threads"]


HTTPD = "900\t1\t60000\t1\t65536\tapache2\t/usr/sbin/apache2\n"
EVENT = "LoadModule mpm_event_module /usr/lib/mod_mpm_event.so\n"
DAEMON = "WSGIDaemonProcess keystone processes=4 threads=2 maximum-requests=100\n"
SCRIPT = "WSGIScriptAlias / /usr/bin/keystone-wsgi-public\n"
HORIZON = "WSGIDaemonProcess horizon processes=3 threads=10\nWSGIProcessGroup horizon\n"
BLOCKS = """<IfModule mpm_event_module>
MaxConnectionsPerChild 0
MaxRequestWorkers 400
</IfModule>
<IfModule !mpm_event_module>
MaxConnectionsPerChild 10
</IfModule>
<IfModule mpm_prefork_module>
MaxConnectionsPerChild 4000
MaxRequestWorkers 10
</IfModule>
"""


def apache_with(**files):
    named = {f"/etc/apache2/{name}.conf": text for name, text in files.items()}
    return extract("a", document({"processes": HTTPD, "uwsgi": {}, "apache": named}), CONTEXT)


def state(rule, host):
    (result,) = evaluate([rules.find(rule)], [host]).results
    return result.state


def test_what_replaces_daemons_of_apache_is_their_own_limit():
    host = apache_with(mpm=EVENT, keystone=DAEMON + "WSGIProcessGroup keystone\n" + SCRIPT)
    assert host.facts.values["web.max_requests"] == 100
    assert state("WEB-09", host) is RuleState.FAIL
    few = apache_with(
        mpm=EVENT + "MaxConnectionsPerChild 10\n",
        keystone=DAEMON.replace("100", "0") + "WSGIProcessGroup keystone\n" + SCRIPT,
    )
    assert state("WEB-09", few) is RuleState.PASS
    embedded = apache_with(mpm=EVENT + "MaxConnectionsPerChild 10\n", keystone=SCRIPT)
    assert state("WEB-09", embedded) is RuleState.FAIL


def test_the_memory_of_a_worker_is_that_of_keystones_own_daemons():
    rows = (
        "901\t900\t400000\t1\t65536\tapache2\t(wsgi:horizon)     -k start\n"
        "902\t900\t153600\t1\t65536\tapache2\t(wsgi:keystone-pu -k start\n"
    )
    text = (DAEMON + "WSGIProcessGroup keystone\n").replace("keystone", "keystone-public") + SCRIPT
    changes = {
        "processes": HTTPD + rows,
        "uwsgi": {},
        "apache": {"/etc/apache2/keystone.conf": EVENT + text},
    }
    facts = extract("a", document(changes), CONTEXT).facts
    assert facts.values["web.worker_mb"] == 150
    assert facts.values["web.live_processes"] == 1


def test_the_groups_of_both_endpoints_count():
    public = (DAEMON + "WSGIProcessGroup keystone\n").replace("keystone", "keystone-public")
    admin = "WSGIDaemonProcess keystone-admin processes=2 threads=4\n"
    alias = SCRIPT.strip().replace("public", "admin") + " process-group=keystone-admin\n"
    host = apache_with(mpm=EVENT, keystone=public + SCRIPT + admin + alias + HORIZON)
    assert host.facts.values["web.processes"] == 4 + 2
    assert host.facts.values["web.threads"] == 4
    assert host.facts.values["web.max_requests"] == 100
    alone = apache_with(mpm=EVENT, keystone=public + SCRIPT + alias)
    assert not alone.facts.knows("web.processes")
    assert alone.facts.missing["web."] == "no WSGIDaemonProcess keystone-admin was found"


def test_processes_of_a_group_that_a_variable_sets_make_the_sum_unknown():
    public = "WSGIDaemonProcess keystone-public processes=4\nWSGIProcessGroup keystone-public\n"
    admin = "WSGIDaemonProcess keystone-admin processes=${N}\nWSGIProcessGroup keystone-admin\n"
    for text in (public + admin, admin + public):
        facts = apache_with(mpm=EVENT, keystone=text + SCRIPT).facts
        assert "processes=${N}" in facts.missing["web.processes"]
        assert facts.values["web.threads"] == 15


def test_blocks_of_an_mpm_that_is_not_loaded_do_not_count():
    host = apache_with(mpm=EVENT, limits=BLOCKS, keystone=SCRIPT)
    assert host.facts.values["apache.max_connections_per_child"] == 0
    assert host.facts.values["apache.max_request_workers"] == 400


@pytest.mark.parametrize(
    ("keystone", "mode"),
    [
        (SCRIPT, "embedded"),
        (DAEMON + SCRIPT, "embedded"),
        (DAEMON + "WSGIProcessGroup %{GLOBAL}\n" + SCRIPT, "embedded"),
        (DAEMON + "WSGIProcessGroup keystone\n" + SCRIPT, "daemon"),
        (DAEMON + SCRIPT.strip() + " process-group=keystone\n", "daemon"),
        ("ProxyPass /identity unix:/run/keystone.sock|uwsgi://k/\n", "proxy"),
        ("ProxyPass /keystone http://127.0.0.1:35000/\n", "proxy"),
        ("ProxyPassMatch ^/keystone(/.*)$ http://127.0.0.1:35000$1\n", "proxy"),
    ],
)
def test_the_mode_is_that_of_keystone_and_no_other_application(keystone, mode):
    host = apache_with(mpm=EVENT, horizon=HORIZON, keystone=keystone)
    assert host.facts.values["apache.mode"] == mode
    expected = {"daemon": 4}.get(mode)
    assert host.facts.values.get("web.processes") == expected


def test_a_file_that_is_no_settings_hides_none():
    words = ("--ini", INI, "--touch-reload", "/etc/keystone/policy.yaml", "--env", "P=/p.json")
    host = facts_of(uwsgi_with(4, *words), f"@ {INI}\n1\t[uwsgi]\n2\tprocesses = 4\n")
    assert host.facts.values["uwsgi.listen"] == 100
    assert host.facts.values["web.threads"] == 1


def test_a_uwsgi_without_settings_has_its_defaults():
    words = ("--http-socket", ":5000", "--wsgi-file", "/usr/bin/keystone-wsgi-public")
    facts = facts_of(uwsgi_with(1, *words), "").facts
    assert (facts.values["web.processes"], facts.values["uwsgi.master"]) == (1, False)


SET = "[uwsgi]\nmodule = keystone.server.wsgi:initialize_public_application()\nprocesses = 2\n"


@pytest.mark.parametrize(
    ("arguments", "processes", "line"),
    [
        (("--ini", INI, "--processes", "6"), 6, None),
        ((f"--ini={INI}", "--workers=6"), 6, None),
        (("--ini", INI, "-p", "6"), 6, None),
        (("--processes", "6", "--ini", INI), 2, 3),
        (("--master", INI, "--processes", "6"), 2, 3),  # read after all options
    ],
)
def test_the_last_of_uwsgis_files_and_arguments_counts(arguments, processes, line):
    text = "".join(f"{n}\t{one}\n" for n, one in enumerate(SET.splitlines(), 1))
    facts = facts_of(uwsgi_with(6, *arguments), f"@ {INI}\n{text}").facts
    assert facts.values["web.processes"] == processes
    assert facts.values["uwsgi.master"] is ("--master" in arguments)
    origin = facts.origins.get("web.processes")
    assert (origin and origin.line) == line


@pytest.mark.parametrize(
    "short",
    [
        ("-M", "-p", "4", "-l", "2048", "-b", "65535"),
        ("-LMp", "4", "-l2048", "-ib65535"),
        ("-s/run/p1.sock", "-Mp4", "-l", "2048", "-b65535"),
    ],
)
def test_short_options_and_what_options_imply_are_read(short):
    words = (*short, "--threads", "1", "--lazy-apps")
    facts = facts_of(uwsgi_with(4, *words, "--mount=/=keystone.wsgi"), "").facts
    assert facts.values["uwsgi.master"] is True
    assert facts.values["web.processes"] == 4
    assert facts.values["uwsgi.listen"] == 2048
    assert facts.values["uwsgi.buffer_size"] == 65535
    assert facts.values["uwsgi.enable_threads"] is True  # by --threads
    assert facts.values["uwsgi.lazy_apps"] is True


def test_the_processes_of_several_instances_add_up_and_the_worst_setting_counts():
    other = "/etc/keystone/admin.ini"
    second = uwsgi_with(1, "--ini", other).replace("90", "95")
    extra = "lazy-apps = true\nlisten = {}\nmaster = true\n"
    files = "".join(
        f"@ {path}\n" + "".join(f"{n}\t{one}\n" for n, one in enumerate(text.splitlines(), 1))
        for path, text in (
            (INI, SET + extra.format(2048)),
            (other, SET.replace("= 2", "= 1") + extra.format(100)),
        )
    )
    facts = facts_of(uwsgi_with(2, "--ini", INI) + second, files).facts
    assert (facts.values["web.processes"], facts.values["web.live_processes"]) == (3, 3)
    assert facts.values["uwsgi.processes"] == 2
    assert facts.values["uwsgi.listen"] == 100
    assert facts.origins["uwsgi.listen"] == SettingOrigin(other, 5)
    unread = files[: files.index(f"@ {other}")] + f"@ {other}\n! cannot be read by uid 1000\n"
    half = facts_of(uwsgi_with(2, "--ini", INI) + second, unread).facts
    assert "uwsgi.listen" not in half.values
    assert "cannot be read" in half.missing["uwsgi."]


def test_a_uwsgi_under_an_emperor_is_found():
    emperor = "800\t1\t9000\t1\t65536\tuwsgi\t/usr/bin/uwsgi\t--emperor\t/etc/uwsgi/vassals\n"
    vassal = uwsgi_with(4, "--ini", INI).replace("900\t1\t", "900\t800\t")
    text = "".join(f"{n}\t{one}\n" for n, one in enumerate(SET.splitlines(), 1))
    facts = facts_of(emperor + vassal, f"@ {INI}\n{text}").facts
    assert facts.values["web.processes"] == 2
    assert facts.values["web.live_processes"] == 4


def test_an_application_of_others_is_no_keystone():
    row = "900\t1\t60000\t1\t65536\tgunicorn\t/usr/bin/python3\t/usr/bin/gunicorn\t"
    for application in ("skyline.main:app", "openstack_dashboard.wsgi"):
        other = facts_of(f"{row}--workers\t1\t{application}\n", "")
        assert "web.server" not in other.facts.values
    own = facts_of(f"{row}--workers\t4\tkeystone.server.wsgi:application\n", "")
    assert own.facts.values["web.processes"] == 4


def test_the_only_python_server_of_a_host_of_keystone_may_name_no_application():
    words = "60000\t1\t65536\tgunicorn\t/usr/bin/python3\t/usr/bin/gunicorn\t"
    row = f"900\t1\t{words}-c\t/etc/gunicorn.conf.py\t"
    for application in ("wsgi:application\n", "--bind\tunix:/run/a.sock\n", "python:conf\twsgi\n"):
        worker = f"901\t900\t{words}{application}"
        values = facts_of(row + application + worker, "").facts.values
        assert (values["web.server"], values["web.processes"]) == ("gunicorn", 1)
    other = f"910\t1\t{words}skyline.main:app\n"
    both = facts_of(f"{row}wsgi:application\n{other}", "").facts
    assert "web.server" not in both.values
    assert "gunicorn (process 900)" in both.missing["web."]


def test_the_workers_of_several_gunicorns_add_up():
    words = "gunicorn\t/usr/bin/python3\t/usr/bin/gunicorn\tkeystone.server.wsgi:application\t"
    rows = (
        f"900\t1\t60000\t1\t65536\t{words}--workers\t2\n",
        f"901\t900\t102400\t1\t65536\t{words}--workers\t2\n",
        f"910\t1\t60000\t1\t65536\t{words}--threads\t3\n",
        f"911\t910\t90000\t1\t65536\t{words}--threads\t3\n",
    )
    values = facts_of("".join(rows), "").facts.values
    assert (values["web.processes"], values["web.threads"]) == (3, 3)
    assert (values["web.live_processes"], values["web.worker_mb"]) == (2, 100)


@pytest.mark.parametrize(
    ("server", "arguments", "threads"),
    [
        ("gunicorn", "--workers\t2", 1),
        ("gunicorn", "-c\t/etc/gunicorn.conf.py\t--threads\t3", 3),
        ("gunicorn", "-c\t/etc/gunicorn.conf.py", None),
        ("granian", "--threads\t2\t--blocking-threads\t8", 8),
        ("granian", "--workers\t2", None),  # 1024 // 2 // 2 in granian 2.8
    ],
)
def test_threads_that_a_python_server_does_not_show_are_unknown(server, arguments, threads):
    words = f"{server}\t/usr/bin/python3\t/usr/bin/{server}\tkeystone.server.wsgi:application"
    host = facts_of(f"900\t1\t60000\t1\t65536\t{words}\t{arguments}\n", "")
    assert host.facts.values.get("web.threads") == threads
    is_unknown = state("WEB-02", host) is RuleState.UNKNOWN
    assert is_unknown is (threads is None)


def test_threads_of_a_gunicorn_that_has_changed_its_title_are_unknown():
    title = "gunicorn: master [keystone.server.wsgi:application]"
    row = f"900\t1\t60000\t1\t65536\tgunicorn: maste\t{title}\n"
    facts = facts_of(row + row.replace("900\t1\t", "901\t900\t"), "").facts
    assert (facts.values["web.server"], facts.values["web.processes"]) == ("gunicorn", 1)
    assert "title" in facts.missing["web.threads"]
    assert "capacity.db_connections" not in facts.values


@pytest.mark.parametrize(
    ("limits", "cpus", "memory_mb", "logins_per_s"),
    [
        ("", 64, 64000, 40.0),
        ("cpu 200000 100000\nmemory 1073741824\n", 2, 1024, 10.0),
        ("cpu 800000 100000\ncpu 150000 100000\nmemory 9223372036854771712\n", 2, 64000, 7.5),
    ],
)
def test_the_limits_of_keystones_container_count_on_its_host(limits, cpus, memory_mb, logins_per_s):
    changes = {
        "cpu": {"cpus": 64, "allowed": "0-63"},
        "memory": "MemTotal: 65536000 kB\n",
        "service": {"password": {"verify_ms": 200.0}},
        "limits": limits,
    }
    host = extract("a", document(changes), CONTEXT)
    values = host.facts.values
    assert (values["host.cpus"], values["host.memory_mb"]) == (64, 64000)
    assert (values["web.cpus"], values["web.memory_mb"]) == (cpus, memory_mb)
    assert values["capacity.logins_per_s"] == pytest.approx(logins_per_s)
    assert state("WEB-01", host) is (RuleState.FAIL if cpus == 64 else RuleState.PASS)
    assert state("WEB-03", host) is (RuleState.PASS if memory_mb > 2000 else RuleState.FAIL)
