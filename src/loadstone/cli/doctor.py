"""`loadstone doctor`: shows what is installed, what is missing, and how to get it."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from loadstone.cli.choose import target_options
from loadstone.cli.oidc import OIDC, TargetOptions, oidc_options, provider_of
from loadstone.cli.stored import JSON, write_json
from loadstone.cli.version import PACKAGE
from loadstone.errors import EnvironmentUnusable
from loadstone.system.installation import pip_install
from loadstone.target.requirement import Requirement

if TYPE_CHECKING:
    from loadstone.system.say import Say

# The environment of one Keystone release takes about 300 MB; the samples of a run a few MB.
DISK_NEEDED_GIB = 1.0
# One descriptor per connection, and some for the rest of the process.
DESCRIPTORS_NEEDED = 1024
# Of a checkout: what builds it, and what its `make verify` and its tests use.
OF_CHECKOUT = (
    ("cargo", "builds the engine", "install Rust 1.88 or newer with rustup"),
    ("cc", "links the engine", "apt-get install gcc libc6-dev"),
    ("wrk", "`make verify` compares with it", "apt-get install wrk"),
    ("h2load", "`make verify` compares with it", "apt-get install nghttp2-client"),
    ("wrk2", "`make verify` compares with it", "build https://github.com/giltene/wrk2; set WRK2"),
    ("chromium", "browser tests of the report", "apt-get install chromium"),
)
# Of the lab, and of studies: `loadstone study list` says which study needs what.
SERVERS = (
    ("mariadbd", "mariadb-server"),
    ("postgres", "postgresql"),
    ("memcached", "memcached"),
    ("apache2", "apache2 libapache2-mod-wsgi-py3 libapache2-mod-auth-openidc"),
    ("nginx", "nginx-light"),
    ("haproxy", "haproxy"),
    ("slapd", "slapd"),
)


@click.command()
@target_options
@OIDC
@oidc_options
@JSON
@click.pass_context
def doctor(ctx: click.Context, to: Path | None, **options: Unpack[TargetOptions]) -> None:
    """Show what is installed, what is missing, and how to get it.

    With --cloud NAME or --lab NAME, check that target instead: address, certificate, login and how
    long it takes, rights, what earlier runs left, faults in force, other measurements. That takes
    a few logins and reads; it sends no load and creates nothing.

    With --oidc ISSUER, check that OpenID provider: address, certificate, metadata, keys, and each
    scenario once, with how long it takes or why the provider refuses it.

    Exit code 3 if something is missing that Loadstone, or a measurement of the target, needs; 70
    after an internal error.
    """
    is_of_target = any(options[name] is not None for name in ("lab", "cloud", "oidc"))
    checks = tuple(of_target(ctx, options) if is_of_target else requirements())
    if to is not None:
        write_json([asdict(check) for check in checks], to)
    else:
        missing = ("look   ", "FAILED ") if is_of_target else ("absent ", "MISSING")
        width = max(len(check.name) for check in checks)
        for check in checks:
            mark = "ok     " if check.is_there else missing[check.is_needed]
            hint = f"  -> {check.mend}" if check.mend and not check.is_there else ""
            click.echo(f"{mark}  {check.name:<{width}}  {check.found}{hint}")
    if any(check.is_needed and not check.is_there for check in checks):
        ctx.exit(EnvironmentUnusable.exit_code)


def of_target(ctx: click.Context, options: TargetOptions) -> Iterator[Requirement]:
    """Check a target that is named."""
    from loadstone.faults import pending
    from loadstone.target.check_provider import check_provider
    from loadstone.target.choice import NamedTarget

    lab, cloud = options["lab"], options["cloud"]
    provider = provider_of(ctx, {**options, "yes": False, "anyway": False})
    choice = provider or NamedTarget(lab, cloud)
    say = partial(click.echo, err=True)
    yield from _of_keystone(lab, cloud, say) if provider is None else check_provider(provider, say)
    journals, problems = pending.journals(pending.chosen_target(choice))
    steps = [step.description for journal in journals for step in journal.steps()]
    if found := [*problems, *steps]:
        named = (("--lab", lab), ("--cloud", cloud), ("--oidc", options["oidc"]))
        option = next((f"{flag} {value}" for flag, value in named if value is not None), "")
        if options["oidc"] is not None:  # which is no target without a client
            option += f" --client-id {options['client_id']}"
        mend = f"{pending.UNDO} {option}"
        yield Requirement("faults", False, f"in force; to undo: {', '.join(found)}", mend)
    else:
        yield Requirement("faults", True, "none in force")


def _of_keystone(lab: str | None, cloud: str | None, say: "Say") -> "Iterator[Requirement]":
    from loadstone.cloud import from_environment
    from loadstone.lab import deployment
    from loadstone.target.check import check_target
    from loadstone.target.choice import NamedTarget, cloud_of

    if lab is None:
        return check_target(cloud_of(NamedTarget(lab, cloud)), say)
    variables = deployment.find(lab).environment_variables()
    return check_target(from_environment(variables, f"--lab {lab}"), say)


def requirements() -> Iterator[Requirement]:
    """Check everything that Loadstone needs or can use."""
    yield engine()
    yield disk()
    yield descriptors()
    yield installer()
    yield from build_programs()
    yield from servers()
    yield from provider_programs()


def build_programs(package: Path = PACKAGE) -> Iterator[Requirement]:
    """Check for what a checkout builds and tests with; nothing where a wheel is installed."""
    if not (package.parents[1] / "pyproject.toml").exists():
        return
    for name, use, hint in OF_CHECKOUT:
        path = shutil.which(os.environ.get("WRK2", name) if name == "wrk2" else name)
        yield Requirement(
            name, path is not None, path or f"not on the PATH ({use})", hint, is_needed=False
        )


def servers() -> Iterator[Requirement]:
    """Check for the servers that a lab can use."""
    from loadstone.lab.parts.postgres import FOLDERS
    from loadstone.lab.programs import Program

    for name, packages in SERVERS:
        found = Program(name, packages, FOLDERS).find()
        use = "labs and studies with it"
        hint = f"apt-get install {packages}"
        yield Requirement(
            name, found is not None, found or f"not installed ({use})", hint, is_needed=False
        )


def provider_programs() -> Iterator[Requirement]:
    """Check for what other identity services need: Java and Maven, node and npm, Go."""
    from loadstone.lab.provider import hydra, java, keycloak, node

    found = java.installed()
    fit = any(one.major >= java.LEAST for one in found)
    named = ", ".join(f"{one.version} in {one.home}" for one in found)
    old = "" if fit or not found else f"; Keycloak needs {java.LEAST} or later"
    hint = f"apt-get install {java.PACKAGE}"
    absent = "not installed (labs with service=keycloak)"
    yield Requirement("java", fit, f"{named or absent}{old}", hint, is_needed=False)
    for program, use in (
        (keycloak.MAVEN, "fetches Keycloak for the lab"),
        (node.NODE, "labs with service=oidc-provider"),
        (node.NPM, "fetches oidc-provider for the lab"),
        (hydra.GO, "builds Hydra for the lab"),
    ):
        path = program.find()
        hint = f"apt-get install {program.package}"
        yield Requirement(
            program.name, path is not None, path or f"not installed ({use})", hint, is_needed=False
        )


def installer() -> Requirement:
    """Check for uv, which installs Keystone's environments."""
    from loadstone.lab.environment import find_uv

    path = find_uv()
    found = str(path or "not found; pip is used, which takes longer")
    return Requirement("uv", path is not None, found, pip_install("uv"), is_needed=False)


def engine() -> Requirement:
    """Check that the Rust engine can be imported."""
    try:
        from loadstone.engine.version import version
    except ImportError as missing:
        return Requirement("engine", False, str(missing), "make install; or the wheel again")
    return Requirement("engine", True, version())


def disk() -> Requirement:
    """Check that Loadstone's folder can be written, and its free space."""
    from loadstone.system import paths

    folder = paths.home()
    existing = next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        hint = "set LOADSTONE_HOME to a folder of yours"
        return Requirement("disk", False, f"{existing} is not a folder that you may write to", hint)
    free_gib = shutil.disk_usage(existing).free / 2**30
    found = f"{free_gib:.1f} GiB free in {folder}"
    hint = "free 1 GiB, or set LOADSTONE_HOME to a folder with room"
    return Requirement("disk", free_gib >= DISK_NEEDED_GIB, found, hint)


def descriptors() -> Requirement:
    """Check the limit of open files, and so of connections."""
    import resource

    # The engine raises its own limit to this one.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return Requirement("open files", True, "no limit")
    hint = "raise nofile in /etc/security/limits.conf, or LimitNOFILE= of the systemd unit"
    return Requirement("open files", hard >= DESCRIPTORS_NEEDED, f"{hard} allowed", hint)
