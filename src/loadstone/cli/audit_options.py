"""Options of an audit: its hosts and its rules."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.choose import added, once, refuse_given
from loadstone.cli.duration import Number

if TYPE_CHECKING:
    from loadstone.audit.evaluate import Audit
    from loadstone.audit.facts import HostFacts, Value
    from loadstone.audit.transport import Collected, Host
    from loadstone.store.location import StoreLocation

CONTAINERS = ("docker", "podman", "kubectl")
SOURCES = ("lab", "hosts", "inventory", *CONTAINERS)
_NO_BECOME = "is for hosts over ssh and this machine, not for"
_FILE = click.Path(path_type=Path)
host_options = added(
    once("--lab", metavar="NAME", help="Deployment started by `loadstone lab up NAME`."),
    click.option(
        "--host", "hosts", multiple=True, help="Host over ssh ([USER@]HOST); may be repeated."
    ),
    click.option("--inventory", type=_FILE, help="List of hosts, or an Ansible inventory."),
    click.option(
        "--docker", multiple=True, metavar="NAME", help="Docker container; may be repeated."
    ),
    click.option(
        "--podman", multiple=True, metavar="NAME", help="Podman container; may be repeated."
    ),
    click.option(
        "--kubectl", multiple=True, metavar="POD", help="Kubernetes pod; may be repeated."
    ),
    click.option("--ssh-config", type=_FILE, help="Use this file instead of ~/.ssh/config."),
    click.option(
        "--become",
        is_flag=True,
        help="Read hosts over ssh, or this machine, as root (needs sudo without a password).",
    ),
    click.option(
        "--via",
        type=click.Choice(["ssh", "ansible"]),
        default="ssh",
        help="How hosts of --inventory are reached. ansible uses the inventory's own connections, "
        "become and vault (pip install ansible-core ansible-runner).",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=Number(min=1, max=600),
        default=60.0,
        help="Time limit for each host, seconds. A host that takes longer is reported as unknown.",
    ),
)


def run_audit(files: tuple[Path, ...], options: Mapping[str, Any]) -> "Audit":
    """Collect or read facts, and evaluate the rules on them, as `audit check` is asked to."""
    import datetime as dt

    from loadstone.audit import archive, rule, waivers
    from loadstone.audit.evaluate import evaluate
    from loadstone.audit.transport import distinct
    from loadstone.errors import InvalidInput

    chosen = rule.select(options["packs"])
    if options["only"]:
        chosen = tuple(rule.find(name) for name in options["only"])
    accepted = waivers.read(options["waivers"]) if options["waivers"] else ()
    if files and _sources(options):
        raise InvalidInput("name files of facts, or hosts to collect from, not both")
    if files:
        read = [archive.read(path) for path in files]
        found = tuple(one for hosts, _ in read for one in hosts)
        is_lab = all(of_lab for _, of_lab in read)
    else:
        found, is_lab = collect_hosts(options), options["lab"] is not None
    hosts = _facts(distinct(found), options, is_lab=is_lab)
    today = dt.datetime.now().astimezone().date()
    return _with_gains(waivers.apply(evaluate(chosen, hosts), accepted, today), options["location"])


def _with_gains(audit: "Audit", location: "StoreLocation") -> "Audit":
    """Return the audit with the measured gains of the fixes of its findings."""
    provable = {one.rule.id for one in audit.findings() if one.rule.proof is not None}
    has_store = location.database is not None or os.path.exists(location.folder)
    if not provable or not has_store:  # importing the store takes longer than all rules
        return audit
    from loadstone.cli.audit_measured import gains
    from loadstone.errors import EnvironmentUnusable

    try:
        return audit.with_gains(gains(location, provable))
    except EnvironmentUnusable as unusable:  # the findings are valid without the store
        click.echo(f"loadstone: what was measured is not shown: {unusable}", err=True)
        return audit


def _facts(
    found: "tuple[Collected, ...]", options: Mapping[str, Any], *, is_lab: bool
) -> "tuple[HostFacts, ...]":
    context: dict[str, Value] = {
        "audit.is_lab": is_lab,
        "audit.hosts": len(found),
        "audit.rate_per_s": options["rate"],
        "audit.logins_per_s": options["logins_per_s"],
    }
    if options["rate"] > 0:
        from loadstone.cli.audit_measured import service_s

        known_s = service_s(options["location"], options["lab"], options["result"])
        if known_s is not None:
            context["audit.service_s"] = known_s
    return host_facts(found, context)


def host_facts(
    found: "Iterable[Collected]", context: "dict[str, Value]"
) -> "tuple[HostFacts, ...]":
    """Return the facts of hosts, or why there are none."""
    from loadstone.audit.extract import extract
    from loadstone.audit.facts import HostFacts

    return tuple(
        HostFacts(one.name, failure=one.failure)
        if one.document is None
        else extract(one.name, one.document, context)
        for one in found
    )


def _sources(options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in SOURCES if options[name])


def collect_hosts(options: Mapping[str, Any]) -> "tuple[Collected, ...]":
    """Collect facts from the hosts in the options, or from this machine without any."""
    from loadstone.audit.transport import collect

    if options["via"] == "ansible":
        from loadstone.audit import ansible
        from loadstone.errors import InvalidInput

        if _sources(options) != ("inventory",):
            raise InvalidInput("--via ansible takes its hosts from --inventory FILE only")
        if not os.path.exists(options["inventory"]):
            raise InvalidInput(f"{options['inventory']}: no such file")
        return ansible.collect(options["inventory"], options["timeout_s"], become=options["become"])
    return collect(_hosts(options), options["timeout_s"])


def _hosts(options: Mapping[str, Any]) -> "tuple[Host, ...]":
    from loadstone.audit import inventory, transport
    from loadstone.errors import InvalidInput

    if options["lab"] is not None:
        if len(_sources(options)) > 1:
            raise InvalidInput("give --lab or other hosts, not both")
        refuse_given(click.get_current_context(), ("become",), f"{_NO_BECOME} --lab")
        from loadstone.audit import lab
        from loadstone.lab.deployment import find

        return (lab.host(find(options["lab"])),)
    config = options["ssh_config"]
    reach = transport.SshOptions(str(config) if config else None, options["become"])
    named: dict[str, dict[str, str]] = {name: {} for name in options["hosts"]}
    for name in named:
        if name.startswith("-"):
            raise InvalidInput(f"--host {name}: is not the name of a host")
    if options["inventory"] is not None:
        named = inventory.read(options["inventory"]) | named
    hosts = [transport.ssh(name, reach, variables) for name, variables in named.items()]
    for program in CONTAINERS:
        hosts += [transport.container(program, name) for name in options[program]]
    if hosts and not named:
        refuse_given(click.get_current_context(), ("become",), f"{_NO_BECOME} containers")
    if not hosts:
        _mention_labs()
    return tuple(hosts) or (transport.local(become=options["become"]),)


def _mention_labs() -> None:
    """Say that the machine's own audit is not that of the labs that run on it."""
    from loadstone.lab import deployment

    for lab in deployment.every():
        if lab.is_running:
            click.echo(
                f"loadstone: this is the audit of the machine; of its lab {lab.name}: "
                f"loadstone audit --lab {lab.name}",
                err=True,
            )
