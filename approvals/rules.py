"""Rules of a policy: one expression over named values that lets an action pass without a person.

    matched and amount <= 25.00
    currency in ("EUR", "GBP") and not first_order

Names, numbers (exact decimals), texts, True and False, comparisons, `in`, `and`, `or`, `not`: nothing else is
Python here. A rule passes only on values that leave no doubt. A name without a value, a number that is negative,
NaN or infinite, a bool for a number, kinds that do not fit together: each raises Unclear, and a person is asked.
All names of a rule are looked at, also those that `and` and `or` would skip: no value may hide behind another.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

Value = bool | Decimal | str

_SIZES: dict[type[ast.cmpop], Callable[[Decimal, Decimal], bool]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}


class BadRule(ValueError):
    """The expression is not a rule; says which part."""


class Unclear(Exception):
    """The values leave a doubt; says which. A person has to be asked."""


@dataclass(frozen=True)
class Rule:
    """A rule that was read and found sound."""

    text: str
    tree: ast.expr
    numbers: Mapping[tuple[int, int], Decimal]
    """The exact numbers of the text, by where they stand: Python's own parser makes floats of them."""
    names: frozenset[str]

    def passes(self, values: Mapping[str, Any]) -> bool:
        """Whether the rule lets these values pass. Raises Unclear when that cannot be told."""
        for name in self.names:
            if name not in values:
                raise Unclear(f"{name} has no value")
        return _Reading(self, values).truth(self.tree)


@lru_cache(maxsize=1024)
def parse(text: str) -> Rule:
    """Read a rule. Raises BadRule with what is not allowed in it."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadRule(f"not an expression: {getattr(error, 'msg', error)}") from None
    numbers: dict[tuple[int, int], Decimal] = {}
    for node in ast.walk(tree):
        _check(node, text.strip(), numbers)
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    if not names:
        raise BadRule("it names no value, so it would pass always or never")
    return Rule(text.strip(), tree, numbers, names)


def _check(node: ast.AST, text: str, numbers: dict[tuple[int, int], Decimal]) -> None:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (bool, str)):
            return
        if isinstance(node.value, (int, float)):
            numbers[node.lineno, node.col_offset] = _number(ast.get_source_segment(text, node) or "")
            return
        raise BadRule(f"{ast.unparse(node)} is not allowed; constants are numbers, texts, True and False")
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        raise BadRule(f"{ast.unparse(node)} is not allowed; values are never negative")
    allowed = (ast.Name, ast.Load, ast.Compare, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Tuple, ast.List)
    if not isinstance(node, (*allowed, ast.Eq, ast.NotEq, ast.In, ast.NotIn, *_SIZES)):
        what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        raise BadRule(f"{what} is not allowed; a rule has names, constants, comparisons, in, and, or, not")


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadRule(f"{text} is not a decimal number") from None


class _Reading:
    """One evaluation of a rule over values."""

    def __init__(self, rule: Rule, values: Mapping[str, Any]) -> None:
        self.rule = rule
        self.values = values

    def truth(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BoolOp):
            truths = [self.truth(part) for part in node.values]  # all of them: see the module's docstring
            return all(truths) if isinstance(node.op, ast.And) else any(truths)
        if isinstance(node, ast.UnaryOp):
            return not self.truth(node.operand)
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            results = [
                self.comparison(operator, operands[at], operands[at + 1]) for at, operator in enumerate(node.ops)
            ]
            return all(results)
        value = self.value(node)
        if not isinstance(value, bool):
            raise Unclear(f"{ast.unparse(node)} is not true or false")
        return value

    def comparison(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
        if isinstance(operator, (ast.In, ast.NotIn)):
            found = self.contains(left, right)
            return found if isinstance(operator, ast.In) else not found
        by_size = _SIZES.get(type(operator))
        if by_size:
            return by_size(self.size(left), self.size(right))
        same = self.same(self.value(left), self.value(right), ast.unparse(left))
        return same if isinstance(operator, ast.Eq) else not same

    def contains(self, left: ast.expr, right: ast.expr) -> bool:
        wanted = self.value(left)
        if isinstance(right, (ast.Tuple, ast.List)):
            among = [self.value(item) for item in right.elts]
        else:
            held = self.values[right.id] if isinstance(right, ast.Name) else None
            if not isinstance(held, (list, tuple, set, frozenset)):
                raise Unclear(f"{ast.unparse(right)} is not a list")
            among = [_scalar(item, f"an item of {ast.unparse(right)}") for item in held]
        results = [self.same(wanted, item, ast.unparse(left)) for item in among]
        return any(results)

    def same(self, left: Value, right: Value, label: str) -> bool:
        if type(left) is not type(right):
            raise Unclear(f"{label} is compared with a value of another kind")
        return left == right

    def size(self, node: ast.expr) -> Decimal:
        value = self.value(node)
        if not isinstance(value, Decimal):
            raise Unclear(f"{ast.unparse(node)} is not a number")
        return value

    def value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name):
            return _scalar(self.values[node.id], node.id)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (bool, str)):
                return node.value
            return self.rule.numbers[node.lineno, node.col_offset]
        if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare)):
            return self.truth(node)
        raise Unclear(f"{ast.unparse(node)} is a list")


def _scalar(value: Any, label: str) -> Value:
    """The value as a rule sees it: exact, finite, of one of three kinds. Subclasses are not taken for their parents:
    a class of the author's may compare as it likes."""
    kind = type(value)
    if kind is bool or kind is str:
        return value  # type: ignore[no-any-return]
    if kind not in (int, float, Decimal):
        raise Unclear(f"{label} is neither a number, a text, nor true or false")
    number = Decimal(value)
    if not number.is_finite():
        raise Unclear(f"{label} is not a finite number")
    if number < 0:
        raise Unclear(f"{label} is negative")
    return number
