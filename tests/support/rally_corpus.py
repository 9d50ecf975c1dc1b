"""Task files of the shapes that operators have, good and bad, with their template arguments."""

MACROS = """
{%- macro users(tenants, existing) -%}
{%- if existing and caller is not defined -%} {}
{%- else %}
          users: {tenants: {{ tenants }}}
  {%- if caller is defined %}
    {{ caller() }}
  {%- endif %}
{%- endif %}
{%- endmacro %}
{%- macro steady(concurrency=1, times=1, smoke=True) %}
          constant:
            concurrency: {{ 1 if smoke else concurrency }}
            times: {{ 1 if smoke else times }}
{%- endmacro %}
"""
SCENARIOS = """
  - title: "Tokens"
    workloads:
      - scenario: {Authenticate.keystone: {}}
        contexts:
          {{ users(tenants, existing) }}
        runner:
          {{ steady(concurrency=min(50, 7*nodes), times=min(200, 67*nodes), smoke=smoke) }}
      - scenario: {KeystoneBasic.create_user: {}}
        contexts:
          {% call users(tenants, existing) %}
          roles: [reader]
          {% endcall %}
        runner:
          {{ steady(smoke=smoke) }}
"""
BIG = """---
{%- set services = services|default(["keystone"]) %}
{%- set smoke = smoke|default(false) %}
{%- set nodes = nodes|default(3) %}
{%- set tenants = tenants|default(2) %}
{%- set existing = existing|default(false) %}
{%- from "macro/macro.yaml" import users, steady %}
version: 2
title: "Certification"
subtasks:
{% if "keystone" in services %}
{%- include "scenario/keystone.yaml" -%}
{% endif %}
"""
INCLUDES = {"macro/macro.yaml": MACROS, "scenario/keystone.yaml": SCENARIOS}

OLD = """
{"KeystoneBasic.create_user": [
  {"args": {"enabled": false},
   "runner": {"type": "constant", "times": 10, "concurrency": 2},
   "context": {"users": {"tenants": 2, "users_per_tenant": 3}},
   "sla": {"failure_rate": {"max": 0}},
   "hooks": [{"name": "sys_call", "args": "echo 'a b'",
              "trigger": {"name": "event", "args": {"unit": "iteration", "at": [2, 4]}}}]},
  {}
]}
"""
NEW = """
version: 2
title: Old in its new form
subtasks:
  - title: KeystoneBasic.create_user
    workloads:
      - scenario: {KeystoneBasic.create_user@openstack: {enabled: false}}
        runner: {constant: {times: 10, concurrency: 2}}
        contexts: {users@openstack: {tenants: 2, users_per_tenant: 3}}
        sla: {failure_rate: {max: 0}}
        hooks:
          - action: {sys_call: "echo 'a b'"}
            trigger: {event: {unit: iteration, at: [2, 4]}}
      - scenario: {KeystoneBasic.create_user: {}}
"""
HEAD = "version: 2\ntitle: T\nsubtasks:\n- title: S\n  scenario: {Dummy.dummy: {}}\n"
TEMPLATE = """
{% set times = times or 10 %}
Dummy.dummy:
{% for c in [1, 2] %}
  - args: {{ args }}
    runner: {type: constant, times: {{ times }}, concurrency: {{ max(c, ceil(0.3)) }}}
{% endfor %}
"""

# Name -> text, and template arguments as they are given on the command line.
GOOD = {
    "big": (BIG, None),
    "big, small": (BIG, '{"smoke": true, "existing": true}'),
    "big, nothing": (BIG, "services=glance,nodes=1"),
    "old": (OLD, None),
    "new": (NEW, None),
    "template": (TEMPLATE, '{"times": 4, "args": {"sleep": 0.1, "deep": [{"a": true}, null]}}'),
    "words": ("Dummy.dummy: [{args: {a: yes, b: 017, c: 1:30, d: ~, e: 1_000, f: 1e3}}]", None),
    "serial with more": (HEAD + "  runner: {serial: {times: 2, concurrency: 2}}", None),
    "ramp": (HEAD + "  runner: {rps: {times: 9, rps: {start: 1, end: 3, step: 1}}}", None),
    "duration 0": (HEAD + "  runner: {constant_for_duration: {duration: 0}}", None),
    "slas": (
        HEAD + "  sla: {failure_rate: {min: 1}, max_seconds_per_iteration: 4, max_avg_duration: 1,"
        " max_avg_duration_per_atomic: {a: 1}, outliers: {}, performance_degradation:"
        " {max_degradation: 1}}",
        None,
    ),
}
BAD = {
    "missing argument": (TEMPLATE, "times=4"),
    "missing arguments": ("a: {{ b }} {{ c }}", None),
    "duplicate key": ("a: 1\na: 2", None),
    "merge key": ("a: &x {b: 1}\nc:\n  <<: *x", None),
    "no yaml": ("a: [", None),
    "no template": ("a: {% if %}", None),
    "no file": ('{% include "none.yaml" %}', None),
    "arguments that are a word": (TEMPLATE, "word"),
    "no task": ("- a", None),
    "no version": ("version: 3", None),
    "no title": ("version: 2\nsubtasks: []", None),
    "unknown key": (HEAD + "  runnr: {}", None),
    "two scenarios": (HEAD + "- {title: S, scenario: {Dummy.dummy: {}, Dummy.failure: {}}}", None),
    "empty sla": (HEAD + "  sla:", None),
    "old with an unknown key": ("Dummy.dummy: [{arg: {}}]", None),
    "concurrency": (HEAD + "  runner: {constant: {times: 2, concurrency: 3}}", None),
    "times 0": (HEAD + "  runner: {constant: {times: 0}}", None),
    "times in words": (HEAD + "  runner: {constant: {times: ten}}", None),
    "null": (HEAD + "  runner: {constant: {timeout: null}}", None),
    "ramp down": (HEAD + "  runner: {rps: {times: 9, rps: {start: 3, end: 1, step: 1}}}", None),
    "rps 0": (HEAD + "  runner: {rps: {times: 9, rps: 0}}", None),
    "processes": (
        HEAD + "  runner: {constant_for_duration: {duration: 1, max_cpu_count: 1}}",
        None,
    ),
    "failure rate": (HEAD + "  sla: {failure_rate: {max: 101}}", None),
    "empty failure rate": (HEAD + "  sla: {failure_rate: {}}", None),
    "mean 0": (HEAD + "  sla: {max_avg_duration: 0}", None),
    "outliers": (HEAD + "  sla: {outliers: {min_iterations: 2}}", None),
}
