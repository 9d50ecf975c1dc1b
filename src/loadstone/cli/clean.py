"""`loadstone results clean RUN`: removes the resources that a killed run left in its cloud."""

from functools import partial
from typing import TYPE_CHECKING

import click

from loadstone.cli.choose import UNDONE_ANYWAY, target_options
from loadstone.cli.stored import STORE, open_to_read
from loadstone.errors import FELL_SHORT, EnvironmentUnusable, InvalidInput

if TYPE_CHECKING:
    from loadstone.keystone.journal import JournalContents
    from loadstone.store.location import StoreLocation
    from loadstone.store.store import Store


@click.command()
@click.argument("run")
@target_options
@UNDONE_ANYWAY
@STORE
@click.pass_context
def clean(
    ctx: click.Context,
    run: str,
    lab: str | None,
    cloud: str | None,
    location: "StoreLocation",
    *,
    anyway: bool,
) -> None:
    """Remove from the cloud what RUN created there and could not remove itself.

    Removes only what the run's journal lists. The target is the run's own, unless --lab, --cloud or
    OS_* variables name another. Exit code 1 if something is left, 70
    after an internal error.
    """
    from loadstone.keystone.clean import clean as clean_up
    from loadstone.keystone.clean import list_leftovers
    from loadstone.keystone.journal import JOURNAL, held, read
    from loadstone.target.choice import NamedTarget
    from loadstone.target.connect import connected

    with open_to_read(location) as store:
        run_id = store.resolve(run)
        store.require_files(run_id)
        journal = store.folder(run_id) / JOURNAL
        record = read(journal)
        if record is None and store.get(run_id).environment.has_leftovers:
            raise EnvironmentUnusable(
                f"run {run_id} left something in its cloud, and the journal that lists it is not "
                f"in {journal.parent}; do this on the machine that measured it"
            )
        if record is None or record.is_done:
            store.mark_clean(run_id)
            click.echo(f"run {run_id} has left nothing")
            return
        if lab is None and cloud is None:
            lab, cloud = as_before(record)
            if lab is not None:
                require_lab(lab, run_id, location)
        require_run_undone(store, run_id, anyway=anyway)
    # Removal is no load, so it needs no permission to load.
    target = NamedTarget(lab, cloud, beyond_loopback=True)
    say = partial(click.echo, err=True)
    with held(journal.resolve(), record.run_id), connected(target, say) as subject:
        leftovers = clean_up(subject.access, journal, click.echo)
    list_leftovers(read(journal), journal, leftovers, click.echo, location.option)
    if not leftovers:
        with open_to_read(location) as store:
            store.mark_clean(run_id)
            if store.holds(record.run_id):  # which made the users, if this run resumed with them
                store.mark_clean(record.run_id)
    ctx.exit(FELL_SHORT if leftovers else 0)


def require_lab(name: str, run_id: str, location: "StoreLocation") -> None:
    """Refuse if the run's lab is not on this machine; it may have been removed with its data."""
    from loadstone.lab import deployment

    if not deployment.is_known(name):
        raise InvalidInput(
            f"lab {name} does not exist; if it was removed with --purge, what run {run_id} made "
            f"there went with it, and loadstone results delete {run_id} --force{location.option} "
            "deletes the run"
        )


def require_run_undone(store: "Store", run_id: str, *, anyway: bool) -> None:
    """Refuse if a fault of a run, or of its target, is still in force."""
    from loadstone.faults.journal import FaultTarget
    from loadstone.faults.pending import require_undone, run_target

    try:
        target = run_target(store.get(run_id))
    except EnvironmentUnusable:  # its rows are damaged: only its id is known
        target = FaultTarget()
    say = partial(click.echo, err=True)
    require_undone(target, say, anyway=anyway, run_id=run_id)


def as_before(record: "JournalContents") -> tuple[str | None, str | None]:
    """Return the --lab and --cloud of the run's own target."""
    option, _, name = record.chosen.partition(" ")
    return (name if option == "--lab" else None, name if option == "--cloud" else None)
