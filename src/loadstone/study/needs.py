"""The servers that a study needs on the machine that it measures."""

from loadstone.errors import EnvironmentUnusable
from loadstone.lab.keystone import compose, settings
from loadstone.lab.programs import Program, missing
from loadstone.study.model import Study


def programs(study: Study) -> tuple[Program, ...]:
    """Return the programs that the deployments of all cells need."""
    deployed = (cell for cell in study.cells if cell.settings or not cell.is_reference)
    of_cells = dict.fromkeys(cell.settings for cell in deployed)
    found = (one for pairs in of_cells for one in compose.programs(settings.read(pairs)))
    return tuple(dict.fromkeys(found))


def packages(study: Study) -> tuple[str, ...]:
    """Return the Debian packages that hold them."""
    return tuple(sorted({one.package for one in programs(study) if one.package}))


def require(study: Study) -> None:
    """Raise EnvironmentUnusable with all that is missing, before the first cell is measured."""
    lacking = tuple(program for program in programs(study) if program.find() is None)
    if not lacking:
        return
    try:
        missing(lacking)
    except EnvironmentUnusable as problem:
        raise EnvironmentUnusable(f"study {study.name}: {problem}") from None
