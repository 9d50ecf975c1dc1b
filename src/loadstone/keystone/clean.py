"""Removal of what a run made, and of nothing else; as often as one likes."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.keystone.concurrently import each
from loadstone.keystone.identity import Identity, Unreachable
from loadstone.keystone.journal import Journal, Record, Unwritable, read
from loadstone.keystone.things import Kind, Leftover, Thing, counted, domain_name, is_of_run
from loadstone.target import Access

_WORKERS = 8
# A service may show only a part of a long list at once ([DEFAULT] list_limit); this many parts.
_ROUNDS = 1000

Say = Callable[[str], None]


def clean(access: Access, path: Path, say: Say) -> tuple[Leftover, ...]:
    """Remove what the journal's run made in this cloud; give what could not be removed.

    The domain of the run's exact name is looked up, and in it only what carries a name of the run
    is removed, so that also what was made but never confirmed goes, and nothing of anyone else.
    """
    record = read(path)
    if record is None or not record.remaining:
        return ()
    _require_same_cloud(record, access)
    journal = Journal(path, record.run_id)
    say(f"removing {_in_words(record.remaining)}")
    try:
        failed = _remove_all(Identity(access), journal, say)
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
    for leftover in leftovers:
        say(f"  {leftover.thing.kind} {leftover.thing.name}: {leftover.why}")


def _in_words(things: tuple[Thing, ...]) -> str:
    counts = Counter(thing.kind for thing in things)
    return ", ".join(counted(counts[kind], kind) for kind in reversed(Kind) if counts[kind])


def _require_same_cloud(record: Record, access: Access) -> None:
    # A lab may come up again on another port, so the same choice is as good as the same URL.
    if access.identity_url != record.identity_url and access.cloud.chosen != record.chosen:
        raise InvalidInput(
            f"run {record.run_id} was made in {record.identity_url} ({record.chosen}), "
            f"not in {access.identity_url} ({access.cloud.chosen}); choose that cloud"
        )


def _remove_all(identity: Identity, journal: Journal, say: Say) -> dict[str, str]:
    """Remove users, projects, then their domain; give what would not go (name: why)."""
    name = domain_name(journal.run_id)
    failed: dict[str, str] = {}
    for domain in identity.find(Kind.DOMAIN, name=name):
        for kind in (Kind.USER, Kind.PROJECT):
            failed |= _remove_kind(identity, journal, kind, domain, say)
        strangers = _inhabitants(identity, domain)
        if strangers:
            failed.setdefault(name, f"it holds {strangers[0].kind} {strangers[0].name}")
        else:
            failed |= _remove_one(identity, journal, domain)
    if not failed and identity.find(Kind.DOMAIN, name=name):
        failed[name] = "it was removed and is still there"
    return failed


def _remove_kind(
    identity: Identity, journal: Journal, kind: Kind, domain: Thing, say: Say
) -> dict[str, str]:
    failed: dict[str, str] = {}
    for _ in range(_ROUNDS):
        ours = [
            thing
            for thing in identity.find(kind, domain_id=str(domain.id))
            if is_of_run(journal.run_id, thing.name) and thing.name not in failed
        ]
        if not ours:
            break
        # Whoever presses Ctrl-C here has been patient before; what is removed twice does no harm.
        remove = partial(_remove_one, identity, journal)
        for result in each(remove, ours, _WORKERS, say, waits=False):
            failed |= result
    return failed


def _remove_one(identity: Identity, journal: Journal, thing: Thing) -> dict[str, str]:
    try:
        identity.remove(thing)
    except Unreachable:
        raise
    except EnvironmentUnusable as error:
        return {thing.name: str(error)}
    _note(journal, thing)
    return {}


def _note(journal: Journal, thing: Thing) -> None:
    # A full disk must not keep anything in the cloud; at worst it is looked for once more.
    with suppress(Unwritable):
        journal.removed(thing)


def _inhabitants(identity: Identity, domain: Thing) -> tuple[Thing, ...]:
    return tuple(
        thing
        for kind in (Kind.USER, Kind.PROJECT)
        for thing in identity.find(kind, domain_id=str(domain.id))
    )


def _leftovers(path: Path, failed: dict[str, str]) -> tuple[Leftover, ...]:
    record = read(path)
    general = failed.get("", "not removed yet")
    things = record.remaining if record else ()
    return tuple(Leftover(thing, failed.get(thing.name, general)) for thing in things)
