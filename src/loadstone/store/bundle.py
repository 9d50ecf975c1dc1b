"""A run with its samples as one file, to carry it from one store to another."""

import json
import re
import shutil
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from loadstone import files
from loadstone.errors import EnvironmentUnusable, InvalidInput
from loadstone.result import Result
from loadstone.store import codec
from loadstone.store.store import Store

FORMAT = "loadstone run 1"
# What is unpacked lands below the run's folder and nowhere else.
RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")
SAMPLES = re.compile(r"samples/[0-9A-Za-z_-]+\.parquet")


def export(store: Store, name: str, path: Path) -> str:
    """Write a run to a file and give its id."""
    result = store.get(name)
    folder = store.folder(result.run_id)
    head = {"format": FORMAT, "result": codec.to_plain(result)}
    # Parquet is compressed already.
    with files.replaced(path) as half, ZipFile(half, "w", ZIP_STORED) as bundle:
        bundle.writestr("result.json", json.dumps(head, allow_nan=False))
        for file in sorted((folder / "samples").glob("*.parquet")):
            bundle.write(file, f"samples/{file.name}")
    return result.run_id


def take_in(store: Store, path: Path) -> str:
    """Keep the run that a file holds and give its id."""
    try:
        with ZipFile(path) as bundle:
            result = _result(bundle.read("result.json"), path)
            if store.holds(result.run_id):
                raise InvalidInput(f"run {result.run_id} is already in this store")
            _unpack(bundle, store.folder(result.run_id))
            store.begin(result)
    except (BadZipFile, KeyError) as problem:
        raise InvalidInput(f"{path} is no exported run (loadstone results export)") from problem
    except OSError as problem:
        raise EnvironmentUnusable(f"cannot take in {path}: {problem.strerror}") from problem
    return result.run_id


def _unpack(bundle: ZipFile, folder: Path) -> None:
    try:
        for name in filter(SAMPLES.fullmatch, bundle.namelist()):
            bundle.extract(name, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _result(text: bytes, path: Path) -> Result:
    try:
        head = json.loads(text)
        if head["format"] != FORMAT:
            raise InvalidInput(f"{path} is {head['format']!r}, this Loadstone reads {FORMAT!r}")
        result = codec.from_plain(Result, head["result"])
    except (ValueError, TypeError, KeyError) as problem:
        raise InvalidInput(f"{path} is no exported run: {problem}") from problem
    if not RUN_ID.fullmatch(result.run_id):
        raise InvalidInput(f"{path}: {result.run_id!r} is no run id")
    return result
