"""Every error of a file, each with its line and what was meant."""

import json

import pytest


def with_workload(text, args="{}"):
    return (
        "version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario: {Dummy.openstack: "
        f"{args}}}\n  {text}\n"
    )


@pytest.mark.parametrize("value", ["a b", "caf\u00e9", "a/b", "a?b"])
def test_an_id_that_no_path_can_hold_names_its_argument(wrongs, value):
    workload = with_workload("runner: {serial: {}}").replace("Dummy.openstack: {}", "NAME: ARGS")
    arguments = f'{{project_id: "{value}"}}'
    text = workload.replace("NAME", "KeystoneBasic.create_user").replace("ARGS", arguments)
    assert wrongs(text) == [
        'task.yaml:5: scenario KeystoneBasic.create_user: "project_id" must be an id, as the '
        f'openstack command prints it, not "{value}"'
    ]
    arguments = f'{{list_role_kwargs: {{user_id: "{value}"}}}}'
    text = workload.replace("NAME", "KeystoneBasic.create_and_list_roles")
    [line] = wrongs(text.replace("ARGS", arguments))
    assert '"list_role_kwargs.user_id" must be an id' in line


def test_all_errors_of_a_file_are_listed(wrongs):
    assert wrongs(
        """\
version: 2
title: All wrong
tagz: [a]
subtasks:
  - title: One
    workloads:
      - scenario:
          KeystoneBasic.create_usr: {}
      - scenario:
          Authenticate.validate_nova:
            repetitons: 1
        runner:
          constant: {times: 0, concurency: 4}
  - title: Two
    scenario:
      KeystoneBasic.create_user: {enabled: "maybe"}
    contexts:
      users: {tenants: -1}
      roles: admin
    sla:
      failure_rate: {max: 101}
  - 7
"""
    ) == [
        'task.yaml:3: the task has no "tagz"; did you mean "tags"?',
        'task.yaml:8: no scenario "KeystoneBasic.create_usr"; '
        'did you mean "KeystoneBasic.create_user"?',
        'task.yaml:10: scenario Authenticate.validate_nova needs "repetitions"',
        'task.yaml:11: scenario Authenticate.validate_nova has no "repetitons"; '
        'did you mean "repetitions"?',
        'task.yaml:13: runner constant: "times" must be at least 1, not 0',
        'task.yaml:13: runner constant has no "concurency"; did you mean "concurrency"?',
        'task.yaml:16: scenario KeystoneBasic.create_user: "enabled" must be true or false, '
        'not "maybe"',
        'task.yaml:18: context users: "tenants" must be at least 1, not -1',
        'task.yaml:19: context roles must be a list, not "admin"',
        'task.yaml:21: sla failure_rate: "max" must be at most 100, not 101',
        "task.yaml:22: the subtask must be a mapping, not 7",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runner: {constant: {times: 2, concurrency: 3}}", "must be at most times, which is 2"),
        ("runner: {constant: {concurrency: 3}}", '"concurrency" must be at most times, which is 1'),
        ("runner: {constant: {times: ten}}", '"times" must be a whole number, not "ten"'),
        ("runner: {constant: {times: true}}", '"times" must be a whole number, not true'),
        ("runner: {constant: {timeout: null}}", '"timeout" must be a number, not nothing'),
        ("runner: {constant_for_duration: {}}", 'constant_for_duration needs "duration"'),
        ("runner: {constant_for_duration: {duration: 1, max_cpu_count: 1}}", "max_cpu_count"),
        ("runner: {rps: {times: 1}}", 'rps needs "rps"'),
        ("runner: {rps: {times: 1, rps: 0}}", '"rps" must be more than 0, not 0'),
        ("runner: {rps: {times: 1, rps: {start: 3, end: 2, step: 1}}}", "not be less than start"),
        ("runner: {rps: {times: 1, rps: {start: 1, end: 2}}}", 'needs "rps.step"'),
        ("runner: {rps: {times: 2.5, rps: 1}}", '"times" must be a whole number, not 2.5'),
        ("runner: {constant: {times: 2.0}}", '"times" must be a whole number, not 2.0'),
        ("runner: {serial: {times: 0}}", "must be at least 1"),
        ("runner: {constant: {times: 5000000000}}", '"times" must be at most 4,294,967,295, not 5'),
        (
            "runner: {constant: {times: 99999, concurrency: 70000}}",
            '"concurrency" must be at most 65,535, not 70000',
        ),
        (
            "runner: {constant_for_duration: {duration: 40000000}}",
            '"duration" must be at most 31,536,000, not 40000000',
        ),
        ("runner: {rps: {times: 9, rps: 1.0e-9}}", "would take more than a year for its times"),
        (
            "runner: {rps: {times: 1000000000, "
            "rps: {start: 1, end: 1000, step: 1, duration: 1000000000}}}",
            "would take more than a year for its times",
        ),
        ("runner: {constnt: {}}", 'no runner "constnt"; did you mean "constant"?'),
        ("runner: {constant: {}, rps: {}}", '"runner" must have only 1 in it, not 2'),
        ("runner: {constant: }", '"runner.constant" must be a mapping, not nothing'),
        ("contexts: {user: {}}", 'no context "user"; did you mean "users"?'),
        ("contexts: {users: {user_choice_method: all}}", "must be 'random' or 'round_robin'"),
        ("contexts: {users: {user_password: 1234}}", "not a value of type int"),
        ("contexts: {quotas: {nova: {cpus: 1}}}", "nova has no quota of cpus, only of instances"),
        ("contexts: {quotas: {glance: {}}}", "knows no quotas of glance"),
        ("contexts: {api_versions: {nova: {}}}", "needs version, service_type or service_name"),
        ("contexts: {api_versions: {nove: {version: 2}}}", "knows no client nove, only barbican"),
        ("contexts: {api_versions: {keystone: {version: 2}}}", "must be 3"),
        ("contexts: {volumes: {}}", "context volumes is Rally's, but Loadstone does not make it"),
        ("contexts: {users: {}, network: {start_cidr: ten}}", "not a network of IPv4"),
        ("contexts: {users: {}, network: {dualstack: true}}", "dualstack"),
        ("contexts: {users: {}, servers: {image: {name: a}}}", 'servers needs "flavor"'),
        (
            "contexts: {users: {}, servers: {image: {name: a}, flavor: {regex: '['}}}",
            '"flavor" has an invalid regex: unterminated character set',
        ),
        ("sla: {failure_rate: {}}", "needs min, max or both"),
        ("sla: {max_avg_duration: 0}", "must be more than 0, not 0"),
        ("sla: {max_avg_duration_per_atomic: {}}", "must have at least 1 in it, not 0"),
        ("sla: {outliers: {min_iterations: 2}}", "must be at least 3, not 2"),
        ("sla: {performance_degradation: {}}", 'needs "max_degradation"'),
        ("sla: {max_percentiles: {99: 1}}", "must be text"),
        ("sla: {max_percentiles: {p999: 1}}", "must look like"),
        ("sla:", '"sla" must be a mapping, not nothing'),
        ("hooks: [{action: {sys_call: ls}}]", 'needs "hooks[0].trigger"'),
        (
            'hooks: [{action: {sys_call: "a \'b"}, trigger: {event: {unit: time, at: [1]}}}]',
            "cannot be split into words: No closing quotation",
        ),
        (
            "hooks: [{action: {fault_injection: a}, trigger: {event: {unit: time, at: [1]}}}]",
            "is not a sentence like",
        ),
        (
            "hooks: [{action: {sys_call: a}, trigger: {event: {unit: iteration, at: [0]}}}]",
            "iterations are counted from 1",
        ),
        (
            "hooks: [{action: {sys_call: a}, trigger: {event: {unit: time, at: [1, 1]}}}]",
            "names a moment twice",
        ),
        (
            "hooks: [{action: {sys_call: a}, trigger: {periodic: {unit: day, step: 1}}}]",
            "must be 'time' or 'iteration'",
        ),
    ],
)
def test_a_bad_setting_is_refused_in_words(text, words, wrongs):
    said = wrongs(with_workload(text))
    assert len(said) == 1
    assert words in said[0]
    assert said[0].startswith("task.yaml:6: ")


def test_a_password_of_the_wrong_type_is_not_shown(wrongs):
    assert "123456" not in wrongs(with_workload("contexts: {users: {user_password: 123456}}"))[0]


def test_a_password_in_a_url_is_refused_and_not_shown(wrongs):
    arguments = "{url: 'http://ann:123456@h/', method: GET, status_code: 200}"
    (said,) = wrongs(f"HttpRequests.check_request: [{{args: {arguments}}}]")
    assert "without credentials" in said
    assert "123456" not in said


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("Dummy.dumy: {}", 'no scenario "Dummy.dumy"; did you mean "Dummy.dummy"?'),
        ("Dummy.dummy@openstack: {}", "scenario Dummy.dummy is of default, not of openstack"),
        ("Mine.own: {}", "choose from Authenticate.*, Dummy.*, HttpRequests.*, KeystoneBasic.*"),
        ("CinderVolumes.create_volume: {size: 1}", "is Rally's, but Loadstone does not run it"),
        ("SaharaJob.create_launch_job: {}", "is Rally's, but Loadstone does not run it"),
        (
            "NovaServers.resize_server: {}",
            "is Rally's, but Loadstone does not run it; choose from NovaServers.boot_and_delete",
        ),
        ("NovaServers.boot_servr: {}", 'did you mean "NovaServers.boot_server"?'),
        (
            "NeutronNetworks.create_and_list_networks: {network_create_args: {name: ours}}",
            '"network_create_args.name" must be left out: a fixed name (ours) would be taken',
        ),
        (
            "NovaServers.boot_server: {image: {}, flavor: {name: m1.tiny}}",
            '"image" needs id, name or regex',
        ),
        ("KeystoneBasic.create_tenant_with_users: {}", 'needs "users_per_tenant"'),
        ("Authenticate.validate_nova: {repetitions: 0}", "must be at least 1, not 0"),
        ("Dummy.dummy: {sleep: long}", '"sleep" must be a number, not "long"'),
        ("KeystoneBasic.create_user: {tenant_id: x}", 'has no "tenant_id"; choose from '),
        (
            "KeystoneBasic.create_and_update_user: {create_user_kwargs: {enable: true}}",
            'has no "create_user_kwargs.enable"; did you mean "enabled"?',
        ),
        ("KeystoneBasic.create_user: {username: ann}", "a fixed name (ann) would be taken"),
        (
            "KeystoneBasic.create_and_update_user: {update_user_kwargs: {name: ann}}",
            '"update_user_kwargs.name" must be left out: a fixed name (ann) would be taken',
        ),
        (
            "HttpRequests.check_request: {url: 'ftp://x', method: GET, status_code: 200}",
            '"url" must be http(s)://HOST[:PORT]/PATH',
        ),
        (
            "HttpRequests.check_request: {url: 'http://x:99999', method: GET, status_code: 200}",
            '"url" must be http(s)://HOST[:PORT]/PATH',
        ),
        (
            "HttpRequests.check_random_request: {requests: [{url: x, data: y}], status_code: 200}",
            '"requests[0].url" must be http(s)://HOST[:PORT]/PATH',
        ),
        ("Authenticate.keystone: {x: 1}", 'has no "x"; it takes no settings'),
        ("Authenticate.keystone:", "must be a mapping, not nothing"),
        ("isue: {}", 'no scenario "isue"; did you mean "issue"?'),
        ("oidc-logn: {}", 'did you mean "oidc-login"?'),
        ("issue: {x: 1}", 'scenario issue has no "x"; it takes no settings'),
        ("oidc-login@openstack: {}", "scenario oidc-login is of oidc, not of openstack"),
        ("mix:issue=1,valdate=1: {}", "no scenario 'valdate'; did you mean 'validate'?"),
        ("mix:issue=1,oidc-login=1: {}", "oidc-login is of OpenID Connect, and the others are not"),
    ],
)
def test_a_bad_scenario_is_refused_in_words(scenario, words, wrongs):
    said = wrongs(f"version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario:\n    {scenario}\n")
    assert len(said) == 1
    assert words in said[0]
    assert said[0].startswith("task.yaml:6: ")


@pytest.mark.parametrize(
    "name", ["issue", "user-life@openstack", "mix:issue=1,validate=9", "oidc-login", "s3"]
)
def test_a_scenario_may_have_its_name_on_the_command_line(name, good):
    checked = good(f"{json.dumps(name)}: [{{runner: {{type: constant, times: 3}}}}]")
    (workload,) = (one for subtask in checked.task.subtasks for one in subtask.workloads)
    assert workload.scenario.name == name.partition("@")[0]


def test_contexts_do_not_go_with_scenarios_of_a_provider(wrongs):
    text = "version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario: {oidc-login: {}}\n"
    (said,) = wrongs(f"{text}  contexts: {{users: {{}}}}\n")
    assert said.startswith("task.yaml:6: scenario oidc-login takes no context users")


def test_roles_without_users_are_refused(wrongs):
    text = "version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario: {Dummy.dummy: {}}\n"
    said = wrongs(text + "  contexts: {roles: [a]}\n")
    assert said == ["task.yaml:6: context roles needs the context users, too"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "task.yaml:1: not a task: it is empty"),
        ("- a", "task.yaml:1: not a task: it is not a mapping"),
        ("version: 3", "task.yaml:1: no such version: 3; use version 2, or no version"),
        ("version: 2", 'task.yaml:1: the task needs "title"'),
        ("Dummy.dummy: 3", '"Dummy.dummy" must be a list, not 3; a task of version 2 begins'),
        ("Dummy.dummy: [{arg: 1}]", 'the workload has no "arg"; did you mean "args"?'),
        ("Dummy.dummy: [{runner: {times: 1}}]", 'the workload needs "runner.type"'),
        ("Dummy.dummy:\n- {args: {d: 2020-01-01}}", "is read as a date or as bytes"),
        ("Dummy.dummy:\n- {args: {d: {2020-01-01: 1}}}", "task.yaml:2: is read as a date or as"),
    ],
)
def test_a_bad_outline_is_refused_in_words(text, words, wrongs):
    assert words in wrongs(text)[0]


@pytest.mark.processes
def test_errors_in_loops_and_includes_name_their_file(wrongs, write):
    write("  - title: Part\n    scenario: {Dummy.dumy: {}}\n", "parts/part.yaml")
    said = wrongs(
        """\
version: 2
title: T
subtasks:
{%- for times in [1, 0] %}
  - title: Turn {{ times }}
    scenario: {Dummy.dummy: {}}
    runner:
      constant: {times: {{ times }}}
{%- endfor %}
{% include "parts/part.yaml" %}
"""
    )
    assert said == [
        'parts/part.yaml:2: no scenario "Dummy.dumy"; did you mean "Dummy.dummy"?',
        'task.yaml:8: runner constant: "times" must be at least 1, not 0',
    ]


def test_an_sla_section_without_failure_rate_is_warned_of(good):
    checked = good(with_workload("sla: {max_avg_duration: 3}"))
    assert [warning.line for warning in checked.warnings] == [6]
    assert "it can pass when every iteration fails" in checked.warnings[0].message
    assert good(with_workload("description: no sla")).warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runner: {serial: {times: 2, concurrency: 2}}", "serial takes only times"),
        ("group: abc", "group means nothing"),
        ("sla: {failure_rate: {min: 5, max: 1}}", "this rule never holds: its min is above its"),
        (
            "hooks: [{action: {sys_call: a}, trigger: {periodic: {unit: time, step: 1, start: 9, "
            "end: 2}}}]",
            "this hook never runs: its end comes before its start",
        ),
    ],
)
def test_what_means_nothing_is_warned_of(text, words, good):
    assert words in good(with_workload(text)).warnings[0].message


def test_redirects_that_the_file_asks_for_are_warned_of(good):
    request = "url: http://h/, method: GET"
    checked = good(
        f"""\
HttpRequests.check_request:
- args: {{{request}, status_code: 200}}
- args: {{{request}, status_code: 200, allow_redirects: false}}
- args: {{{request}, status_code: 200, allow_redirects: true}}
HttpRequests.check_random_request:
- args:
    status_code: 200
    requests:
    - {{{request}}}
    - {{{request}, allow_redirects: true}}
"""
    )
    assert [warning.line for warning in checked.warnings] == [4, 10]
    assert "redirects are not followed" in checked.warnings[0].message


@pytest.mark.parametrize("requests", ["null", "5", "[a]", "{a: 1}"])
def test_requests_of_a_scenario_that_sends_one_need_not_be_a_list(requests, good):
    request = f"url: http://h/, method: GET, status_code: 200, requests: {requests}"
    assert good(f"HttpRequests.check_request:\n- args: {{{request}}}\n").warnings == ()


def test_thousands_of_errors_are_counted_and_not_all_shown(wrongs):
    said = wrongs("".join(f"scenario{i}: 1\n" for i in range(5000)))
    assert len(said) == 201
    assert said[-1] == "and 4,800 more"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "version: 2\ntitle: T\nsubtasks: []\n",
            'task.yaml:3: the task: "subtasks" must have at least 1 in it, not 0',
        ),
        (
            "Dummy.dummy: []\n",
            'task.yaml:1: the task (old form): "Dummy.dummy" must have at least 1 in it, not 0; '
            'a task of version 2 begins with "version: 2"',
        ),
    ],
)
def test_a_task_without_a_workload_is_refused(wrongs, text, line):
    assert wrongs(text) == [line]
