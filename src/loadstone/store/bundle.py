"""Export and import of a run with its samples as one ZIP file."""

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from loadstone.analysis.model import Trial
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.result.model import Measurement, Run
from loadstone.store import codec, rows
from loadstone.store.import_limits import MOST_JSON_BYTES, moment_s, read_json, require_date
from loadstone.store.run_id import is_file_name, is_run_id
from loadstone.store.store import Store
from loadstone.system import files
from loadstone.system.say import Say

FORMAT = "loadstone run 3"
RESULT = "result.json"
MOST_BYTES = 16 << 30  # unpacked
MOST_RATIO = 50  # of unpacked to packed; an export is not compressed again
MOST_FILES = 100_000
STATUSES = ("finished", "interrupted", "failed", "aborted")
_ENCRYPTED = 0x1  # flag of an entry


def export(store: Store, run: Run, path: Path) -> None:
    """Write a run to a file that only its owner may read."""
    store.require_files(run.run_id)
    folder = store.folder(run.run_id)
    head = {"format": FORMAT, "result": codec.to_plain(run)}
    # Stored, not deflated: Parquet is compressed already.
    with (
        files.replaced(path, files.PRIVATE) as half,
        ZipFile(half, "w", ZIP_STORED, strict_timestamps=False) as bundle,  # files may be of 1970
    ):
        bundle.writestr(RESULT, json.dumps(head, allow_nan=False))
        for kind in ("samples", "readings", "profiles"):
            for file in sorted((folder / kind).glob("*")):
                if is_file_name(f"{kind}/{file.name}") and not file.is_symlink():
                    bundle.write(
                        store.file(run.run_id, f"{kind}/{file.name}"), f"{kind}/{file.name}"
                    )


def import_run(
    store: Store,
    path: Path,
    say: Say = lambda _line: None,
    require: Callable[[Run], None] = lambda _run: None,
) -> str:
    """Store the run of an exported file and return its id.

    Measurements, trials and sample files that are damaged are left out; `say` gets a line for each.
    `require` raises an exception of `codec.BAD_DATA` for a run that cannot be shown. Raises
    InvalidInput for a file that is no export, is encrypted or unpacks to too much.
    """
    skipped: list[str] = []
    try:
        with ZipFile(path) as bundle:
            entries = _entries(bundle, path)
            run = _run(bundle.read(entries[RESULT]), path, skipped)
            _require_usable(run, path, require)
            if store.holds(run.run_id):
                raise InvalidInput(f"run {run.run_id} is already in this store")
            _store(store, run, bundle, entries, skipped)
    except (
        *(BadZipFile, KeyError, EOFError, zlib.error),
        *(NotImplementedError, UnicodeDecodeError),  # of its directory
    ) as problem:
        raise InvalidInput(f"{path} is not an exported run (loadstone results export)") from problem
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot import {path}: {problem.strerror}") from problem
    for line in skipped:
        say(line)
    return run.run_id


def _entries(bundle: ZipFile, path: Path) -> dict[str, ZipInfo]:
    """Return the files of an export by name; InvalidInput if they unpack to too much."""
    found = bundle.infolist()
    unpacked, packed = sum(one.file_size for one in found), path.stat().st_size
    if len(found) > MOST_FILES:
        raise InvalidInput(f"{path} has {len(found):,} files; at most {MOST_FILES:,} are unpacked")
    if unpacked > min(MOST_BYTES, MOST_RATIO * packed):
        raise InvalidInput(
            f"{path} has {packed:,} bytes and would unpack to {unpacked:,}; at most {MOST_RATIO} "
            f"times as many and {MOST_BYTES >> 30} GiB are unpacked"
        )
    for one in found:
        if one.flag_bits & _ENCRYPTED:
            raise InvalidInput(f"{path} is encrypted; decrypt it first")
        if one.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise InvalidInput(f"{path}: {one.filename!r:.80} is compressed in an unknown way")
    entries = {one.filename: one for one in found}
    if entries[RESULT].file_size > MOST_JSON_BYTES:
        raise InvalidInput(f"{path}: {RESULT} has more than {MOST_JSON_BYTES:,} bytes")
    return entries


def _store(
    store: Store, run: Run, bundle: ZipFile, entries: dict[str, ZipInfo], skipped: list[str]
) -> None:
    folder = store.make_folder(run.run_id)
    damaged: dict[str, str] = {}
    try:
        for name in filter(is_file_name, entries):
            path = folder / name
            files.make_private_folder(path.parent)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, files.PRIVATE)
            try:
                with open(handle, "wb") as file, bundle.open(entries[name]) as source:
                    shutil.copyfileobj(source, file)
            except (BadZipFile, EOFError, zlib.error) as problem:
                path.unlink()
                damaged[name] = str(problem)
        found = _with_readable_samples(run, folder, damaged)
        skipped.extend(f"{name}: {why}" for name, why in damaged.items())
        store.begin(found)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _with_readable_samples(run: Run, folder: Path, damaged: dict[str, str]) -> Run:
    """Return the run; sample files that cannot be read are removed, and join the damaged files."""

    def kept(trial: Trial) -> Trial:
        if trial.samples_file is None:
            return trial
        path = folder / trial.samples_file
        why = _unreadable(path) if path.is_file() else "it is missing"
        if why is None:
            return trial
        path.unlink(missing_ok=True)
        damaged.setdefault(trial.samples_file, why)
        return replace(trial, samples_file=None)

    return replace(
        run,
        measurements=tuple(
            replace(one, trials=tuple(map(kept, one.trials))) for one in run.measurements
        ),
    )


def _unreadable(path: Path) -> str | None:
    """Return why a sample file is not imported, or None."""
    from loadstone.engine.parquet import SampleFile

    file = SampleFile(path)
    size = path.stat().st_size
    try:
        count = file.rows
        # A row has three times in nanoseconds, which take more than a byte when compressed.
        if count > size:
            return f"it claims {count:,} rows in {size:,} bytes"
        for _ in file.groups():  # the footer alone does not show damage in the pages
            pass
    except EnvironmentUnusable as problem:
        return str(problem)
    return None


def _run(text: bytes, path: Path, skipped: list[str]) -> Run:
    try:
        head = read_json(text, f"{path}: {RESULT}")
        if head["format"] != FORMAT:
            raise InvalidInput(f"{path} is {head['format']!r:.60}, this Loadstone reads {FORMAT!r}")
        plain = head["result"]
        run = codec.from_plain(Run, plain | {"measurements": []})
        run = replace(
            run,
            started_at=_in_utc(run.started_at),
            ended_at=None if run.ended_at is None else _in_utc(run.ended_at),
        )
        found = tuple(_measurements(plain["measurements"], skipped))
        if plain["measurements"] and not found:
            raise ValueError(skipped[0])
    except codec.BAD_DATA as problem:
        raise InvalidInput(f"{path} is not an exported run: {_short(problem)}") from problem
    if not is_run_id(run.run_id):
        raise InvalidInput(f"{path}: {run.run_id!r:.120} is not a run id")
    status = run.status if run.status in STATUSES else "interrupted"
    return replace(run, measurements=found, status=status)


def _in_utc(text: str) -> str:
    """Return a date as Loadstone writes it: runs are sorted by its text."""
    return require_date(text).astimezone(UTC).isoformat()


def _measurements(plains: Any, skipped: list[str]) -> Iterator[Measurement]:
    for number, plain in enumerate(plains, 1):
        where = f"measurement {number}"
        try:
            measurement = codec.from_plain(Measurement, plain | {"trials": []})
            rows.measurement_row("", 0, measurement)  # which reads its specification
            trials = list(plain["trials"])
        except codec.BAD_DATA as problem:
            skipped.append(f"{where}: {_short(problem)}")
            continue
        kept: dict[int, Trial] = {}
        for place, one in enumerate(trials, 1):
            try:
                trial = _trial(one, measurement)
                if trial.number in kept:
                    raise ValueError(f"there are two of number {trial.number}")
                kept[trial.number] = trial
            except codec.BAD_DATA as problem:
                skipped.append(f"{where}, trial {place}: {_short(problem)}")
        yield replace(measurement, trials=tuple(kept.values()))


def _trial(plain: Any, measurement: Measurement) -> Trial:
    trial = codec.from_plain(Trial, plain)
    if trial.samples_file is not None and not is_file_name(trial.samples_file):
        raise ValueError(f"{trial.samples_file!r:.80} is not a file of a run")
    if trial.start_s is not None:
        moment_s(trial.start_s, "its start")
    rows.require_storable(trial, measurement)
    return trial


def _require_usable(run: Run, path: Path, require: Callable[[Run], None]) -> None:
    try:
        require(run)
    except codec.BAD_DATA as problem:
        raise InvalidInput(f"{path} is not an exported run: {_short(problem)}") from problem


def _short(problem: Exception) -> str:
    """Return an exception in a few words."""
    text = " ".join(str(problem).split())[:160]
    return f"{problem.args[0]!r} is missing" if isinstance(problem, KeyError) else text or "damaged"
