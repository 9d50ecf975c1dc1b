"""User-defined scenarios: Python files, or packages with an entry point `loadstone.scenarios`."""

import contextlib
import importlib.metadata
import inspect
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from loadstone.engine.callables.model import Function
from loadstone.engine.callables.module import module_of
from loadstone.errors import InvalidInput
from loadstone.keystone.scenarios.model import Scenario
from loadstone.plan.mix import is_mix
from loadstone.rally.functions.catalogue import FUNCTIONS
from loadstone.rally.scenarios import FIXED
from loadstone.rally.task.catalogue.own import OWN_NAMES
from loadstone.rally.task.catalogue.scenario import ArgType, Argument, CatalogueEntry
from loadstone.rally.task.catalogue.scenarios import SCENARIOS
from loadstone.system.paths import expanded

GROUP = "loadstone.scenarios"
_MARK = "__loadstone_scenario__"
_KINDS = {
    int: ArgType.WHOLE,
    float: ArgType.NUMBER,
    str: ArgType.TEXT,
    bool: ArgType.FLAG,
    dict: ArgType.MAPPING,
}
_UNNAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
_RESERVED = ("_", "model_config", "model_dump", "model_validate")  # of pydantic's forms
_NOT_RUN_BY_A_CALL = (
    inspect.isclass,
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)

F = TypeVar("F", bound=Callable[..., object])


def scenario(name: str) -> Callable[[F], F]:
    """Register a function as a scenario that task files may name.

    Its first parameter is the iteration's Context; the others, with their annotations and defaults,
    are the scenario's arguments.
    """

    def marked(function: F) -> F:
        setattr(function, _MARK, name)
        return function

    return marked


def load_plugins(files: Iterable[str]) -> tuple[str, ...]:
    """Register the scenarios of files and installed packages; return their names.

    What a plugin prints during import goes to stderr: stdout is for results.
    """
    with contextlib.redirect_stdout(sys.stderr):
        return _loaded(files)


def _loaded(files: Iterable[str]) -> tuple[str, ...]:
    names: list[str] = []
    for file in files:
        path = expanded(file).resolve()
        names.extend(_registered(_imported(path), str(path)))
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            module = point.load()
        except (Exception, SystemExit) as error:
            raise _unusable(f"entry point {point.name} of {GROUP}", error) from None
        names.extend(_registered(module, point.module))
    return tuple(names)


def _imported(path: Path) -> ModuleType:
    if path.suffix != ".py" or not os.path.isfile(path):
        raise InvalidInput(f"--plugin {path}: is not a Python file (NAME.py)")
    try:
        return module_of(path)
    except (Exception, SystemExit) as error:
        raise _unusable(f"--plugin {path}", error) from None


def _unusable(what: str, error: BaseException) -> InvalidInput:
    message = " ".join(str(error).split())
    return InvalidInput(f"{what}: cannot be loaded: {type(error).__name__}: {message}")


def _registered(module: ModuleType, place: str) -> list[str]:
    # The name in the module, where a worker finds it: a decorator or a factory gives several
    # functions one `__name__`.
    found = {
        id(value): (value, attribute)
        for attribute, value in vars(module).items()
        if _name_of(value) is not None
    }
    if not found:
        raise InvalidInput(
            f"{place}: defines no scenario: a function marked @scenario(NAME), or a Scenario"
        )
    for name, count in Counter(_name_of(value) for value, _ in found.values()).items():
        if count > 1:
            raise InvalidInput(f"{place}: has {count} scenarios {name}; give each its own name")
    return [_register(value, attribute, place) for value, attribute in found.values()]


def _name_of(value: Any) -> str | None:
    """Return the name of a scenario; None if the value is none."""
    name = value.name if isinstance(value, Scenario) else getattr(value, _MARK, None)
    return name if isinstance(name, str) else None


def _register(value: Any, attribute: str, place: str) -> str:
    if isinstance(value, Scenario):
        entry = CatalogueEntry(
            value.name, f"{value.title}.", needs_own_users=bool(value.goes_with_users)
        )
        _enter(entry, place)
        FIXED[value.name] = value
        return value.name
    name: str = getattr(value, _MARK)
    about = (inspect.getdoc(value) or name).splitlines()[0]
    arguments, takes_any = _arguments(value, f"{place}: {name}")
    _enter(CatalogueEntry(name, about, arguments, takes_any), place)
    FUNCTIONS[name] = Function(place, attribute, ("loadstone.rally.functions.cloud",))
    return name


_places: dict[str, str] = {}  # of the scenarios from plugins


def _enter(entry: CatalogueEntry, place: str) -> None:
    if not entry.name or "@" in entry.name:
        raise InvalidInput(f"{place}: {entry.name!r} cannot be the name of a scenario")
    if entry.name in OWN_NAMES or is_mix(entry.name):
        raise InvalidInput(
            f"{place}: there is a scenario {entry.name} already (Loadstone's own); give yours "
            "another name"
        )
    if entry.name in SCENARIOS and _places.get(entry.name) != place:
        other = _places.get(entry.name, "Loadstone's own")
        raise InvalidInput(f"{place}: there is a scenario {entry.name} already ({other})")
    _places[entry.name] = place
    SCENARIOS[entry.name] = entry


def _arguments(function: Callable[..., object], where: str) -> tuple[tuple[Argument, ...], bool]:
    if any(is_such(function) for is_such in _NOT_RUN_BY_A_CALL):
        raise InvalidInput(
            f"{where}: must be a plain function: a call of a class, or of a function with async or "
            "yield, does not run it"
        )
    parameters = list(_signature(function).parameters.values())
    if not parameters:
        raise InvalidInput(f"{where}: its first parameter must take the iteration's context")
    arguments, takes_any = [], False
    for parameter in parameters[1:]:
        if parameter.kind in _UNNAMED:
            raise InvalidInput(
                f"{where}: parameter {parameter.name} cannot be given by name, as arguments are"
            )
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.name.startswith(_RESERVED):
            raise InvalidInput(f"{where}: parameter {parameter.name} needs another name")
        else:
            arguments.append(_argument(parameter))
    return tuple(arguments), takes_any


def _signature(function: Callable[..., object]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except (AttributeError, NameError, SyntaxError, TypeError):
        # Imported for type checkers only, or words: the annotations stay strings, and any value is
        # accepted.
        return inspect.signature(function)


def _argument(parameter: inspect.Parameter) -> Argument:
    kinds = _alternatives(parameter.annotation)
    others = [kind for kind in kinds if kind is not type(None)]
    # An annotation may be any value, such as [str].
    is_a_type = len(others) == 1 and isinstance(others[0], type)
    is_required = parameter.default is inspect.Parameter.empty
    return Argument(
        parameter.name,
        _KINDS.get(others[0], ArgType.ANY) if is_a_type else ArgType.ANY,
        parameter.name,
        None if is_required else parameter.default,
        is_required,
        takes_null=len(others) < len(kinds),
    )


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the types of an annotation: `dict[str, int] | None` is a dict or None."""
    is_union = get_origin(annotation) in (Union, UnionType)
    types = get_args(annotation) if is_union else (annotation,)
    return tuple(get_origin(one) or one for one in types)
