"""Export and import of a run with its samples as one ZIP file."""

import json
import re
import shutil
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from loadstone import files
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.result import Run
from loadstone.store import codec
from loadstone.store.migrations.convert import measurements
from loadstone.store.store import Store

FORMAT = "loadstone run 2"
BEFORE = "loadstone run 1"  # format before revision 0003
# These patterns keep unpacked files below the run's folder.
RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")
SAMPLES = re.compile(r"((samples|readings)/[\w-]+\.parquet|profiles/[\w-]+\.folded)", re.ASCII)


def export(store: Store, name: str, path: Path) -> str:
    """Write a run to a file and return its id."""
    run = store.get(name)
    store.require_files(run.run_id)
    folder = store.folder(run.run_id)
    head = {"format": FORMAT, "result": codec.to_plain(run)}
    # Stored, not deflated: Parquet is compressed already.
    with files.replaced(path) as half, ZipFile(half, "w", ZIP_STORED) as bundle:
        bundle.writestr("result.json", json.dumps(head, allow_nan=False))
        for kind in ("samples", "readings", "profiles"):
            for file in sorted((folder / kind).glob("*")):
                if SAMPLES.fullmatch(f"{kind}/{file.name}"):
                    bundle.write(file, f"{kind}/{file.name}")
    return run.run_id


def import_run(store: Store, path: Path) -> str:
    """Store the run of an exported file and return its id."""
    try:
        with ZipFile(path) as bundle:
            run = _run(bundle.read("result.json"), path)
            if store.holds(run.run_id):
                raise InvalidInput(f"run {run.run_id} is already in this store")
            _unpack(bundle, store.folder(run.run_id))
            store.begin(run)
    except (BadZipFile, KeyError) as problem:
        raise InvalidInput(f"{path} is no exported run (loadstone results export)") from problem
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot take in {path}: {problem.strerror}") from problem
    return run.run_id


def _unpack(bundle: ZipFile, folder: Path) -> None:
    try:
        for name in filter(SAMPLES.fullmatch, bundle.namelist()):
            bundle.extract(name, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(text: bytes, path: Path) -> Run:
    try:
        head = json.loads(text)
        plain = head["result"]
        if head["format"] == BEFORE:
            plain["measurements"] = list(measurements(plain))
        elif head["format"] != FORMAT:
            raise InvalidInput(f"{path} is {head['format']!r}, this Loadstone reads {FORMAT!r}")
        run = codec.from_plain(Run, plain)
    except (ValueError, TypeError, KeyError) as problem:
        raise InvalidInput(f"{path} is no exported run: {problem}") from problem
    if not RUN_ID.fullmatch(run.run_id):
        raise InvalidInput(f"{path}: {run.run_id!r} is no run id")
    return run
