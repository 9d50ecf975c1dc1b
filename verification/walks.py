"""Which modules a command passes until its first load: python -m verification.walks COMMAND...

Runs `loadstone COMMAND...` in this process and prints two lists: the modules on the stack when the
engine is called (the way down), and all modules of Loadstone of which a function ran before it.
"""

import sys
from inspect import CO_OPTIMIZED
from types import FrameType

from loadstone.cli import main

ENGINE = {
    ("loadstone.engine.gate", "run"),
    ("loadstone.engine.gate", "run_to_file"),
    ("loadstone.engine.gate", "call"),
}
entered: list[str] = []


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _stack(frame: FrameType | None) -> list[str]:
    names = []
    while frame is not None:
        names.append(_module(frame))
        frame = frame.f_back
    return [name for name in reversed(names) if name.startswith("loadstone")]


def watch(frame: FrameType, event: str, _: object) -> None:
    """Note each module whose function is called, up to the first call of the engine."""
    code = frame.f_code
    # Neither modules nor class bodies, nor the methods that dataclasses generate.
    if event != "call" or not code.co_flags & CO_OPTIMIZED or code.co_filename == "<string>":
        return
    name = _module(frame)
    if not name.startswith("loadstone"):
        return
    if name not in entered:
        entered.append(name)
    if (name, frame.f_code.co_name) in ENGINE:
        sys.setprofile(None)
        way = _stack(frame)
        once = [one for at, one in enumerate(way) if at == 0 or way[at - 1] != one]
        print(f"way down, {len(set(once))} modules: {' > '.join(once)}", file=sys.stderr)
        print(f"entered, {len(entered)} modules: {' '.join(sorted(entered))}", file=sys.stderr)


if __name__ == "__main__":
    sys.argv = ["loadstone", *sys.argv[1:]]
    sys.setprofile(watch)
    main()
