"""Removal of what a run made, and of nothing else; as often as one likes."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.concurrently import each
from loadstone.keystone.identity import Identity, Unreachable
from loadstone.keystone.journal import Journal, Record, Unwritable, read
from loadstone.keystone.servers import Servers
from loadstone.keystone.things import (
    ANY,
    Kind,
    Leftover,
    Thing,
    counted,
    domain_name,
    is_of_run,
)
from loadstone.target import Access

_WORKERS = 8
_INHABITANTS = (Kind.USER, Kind.GROUP, Kind.PROJECT)  # of a domain, in the order of removal
# A service may show only a part of a long list at once ([DEFAULT] list_limit); this many parts.
_ROUNDS = 1000
_NAMED = 20  # of what is left; all of it is in the journal

Say = Callable[[str], None]


class Place(Protocol):
    """Where things are found, and removed."""

    def find(self, kind: Kind, **query: str) -> tuple[Thing, ...]:
        """List what the query matches, as much as is shown at once."""

    def remove(self, thing: Thing) -> None:
        """Remove it; that it is gone already is as good."""


def clean(access: Access, path: Path, say: Say) -> tuple[Leftover, ...]:
    """Remove what the journal's run made in this cloud; give what could not be removed.

    The domain of the run's exact name is looked up, and in it (and where iterations made things)
    only what carries a name of the run is removed, so that also what was made but never confirmed
    goes, and nothing of anyone else.
    """
    record = read(path)
    if record is None or record.is_done:
        return ()
    for damage in record.unread:
        say(damage)
    require_same_cloud(record, access)
    journal = Journal(path, record.run_id)
    say(f"removing {_in_words(record.remaining) or 'what the run made'}")
    try:
        failed = _remove_all(Identity(access), record, journal, say)
    except EnvironmentUnusable as error:
        failed = {"": str(error)}
    if failed:
        return _leftovers(path, failed)
    for announced in remaining(path):
        _note(journal, announced.thing)
    say(f"removed all that the run made in {access.identity_url}")
    return ()


def remaining(path: Path) -> tuple[Leftover, ...]:
    """Say from the journal alone what a run has left in its cloud."""
    return _leftovers(path, {})


def list_leftovers(path: Path, leftovers: tuple[Leftover, ...], say: Say) -> None:
    """Say what is left, why, and the command that removes it."""
    record = read(path)
    if record is None or not leftovers:
        return
    say(f"{len(leftovers)} left in {record.identity_url}; remove with: {record.mend}")
    for leftover in leftovers[:_NAMED]:
        say(f"  {leftover.thing.kind} {leftover.thing.name}: {leftover.why}")
    if len(leftovers) > _NAMED:
        say(f"  and {len(leftovers) - _NAMED} more")


def _in_words(things: tuple[Thing, ...]) -> str:
    counts = Counter(thing.kind for thing in things if not thing.is_many)
    single = [counted(counts[kind], kind) for kind in reversed(Kind) if counts[kind]]
    many = [f"the iterations' {thing.kind}s" for thing in things if thing.is_many]
    return ", ".join([*many, *single])


def require_same_cloud(record: Record, access: Access) -> None:
    """Refuse another cloud than the one in which the run made what its journal names."""
    # A lab may come up again on another port, so the same name is as good as the same URL. OS_*
    # names nothing: it is whatever cloud the shell was last told of.
    is_named = record.chosen.startswith("--") and access.cloud.chosen == record.chosen
    if record.identity_url not in ("", access.identity_url) and not is_named:
        raise InvalidInput(
            f"run {record.run_id} was made in {record.identity_url} ({record.chosen}), "
            f"not in {access.identity_url} ({access.cloud.chosen}); choose that cloud"
        )


def _remove_all(identity: Identity, record: Record, journal: Journal, say: Say) -> dict[str, str]:
    """Remove what iterations made, then the run's own domain; give what would not go, and why."""
    failed: dict[str, str] = {}
    for kind in reversed(Kind):
        for many in record.remaining:
            if many.kind is kind and many.is_many:
                failed |= _sweep(identity, journal.run_id, many, say)
    return failed | _remove_domain(identity, journal, say)


def _sweep(identity: Identity, run_id: str, many: Thing, say: Say) -> dict[str, str]:
    """Remove all whose names begin so, where they lie."""
    query = {"name__startswith": many.name.removesuffix(ANY)}
    if many.domain_id is not None:
        query["domain_id"] = many.domain_id
    # The journal names them all at once, so it says that they are gone when all are.
    try:
        place = Servers(identity) if many.kind is Kind.SERVER else identity
        failed = _remove_kind(place, run_id, many.kind, query, partial(_tried, place), say)
    except EnvironmentUnusable as error:
        if many.kind is not Kind.SERVER:
            raise
        # What another service holds back keeps no user in this one.
        return {many.name: str(error)}
    if not failed:
        return {}
    name, why = next(iter(failed.items()))
    return {many.name: f"{counted(len(failed), many.kind)} left; {name}: {why}"}


def _remove_domain(identity: Identity, journal: Journal, say: Say) -> dict[str, str]:
    """Remove users, groups, projects, then their domain."""
    name = domain_name(journal.run_id)
    failed: dict[str, str] = {}
    remove = partial(_remove_one, identity, journal)
    for domain in identity.find(Kind.DOMAIN, name=name):
        for kind in _INHABITANTS:
            query = {"domain_id": str(domain.id)}
            failed |= _remove_kind(identity, journal.run_id, kind, query, remove, say)
        strangers = _inhabitants(identity, domain)
        if strangers:
            failed.setdefault(name, f"it holds {strangers[0].kind} {strangers[0].name}")
        else:
            failed |= _remove_one(identity, journal, domain)
    if not failed and identity.find(Kind.DOMAIN, name=name):
        failed[name] = "it was removed and is still there"
    return failed


def _remove_kind(
    place: Place,
    run_id: str,
    kind: Kind,
    query: Mapping[str, str],
    remove: Callable[[Thing], dict[str, str]],
    say: Say,
) -> dict[str, str]:
    failed: dict[str, str] = {}
    for _ in range(_ROUNDS):
        ours = [
            thing
            for thing in place.find(kind, **query)
            if is_of_run(run_id, thing.name) and thing.name not in failed
        ]
        if not ours:
            break
        # Whoever presses Ctrl-C here has been patient before; what is removed twice does no harm.
        for result in each(remove, ours, _WORKERS, say, waits=False):
            failed |= result
    return failed


def _remove_one(identity: Identity, journal: Journal, thing: Thing) -> dict[str, str]:
    failed = _tried(identity, thing)
    if not failed:
        _note(journal, thing)
    return failed


def _tried(place: Place, thing: Thing) -> dict[str, str]:
    try:
        place.remove(thing)
    except Unreachable:
        raise
    except EnvironmentUnusable as error:
        return {thing.name: str(error)}
    return {}


def _note(journal: Journal, thing: Thing) -> None:
    # A full disk must not keep anything in the cloud; at worst it is looked for once more.
    with suppress(Unwritable):
        journal.removed(thing)


def _inhabitants(identity: Identity, domain: Thing) -> tuple[Thing, ...]:
    return tuple(
        thing for kind in _INHABITANTS for thing in identity.find(kind, domain_id=str(domain.id))
    )


def _leftovers(path: Path, failed: dict[str, str]) -> tuple[Leftover, ...]:
    record = read(path)
    general = failed.get("", "not removed yet")
    things = record.remaining if record else ()
    return tuple(Leftover(thing, failed.get(thing.name, general)) for thing in things)
