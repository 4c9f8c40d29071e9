"""Small wrong changes to a module, one at a time: each should make one of its tests fail.

Changed are comparisons, arithmetic, ``and``/``or``/``not``, conditions, constants, defaults, what
is returned, a call's arguments and functions with an opposite (``min``/``max``); statements are
left out. Left alone are annotations, decorators, docstrings and messages of errors: they compute
nothing.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Mod: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OPPOSITES = {
    "min": "max",
    "maximum": "minimum",
    "floor": "ceil",
    "any": "all",
    "sum": "mean",
    "clamp_min": "clamp_max",
}
OPPOSITES |= {there: here for here, there in OPPOSITES.items()}
SYMMETRIC = ("same_shape", "dot", "min", "max", "minimum", "maximum")
"""Functions that do not care about the order of what they are given."""
UNTOUCHED = ("annotation", "returns", "decorator_list", "type_params", "op", "ops", "ctx")


@dataclass(frozen=True)
class Mutant:
    """One change, ready to run.

    Attributes:
        where: the class and function it is in; ``module`` outside of those.
        line: in the source, counted from 1.
        change: what stood there and what stands there now; distinguished by a number where the same
            change is made to the same text of one function twice.
        code: the whole module with the change.
    """

    where: str
    line: int
    change: str
    code: CodeType

    def __str__(self) -> str:
        return f"{self.where}: {self.change}"


def mutants(source: str, filename: str) -> Iterator[Mutant]:
    """Yield every changed form of a module."""
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    for place in _places(tree, "module"):
        old = place.node
        for new in _changed(old):
            if place.where == "module" and isinstance(new, ast.Pass):
                continue  # a name that is gone is noticed by whoever reads it
            shown = f"{_shown(old)}  →  {_shown(new)}"
            key = f"{place.where}: {shown}"
            seen[key] += 1
            if seen[key] > 1:
                shown += f"  #{seen[key]}"
            place.put(ast.fix_missing_locations(ast.copy_location(new, old)))
            code = compile(tree, filename, "exec")
            place.put(old)
            yield Mutant(place.where, old.lineno, shown, code)


def _shown(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


@dataclass(frozen=True)
class _Place:
    """Where a node hangs in its tree."""

    parent: ast.AST
    field: str
    index: int | None
    where: str

    @property
    def node(self) -> ast.expr | ast.stmt:
        held = getattr(self.parent, self.field)
        item: ast.expr | ast.stmt = held if self.index is None else held[self.index]
        return item

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _places(parent: ast.AST, where: str) -> Iterator[_Place]:
    """Yield every place below a node whose content may be changed."""
    for field, held in ast.iter_fields(parent):
        if field in UNTOUCHED or isinstance(parent, ast.Raise | ast.JoinedStr):
            continue
        for index, node in enumerate(held) if isinstance(held, list) else [(None, held)]:
            if not isinstance(node, ast.AST) or _is_text(node):
                continue
            inside = where
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                inside = node.name if where == "module" else f"{where}.{node.name}"
            elif isinstance(node, ast.expr | ast.stmt):
                yield _Place(parent, field, index, where)
            yield from _places(node, inside)


def _is_text(node: ast.AST) -> bool:
    """Whether a statement only says something to readers."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[op]):
            for other in COMPARISONS[type(op)]:
                yield _like(node, ops=[other()])
        case ast.BinOp() if type(node.op) in ARITHMETIC:
            yield _like(node, op=ARITHMETIC[type(node.op)]())
        case ast.BoolOp():
            yield _like(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp():
            yield node.operand
        case ast.IfExp() | ast.If():
            yield _like(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Constant(value=bool() | int() | float() | str() as value):
            yield ast.Constant(_other(value))
        case ast.Return(value=value) if value is not None:
            yield ast.Return(ast.Constant(None))
        case ast.Expr() | ast.Raise() | ast.AugAssign() | ast.Assign():
            yield ast.Pass()
        case ast.Call():
            yield from _called_otherwise(node)


def _other(value: bool | int | float | str) -> bool | int | float | str:
    if isinstance(value, bool):
        return not value
    return f"not {value}" if isinstance(value, str) else value + 1


def _called_otherwise(call: ast.Call) -> Iterator[ast.Call]:
    for i in range(len(call.keywords)):
        yield _like(call, keywords=call.keywords[:i] + call.keywords[i + 1 :])
    for i in range(len(call.args)):
        yield _like(call, args=call.args[:i] + call.args[i + 1 :])
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    for i in range(len(call.args) - 1 if name not in SYMMETRIC else 0):
        before, pair, after = call.args[:i], call.args[i : i + 2], call.args[i + 2 :]
        yield _like(call, args=[*before, *reversed(pair), *after])
    if name in OPPOSITES:
        field = "id" if isinstance(call.func, ast.Name) else "attr"
        yield _like(call, func=_like(call.func, **{field: OPPOSITES[name]}))


def _like(node: Node, **other: object) -> Node:
    """Copy a node, with other parts."""
    new = copy.copy(node)
    for field, value in other.items():
        setattr(new, field, value)
    return new
