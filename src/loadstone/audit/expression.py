"""Expressions of rules: only comparisons and arithmetic over facts."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from loadstone.audit.facts import MissingFact
from loadstone.errors import InvalidInput

MOST_CHARACTERS = 500
Lookup = Callable[[str], Any]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _same(values: Any) -> bool:
    return len(set(values)) <= 1


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "ceil": math.ceil,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "same": _same,
    "startswith": lambda text, beginning: str(text).startswith(beginning),
    "sum": sum,
}
KNOWN = "known"  # known(fact): whether the fact was read


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression, and the facts that it names."""

    tree: ast.expr
    names: frozenset[str]

    def value(self, lookup: Lookup) -> Any:
        """Evaluate the expression; `lookup` returns a fact or raises MissingFact."""
        return _value(self.tree, lookup, {})


@cache
def parse(text: str) -> Expression:
    """Return a checked expression, or raise InvalidInput."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"expression of {len(text)} characters; at most {MOST_CHARACTERS}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as wrong:
        raise InvalidInput(f"not an expression: {text!r}: {wrong}") from None
    names: set[str] = set()
    _check(tree, names, frozenset())
    return Expression(tree, frozenset(names))


def _check(node: ast.AST, names: set[str], bound: frozenset[str]) -> None:
    """Collect the names of facts; raise for every node type not listed here."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return
        case ast.Attribute() | ast.Name():
            name = _dotted(node)
            if name not in bound:
                names.add(name)
        case ast.Call(func=ast.Name(id="known"), args=[argument], keywords=[]):
            names.add(_dotted(argument))
        case ast.Call(func=ast.Name(id=called), keywords=[]) if called in _FUNCTIONS:
            for argument in node.args:
                _check(argument, names, bound)
        case ast.GeneratorExp(
            generators=[ast.comprehension(target=ast.Name(id=each), is_async=0) as loop]
        ):
            _check(loop.iter, names, bound)
            for part in (node.elt, *loop.ifs):
                _check(part, names, bound | {each})
        case _:
            for part in _operands(node):
                _check(part, names, bound)


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BoolOp():
            return node.values
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            return [node.operand]
        case ast.BinOp() if type(node.op) in _ARITHMETIC:
            return [node.left, node.right]
        case ast.Compare() if all(type(op) in _COMPARE for op in node.ops):
            return [node.left, *node.comparators]
        case ast.List() | ast.Tuple():
            return node.elts
        case ast.IfExp():
            return [node.test, node.body, node.orelse]
    raise InvalidInput(f"{type(node).__name__} is not allowed in an expression")


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name) if not name.startswith("_"):
            return f"{_dotted(inner)}.{name}"
    raise InvalidInput(f"{ast.unparse(node)} is not the name of a fact")


def _value(node: ast.expr, lookup: Lookup, bound: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name(id=name) if name in bound:
            return bound[name]
        case ast.Attribute() | ast.Name():
            return lookup(_dotted(node))
        case ast.Call(func=ast.Name(id=called)):
            return _call(called, node, lookup, bound)
        case ast.IfExp():
            chosen = node.body if _value(node.test, lookup, bound) else node.orelse
            return _value(chosen, lookup, bound)
    return _composed(node, lookup, bound)


def _composed(node: ast.expr, lookup: Lookup, bound: Mapping[str, Any]) -> Any:
    match node:
        case ast.GeneratorExp():
            return _each(node, lookup, bound)
        case ast.List() | ast.Tuple():
            return tuple(_value(part, lookup, bound) for part in node.elts)
    return _operation(node, lookup, bound)


def _operation(node: ast.expr, lookup: Lookup, bound: Mapping[str, Any]) -> Any:
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(_value(part, lookup, bound) for part in node.values)
        case ast.BoolOp():
            return any(_value(part, lookup, bound) for part in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, lookup, bound)
        case ast.UnaryOp():
            return -_value(node.operand, lookup, bound)
        case ast.BinOp():
            sides = (_value(node.left, lookup, bound), _value(node.right, lookup, bound))
            return _ARITHMETIC[type(node.op)](*_numbers(sides))
        case ast.Compare():
            values = [_value(part, lookup, bound) for part in (node.left, *node.comparators)]
            steps = zip(node.ops, values, values[1:], strict=False)
            return all(_COMPARE[type(op)](a, b) for op, a, b in steps)
    raise InvalidInput(f"{type(node).__name__} is not allowed in an expression")


def _numbers(sides: tuple[Any, Any]) -> tuple[Any, Any]:
    # Otherwise 'x' * 10**9 would be an expression.
    if not all(isinstance(side, int | float) for side in sides):
        raise TypeError("arithmetic needs numbers")
    return sides


def _call(called: str, node: ast.Call, lookup: Lookup, bound: Mapping[str, Any]) -> Any:
    if called == KNOWN:
        try:
            lookup(_dotted(node.args[0]))
        except MissingFact:
            return False
        return True
    return _FUNCTIONS[called](*(_value(argument, lookup, bound) for argument in node.args))


def _each(node: ast.GeneratorExp, lookup: Lookup, bound: Mapping[str, Any]) -> tuple[Any, ...]:
    loop = node.generators[0]
    name = _dotted(loop.target)
    found = []
    for item in _value(loop.iter, lookup, bound):
        inner = {**bound, name: item}
        if all(_value(condition, lookup, inner) for condition in loop.ifs):
            found.append(_value(node.elt, lookup, inner))
    return tuple(found)
