"""Expressions of rules: only comparisons and arithmetic over facts."""

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

from loadstone.audit.facts import MissingFact
from loadstone.errors import InvalidInput

MOST_CHARACTERS = 500
Lookup = Callable[[str], Any]

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_ALLOWED = (
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.IfExp),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.List, ast.Tuple, ast.Load),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "ceil": math.ceil,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "same": lambda values: len(set(values)) <= 1,
    "startswith": lambda text, beginning: str(text).startswith(beginning),
    "sum": sum,
}
KNOWN = "known"  # known(fact): whether the fact was read
_FACT, _NUMBER = "_fact", "_number"  # names in the translation


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression, and the facts that it names."""

    code: CodeType
    names: frozenset[str]

    def value(self, lookup: Lookup) -> Any:
        """Evaluate the expression; `lookup` returns a fact or raises MissingFact."""

        def known(name: str) -> bool:
            try:
                lookup(name)
            except MissingFact:
                return False
            return True

        own = {"__builtins__": {}, _FACT: lookup, _NUMBER: _number, KNOWN: known}
        return eval(self.code, own | _FUNCTIONS)  # noqa: S307  # `parse` permits nothing else


@cache
def parse(text: str) -> Expression:
    """Return a checked expression, or raise InvalidInput."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidInput(f"expression of {len(text)} characters; at most {MOST_CHARACTERS}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as wrong:
        raise InvalidInput(f"not an expression: {text!r}: {wrong}") from None
    translation = _Translation()
    body = ast.Expression(translation.visit(tree))
    code = compile(ast.fix_missing_locations(body), "<rule>", "eval")
    return Expression(code, frozenset(translation.names))


def _number(value: Any) -> Any:
    # Otherwise 'x' * 10**9 would be an expression.
    if not isinstance(value, int | float):
        raise TypeError("arithmetic needs numbers")
    return value


class _Translation(ast.NodeTransformer):
    """Replaces the names of facts by look-ups; raises for every node type not listed here."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._bound: list[str] = []

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _ALLOWED):
            raise InvalidInput(f"{type(node).__name__} is not allowed in an expression")
        return super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_plain = isinstance(node.value, bool | int | float | str)
        return node if is_plain else self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return node if node.id in self._bound else self._of_fact(_FACT, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._of_fact(_FACT, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if not isinstance(node.op, _ARITHMETIC):
            return self.generic_visit(node)
        left, right = (_call(_NUMBER, self.visit(side)) for side in (node.left, node.right))
        return ast.BinOp(left, node.op, right)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node:
            case ast.Call(func=ast.Name(id="known"), args=[argument], keywords=[]):
                return self._of_fact(KNOWN, argument)
            case ast.Call(func=ast.Name(id=called), keywords=[]) if called in _FUNCTIONS:
                return _call(called, *map(self.visit, node.args))
        return self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        match node.generators:
            case [ast.comprehension(target=ast.Name(id=each), is_async=0) as loop]:
                loop.iter = self.visit(loop.iter)
                self._bound.append(each)
                loop.ifs = [self.visit(condition) for condition in loop.ifs]
                each_value = self.visit(node.elt)
                self._bound.pop()
                return ast.ListComp(each_value, [loop])
        return self.generic_visit(node)

    def _of_fact(self, called: str, node: ast.AST) -> ast.Call:
        name = _dotted(node)
        self.names.add(name)
        return _call(called, ast.Constant(name))


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _dotted(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=name) if not name.startswith("_"):
            return f"{_dotted(inner)}.{name}"
    raise InvalidInput(f"{ast.unparse(node)} is not the name of a fact")
