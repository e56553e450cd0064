"""The mutants of a text: each comparison and each connective in it, one at a time, turned round."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

_TURNED = {
    "==": ("!=",),
    "!=": ("==",),
    "~=": ("==",),
    "<": (">=", "<="),
    "<=": (">", "<"),
    ">": ("<=", ">="),
    ">=": ("<", ">"),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
    "and": ("or",),
    "or": ("and",),
    "not": ("",),
}
_OPERATOR = re.compile(r"#.*|(is\s+not|not\s+in|[=!<>]=|[<>]|\b(?:is|in|and|or)\b)")
_LUA = re.compile(
    r"""--\[\[.*?\]\] | --[^\n]* | \[\[.*?\]\] | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*"
    | ([=~<>]= | [<>] | \b(?:and|or|not)\b)""",
    re.VERBOSE | re.DOTALL,
)

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A file with one operator changed."""

    file: str
    number: int
    """The line's, from 1."""
    line: str
    """The line as it was, without its indent."""
    becomes: str
    """The line as it is now."""
    text: str
    """The whole file as it is now."""


def mutants(file: str, text: str) -> list[Mutant]:
    """Make every mutant of a Python or Lua file, in the order of their places in it."""
    spans = _in_lua(text) if file.endswith(".lua") else _in_python(text)
    return [
        _mutant(file, text, span, instead)
        for span in sorted(spans)
        for instead in _instead(text, span, file)
    ]


def _instead(text: str, span: Span, file: str) -> tuple[str, ...]:
    found = _TURNED[" ".join(text[slice(*span)].split())]
    return tuple(one.replace("!=", "~=") for one in found) if file.endswith(".lua") else found


def _mutant(file: str, text: str, span: Span, instead: str) -> Mutant:
    start, end = span
    begin = text.rfind("\n", 0, start) + 1
    finish = text.find("\n", end)
    finish = len(text) if finish < 0 else finish
    return Mutant(
        file=file,
        number=text.count("\n", 0, start) + 1,
        line=text[begin:finish].strip(),
        becomes=(text[begin:start] + instead + text[end:finish]).strip(),
        text=text[:start] + instead + text[end:],
    )


def _in_lua(text: str) -> Iterator[Span]:
    return (found.span(1) for found in _LUA.finditer(text) if found[1])


def _in_python(text: str) -> Iterator[Span]:
    place = _Places(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            begin = place.at(node.lineno, node.col_offset)
            yield begin, begin + len("not")
        for left, right in pairwise(_operands(node)):
            begin = place.at(left.end_lineno, left.end_col_offset)
            end = place.at(right.lineno, right.col_offset)
            yield next(m.span(1) for m in _OPERATOR.finditer(text, begin, end) if m[1])


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.BoolOp(values=values):
            return values
        case _:
            return []


class _Places:
    """Where in a text a line and a column are that the parser counted, in bytes."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self._lines))]

    def at(self, line: int | None, column: int | None) -> int:
        assert line is not None
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)
