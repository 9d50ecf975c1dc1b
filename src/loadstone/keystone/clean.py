"""Removes exactly what a run created. May be repeated."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from loadstone.cloud import Access
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.identity import Identity, Unreachable
from loadstone.keystone.journal import Journal, JournalContents, Unwritable, read
from loadstone.keystone.networks import Networks
from loadstone.keystone.resources import (
    ANY,
    Leftover,
    Resource,
    ResourceKind,
    counted,
    domain_name,
    is_of_run,
)
from loadstone.keystone.servers import Servers
from loadstone.system.concurrently import each
from loadstone.system.say import Say

_WORKERS = 8
_INHABITANTS = (
    ResourceKind.USER,
    ResourceKind.GROUP,
    ResourceKind.PROJECT,
)  # of a domain, in the order of removal
_OF_DOMAINS = (ResourceKind.DOMAIN, *_INHABITANTS)
# Resources of other services: kind -> API.
_ELSEWHERE: dict[ResourceKind, Callable[[Identity], "Servers | Networks"]] = {
    ResourceKind.SERVER: Servers,
    ResourceKind.NETWORK: Networks,
}
_OF_REGION = (*_ELSEWHERE, ResourceKind.SECURITY_GROUP)
# A service may return long lists in parts ([DEFAULT] list_limit); read at most this many.
_ROUNDS = 1000
# Waits for what was removed and is still listed, as by a replica of the database or a cache.
_STALE_WAITS_S = (0.5, 1.0, 2.0, 4.0)
STILL_THERE = "it was removed and is still there"
LISTS_OWN_DOMAIN = "Keystone lists for the token of a domain only what is in that domain"
_NAMED = 20  # resources still present; the journal lists all of them


class ResourceApi(Protocol):
    """An API that finds and removes resources."""

    def find(self, kind: ResourceKind, **query: str) -> tuple[Resource, ...]:
        """List what the query matches, up to the service's list limit."""

    def remove(self, thing: Resource) -> None:
        """Remove a resource; it is no error if it is gone already."""


def clean(access: Access, path: Path, say: Say) -> tuple[Leftover, ...]:
    """Remove what the journal's run created in this cloud; return what could not be removed.

    Only the domain with the run's exact name is searched (and the places where iterations created
    resources), and only resources named after the run are removed. So this also removes resources
    whose creation was never confirmed, and never those of anyone else.
    """
    record = read(path)
    if record is None or record.is_done:
        return ()
    require_same_cloud(record, access)
    return clean_journal(access, Journal(path, record.run_id), say)


def clean_journal(access: Access, journal: Journal, say: Say) -> tuple[Leftover, ...]:
    """Remove what an open journal lists, even if its file is gone."""
    record = journal.record()
    if record is None or record.is_done:
        return ()
    for damage in record.unread:
        say(damage)
    say(f"removing {_summary(record.remaining) or 'what the run made'}")
    try:
        failed = _remove_all(Identity(access), record, journal, say)
    except EnvironmentUnusable as error:
        failed = {"": str(error)}
    remainder = journal.record()
    if failed:
        return _leftovers(remainder, failed)
    for announced in remainder.remaining if remainder else ():
        _note(journal, announced)
    known = "its journal tells of" if record.unread else "the run made"
    say(f"removed all that {known} in {access.identity_url}")
    return ()


def remaining(path: Path) -> tuple[Leftover, ...]:
    """Return what a run has left in its cloud, from the journal alone."""
    return _leftovers(read(path), {})


def forget(path: Path) -> None:
    """Record that all that a journal lists is gone, because its cloud was removed."""
    record = read(path)
    if record is not None:
        journal = Journal(path, record.run_id)
        for thing in record.remaining:
            _note(journal, thing)


def list_leftovers(
    record: JournalContents | None,
    path: Path,
    leftovers: tuple[Leftover, ...],
    say: Say,
    store: str = "",
) -> None:
    """Print the leftovers, the reasons, and the command that removes them.

    `store` is the option that chooses the run's store, with a space before it.
    """
    if record is None or not leftovers:
        return
    remedy = f"remove with: {record.cleanup_command}{store}"
    if not path.exists():
        remedy = (
            f"its journal {path} is gone, so remove it by hand: all that is named "
            f"{domain_name(record.run_id)}*"
        )
    say(f"{len(leftovers)} left in {record.identity_url}; {remedy}")
    by_reason: dict[str, list[str]] = {}
    for leftover in leftovers[:_NAMED]:
        thing = f"{leftover.thing.kind} {leftover.thing.name}"
        by_reason.setdefault(leftover.why, []).append(thing)
    for why, things in by_reason.items():
        say(f"  {', '.join(things)}: {why}")
    if len(leftovers) > _NAMED:
        say(f"  and {len(leftovers) - _NAMED} more")


def _summary(things: tuple[Resource, ...]) -> str:
    counts = Counter(thing.kind for thing in things if not thing.is_many)
    single = [counted(counts[kind], kind) for kind in reversed(ResourceKind) if counts[kind]]
    # Phases of load may have an entry each.
    many = dict.fromkeys(f"the iterations' {thing.kind}s" for thing in things if thing.is_many)
    return ", ".join([*many, *single])


def require_same_cloud(record: JournalContents, access: Access) -> None:
    """Refuse a cloud other than the one in which the run created its resources."""
    # A lab may restart on another port, so its name is as good as its URL. The name of a cloud is
    # not: each folder may have a clouds.yaml of its own, and OS_* is whatever the shell has.
    is_same_lab = record.chosen.startswith("--lab ") and access.cloud.chosen == record.chosen
    if record.identity_url not in ("", access.identity_url) and not is_same_lab:
        raise InvalidInput(
            f"run {record.run_id} was made in {record.identity_url} ({record.chosen}), "
            f"not in {access.identity_url} ({access.cloud.chosen}); choose that cloud"
        )
    # Each region has its own servers and networks, and one Keystone may serve all regions.
    region = access.cloud.region or ""
    if record.region not in (None, region) and any(
        thing.kind in _OF_REGION for thing in record.remaining
    ):
        raise InvalidInput(
            f"run {record.run_id} made its servers and networks in {_region(record.region)}, "
            f"not in {_region(region)}; choose that region (OS_REGION_NAME, or region_name in "
            "clouds.yaml)"
        )


def _region(name: str | None) -> str:
    return f"region {name}" if name else "the catalog's first region"


def _is_hidden(access: Access, things: tuple[Resource, ...]) -> bool:
    """Return whether lists lack some of the resources, because the token is for a domain."""
    own = access.scope_domain_id()
    in_domains = (one for one in things if one.kind in _OF_DOMAINS)
    return own is not None and any(one.domain_id != own for one in in_domains)


def _remove_all(
    identity: Identity, record: JournalContents, journal: Journal, say: Say
) -> dict[str, str]:
    """Remove what iterations created, then the run's own domain; return what failed and why."""
    if _is_hidden(identity.access, record.remaining):
        return {"": f"{LISTS_OWN_DOMAIN}; choose a project or the system"}
    failed: dict[str, str] = {}
    for kind in reversed(ResourceKind):
        for many in record.remaining:
            if many.kind is kind and many.is_many:
                failed |= _sweep(identity, journal, many, say)
    failed |= _remove_security_groups(identity, record, journal, say)
    return failed | _remove_domain(identity, journal, say)


def _sweep(identity: Identity, journal: Journal, many: Resource, say: Say) -> dict[str, str]:
    """Remove all resources whose names begin with the prefix."""
    query = {"name__startswith": many.name.removesuffix(ANY)}
    if many.domain_id is not None:
        query["domain_id"] = many.domain_id
    # The journal has one entry for all of them, so it is closed only when all are removed.
    try:
        elsewhere = _ELSEWHERE.get(many.kind)
        place = elsewhere(identity) if elsewhere else identity
        remove = partial(_try_remove, place)
        failed = _remove_kind(place, journal.run_id, many.kind, query, remove, say)
    except (EnvironmentUnusable, InvalidInput) as error:  # its service may not be permitted
        if many.kind not in _ELSEWHERE:
            raise
        # If another service's resources cannot be removed, the users of this one still can.
        return {many.name: str(error)}
    if not failed:
        _note(journal, many)
        return {}
    name, why = next(iter(failed.items()))
    return {many.name: f"{counted(len(failed), many.kind)} left; {name}: {why}"}


def _remove_security_groups(
    identity: Identity, record: JournalContents, journal: Journal, say: Say
) -> dict[str, str]:
    """Remove the security groups `default` of the run's projects."""
    noted = [one for one in record.remaining if one.kind is ResourceKind.SECURITY_GROUP]
    if not noted:
        return {}
    networks = Networks(identity)
    try:
        by_project = networks.default_groups()
    except (EnvironmentUnusable, InvalidInput) as error:  # as in `_sweep`
        return {group.name: str(error) for group in noted}
    groups = [
        replace(group, id=group_id)
        for group in noted
        for group_id in by_project.get(str(group.id), ())
    ]
    refusals = each(partial(_try_remove, networks), groups, _WORKERS, say, waits=False)
    failed = {name: why for refusal in refusals for name, why in refusal.items()}
    for group in noted:
        if group.name not in failed:
            _note(journal, group)
    return failed


def _remove_domain(identity: Identity, journal: Journal, say: Say) -> dict[str, str]:
    """Remove users, groups and projects, then their domain."""
    name = domain_name(journal.run_id)
    noted = [one for one in _in_domain(journal) if one.kind is ResourceKind.DOMAIN and one.id]
    failed: dict[str, str] = {}
    remove = partial(_remove_one, identity, journal)
    for domain in identity.find(ResourceKind.DOMAIN, name=name):
        for kind in _INHABITANTS:
            query = {"domain_id": str(domain.id)}
            failed |= _remove_kind(identity, journal.run_id, kind, query, remove, say)
        strangers = _inhabitants(identity, domain)
        if strangers:
            failed.setdefault(name, f"it holds {strangers[0].kind} {strangers[0].name}")
        else:
            failed |= _remove_one(identity, journal, domain)
    if not failed and identity.find(ResourceKind.DOMAIN, name=name):
        failed[name] = STILL_THERE
    # A list may lack it; by its id it is found.
    for domain in noted:
        if not failed and not identity.is_gone(domain):
            failed[name] = "no domain of this name is listed, and the one made is still there"
    if not failed:
        for thing in _in_domain(journal):  # what was never made, or removed by someone else
            _note(journal, thing)
    return failed


def _in_domain(journal: Journal) -> list[Resource]:
    """Return the run's own domain and what was made in it, as far as they are not removed."""
    record = journal.record()
    return [
        thing
        for thing in (record.remaining if record else ())
        if thing.kind in _OF_DOMAINS and thing.domain_id is None and not thing.is_many
    ]


def _remove_kind(
    place: ResourceApi,
    run_id: str,
    kind: ResourceKind,
    query: Mapping[str, str],
    remove: Callable[[Resource], dict[str, str]],
    say: Say,
) -> dict[str, str]:
    failed: dict[str, str] = {}
    before: list[str | None] = []
    waits_s = iter(_STALE_WAITS_S)
    for _ in range(_ROUNDS):
        ours = [thing for thing in place.find(kind, **query) if is_of_run(run_id, thing.name)]
        ids = [thing.id for thing in ours]
        if ids and ids == before:
            wait_s = next(waits_s, None)
            if wait_s is None:
                return {thing.name: STILL_THERE for thing in ours} | failed
            time.sleep(wait_s)
        before = ids
        # Ctrl-C here usually follows an earlier one; removing something twice does no harm.
        refusals = each(remove, ours, _WORKERS, say, waits=False)
        failed = {name: why for refusal in refusals for name, why in refusal.items()}
        # A project that holds others can be removed when they are gone.
        if all(refusals):
            break
    return failed


def _remove_one(identity: Identity, journal: Journal, thing: Resource) -> dict[str, str]:
    failed = _try_remove(identity, thing)
    if not failed:
        _note(journal, thing)
    return failed


def _try_remove(place: ResourceApi, thing: Resource) -> dict[str, str]:
    try:
        place.remove(thing)
    except Unreachable:
        raise
    except EnvironmentUnusable as error:
        return {thing.name: str(error)}
    return {}


def _note(journal: Journal, thing: Resource) -> None:
    # A full disk must not prevent the removal; at worst a later clean-up looks for it again.
    with suppress(Unwritable):
        journal.removed(thing)


def _inhabitants(identity: Identity, domain: Resource) -> tuple[Resource, ...]:
    return tuple(
        thing for kind in _INHABITANTS for thing in identity.find(kind, domain_id=str(domain.id))
    )


def _leftovers(record: JournalContents | None, failed: dict[str, str]) -> tuple[Leftover, ...]:
    general = failed.get("", "not removed yet")
    things = record.remaining if record else ()
    return tuple(Leftover(thing, failed.get(thing.name, general)) for thing in things)
