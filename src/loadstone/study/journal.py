"""Journal of a study: `studies/ID/cells.jsonl` beside the results.

The first line is the study itself, every further line a turn that has ended. Pairs of cells that
are loaded in turns are numbered on after the last turn.
"""

import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from loadstone.compare.answer import MetricComparison
from loadstone.compare.turns import NotFull
from loadstone.errors import InvalidInput
from loadstone.result.model import Tags
from loadstone.store.codec import dumps
from loadstone.store.journal import JournalKind
from loadstone.store.location import StoreLocation
from loadstone.study.model import Study
from loadstone.study.read import StudySource
from loadstone.system import files

JOURNALS = JournalKind("study", "studies", "cells.jsonl", "measures its turn again")


@dataclass(frozen=True, slots=True)
class BegunStudy:
    """A study as it was when it began; later changes of its file have no effect.

    Secrets stay in the user's file: the text of a study with secrets is stored masked, with the
    path and the hash of that file.
    """

    file: str
    text: str = field(repr=False)
    quick: bool
    seed: int
    started_at: str  # ISO 8601, UTC
    path: str = ""  # of the file, absolute; empty: the text is not masked
    sha256: str = ""  # of the file's text
    tags: Tags = ()  # of every run

    def study(self) -> Study:
        """Parse the study from its text."""
        return StudySource(self.file, self.text).study(quick=self.quick)

    def masked(self) -> "BegunStudy":
        """Return it with its secrets masked; InvalidInput if that makes it invalid."""
        source = StudySource(self.file, self.text)
        # Of the full study, as the text contains what the quick form leaves out, too.
        secrets = source.study(quick=False).secrets
        if not secrets:
            return self
        text = source.without_secrets(secrets)
        masked = replace(
            self, text=text, path=str(Path(self.file).absolute()), sha256=_digest(self.text)
        )
        try:
            masked.study()
        except InvalidInput as wrong:
            raise InvalidInput(
                f"{self.file}: with its secrets masked, as the study's journal keeps it, it cannot "
                f"be read: {str(wrong).splitlines()[0]}; no level may differ by a secret alone, "
                "and passwords must be texts"
            ) from None
        return masked

    def with_secrets(self) -> "BegunStudy":
        """Return it with its secrets from the user's file; InvalidInput if the file has changed."""
        if not self.sha256:
            return self
        try:
            text = Path(self.path).read_bytes().decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            text = ""
        if _digest(text) != self.sha256:
            raise InvalidInput(
                f"{self.path}: is not the file with which the study began, whose secrets are kept "
                "nowhere else; put that file back, or begin the study anew"
            )
        return replace(self, text=text, path="", sha256="")


@dataclass(frozen=True, slots=True)
class ThroughputRatio:
    """The ratio of two cells that were loaded in turns."""

    run_ids: tuple[str, str]  # of the base and of the other
    throughput: MetricComparison
    not_full: NotFull | None = None  # the cells whose throughput may be higher


@dataclass(frozen=True, slots=True)
class TurnResult:
    """Result of one turn: a run in the store, or the reason why there is none."""

    turn: int
    run_id: str | None
    failure: str | None
    exit_code: int = 0  # of the failure
    is_valid: bool = True  # the load generator was not the limit
    host: str = ""  # the lab host that measured it; empty: this machine
    ratio: ThroughputRatio | None = None  # of a pair of cells, whose first run `run_id` is

    @property
    def is_done(self) -> bool:
        """Whether another try cannot improve the result."""
        return self.run_id is not None and self.is_valid


@dataclass(frozen=True, slots=True)
class StudyJournal:
    """The journal of one study."""

    path: Path
    begun: BegunStudy
    store: StoreLocation  # of the study's results

    @property
    def study_id(self) -> str:
        """The study's id: what `--resume` takes."""
        return self.path.parent.name

    def with_secrets(self) -> "StudyJournal":
        """Return the journal with the study's secrets, to run the study."""
        return replace(self, begun=self.begun.with_secrets())

    def ended(self) -> dict[int, TurnResult]:
        """Return the ended turns by number; the last line of a turn is valid."""
        return {one.turn: one for one in JOURNALS.ended(TurnResult, self.path)}

    def add(self, result: TurnResult) -> None:
        """Append the result of a turn."""
        files.append_line(self.path, dumps(result))

    def locked(self) -> AbstractContextManager[None]:
        """Lock the study against other processes; EnvironmentUnusable if it is running already."""
        return JOURNALS.locked(self.path)


def begin(
    store: Path | StoreLocation,
    source: StudySource,
    *,
    quick: bool,
    seed: int,
    tags: Tags = (),
) -> StudyJournal:
    """Create the journal of a new study; secrets in its text are masked."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    begun = BegunStudy(source.file, source.text, quick, seed, started_at, tags=tags).masked()
    location = StoreLocation.of(store)
    return StudyJournal(JOURNALS.begin(location, begun), begun, location)


def find(store: Path | StoreLocation, study_id: str) -> StudyJournal:
    """Return the journal of a started study by its id or a unique prefix."""
    location = StoreLocation.of(store)
    path = JOURNALS.find(location, study_id)
    return StudyJournal(path, JOURNALS.begun(BegunStudy, path), location)


def ids(store: Path | StoreLocation) -> tuple[str, ...]:
    """Return the ids of all started studies, oldest first."""
    return JOURNALS.ids(StoreLocation.of(store))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
