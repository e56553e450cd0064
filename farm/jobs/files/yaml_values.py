"""YAML 1.2 in, plain values out: core schema only, so that `no`, `on` and dates stay texts.

ruamel.yaml scans and parses; values are made here, because its own ones follow other schemas and
recurse. Everything is bounded while it is read: a deep or endless file costs no more than its
first 64 levels.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from farm.jobs.files.document import MAX_DEPTH, MAX_NODES, Document
from farm.jobs.files.problems import InvalidFileError, Path, Problem, shown

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_DECIMAL = re.compile(r"[-+]?[0-9]{1,30}")
_BASED = re.compile(r"0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})


def core_scalar(text: str) -> object:
    """Return what a plain (unquoted) scalar means in YAML 1.2's core schema."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return math.nan if _NO_NUMBER.fullmatch(text) else text


def read_yaml(text: str) -> Document:
    """Read one YAML document.

    Raises:
        InvalidFileError: If it is not YAML, or more of YAML than a job file may use: a custom tag,
            a repeated key, a merge key, a cyclic alias, a second document.
    """
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise InvalidFileError(
            Problem(path=(), detail=f"not YAML: {_words(error)}", line=line)
        ) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        detail = f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        raise InvalidFileError(Problem(path=(), detail=detail, line=line)) from None
    except YAMLError as error:
        raise InvalidFileError(Problem(path=(), detail=f"not YAML: {error}"[:300])) from None
    if builder.documents == 0:
        raise InvalidFileError(Problem(path=(), detail="the file is empty"))
    return Document(value=builder.top, lines=builder.lines)


def _events(text: str) -> Iterator[Event]:
    yield from YAML(typ="safe", pure=True).parse(text)


def _words(error: MarkedYAMLError) -> str:
    problem = str(error.problem)
    if "'\\t'" in problem:
        return "found a tab where indentation is; indent with spaces"
    return ", ".join(str(part) for part in (error.context, problem) if part)[:300]


@dataclass(slots=True)
class _Open:
    """A container not yet closed."""

    value: dict[str, object] | list[object]
    anchor: str | None
    key: str | None = None
    """The last key read."""
    awaits_key: bool = True
    """The value of the last key is there, so that another key comes next."""


@dataclass(slots=True)
class _Builder:
    """Makes values of events, one at a time, without recursion."""

    top: object = None
    documents: int = 0
    lines: dict[int, dict[str | int, int]] = field(default_factory=dict)
    _stack: list[_Open] = field(default_factory=list)
    _anchors: dict[str, object] = field(default_factory=dict)
    _nodes: int = 0

    def take(self, event: Event) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, NodeEvent):
            self._nodes += 1
            if self._nodes > 2 * MAX_NODES:
                self._refuse(f"the file has more than {MAX_NODES} values", line)
        match event:
            case DocumentStartEvent():
                self._begin(event, line)
            case MappingStartEvent() | SequenceStartEvent():
                self._open(event, line)
            case MappingEndEvent() | SequenceEndEvent():
                self._close()
            case ScalarEvent():
                self._scalar(event, line)
            case AliasEvent():
                self._alias(str(event.anchor), line)
            case _:
                pass

    def _path(self) -> Path:
        parts: list[str | int] = []
        for at in self._stack:
            innermost = at is self._stack[-1]
            if isinstance(at.value, list):
                parts.append(len(at.value) - (0 if innermost else 1))
            elif at.key is not None and not (innermost and at.awaits_key):
                parts.append(at.key)
        return tuple(parts)

    def _refuse(self, detail: str, line: int, *, path: Path | None = None) -> None:
        place = self._path() if path is None else path
        raise InvalidFileError(Problem(path=place, detail=detail, line=line))

    def _begin(self, event: DocumentStartEvent, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            self._refuse("a job file is one document; found a second one", line, path=())
        if event.version not in (None, (1, 2)):
            self._refuse("a job file is YAML 1.2", line, path=())

    def _open(self, event: MappingStartEvent | SequenceStartEvent, line: int) -> None:
        if event.tag is not None:
            self._refuse(f"the tag {shown(event.tag)} is not allowed; use plain values", line)
        if self._awaits_key():
            self._refuse("a key is a text", line)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(f"nested deeper than {MAX_DEPTH} levels", line)
        value: dict[str, object] | list[object] = {} if isinstance(event, MappingStartEvent) else []
        self._put(value, line)
        self.lines[id(value)] = {}
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
        self._stack.append(_Open(value, event.anchor))

    def _close(self) -> None:
        ended = self._stack.pop()
        if ended.anchor is not None:
            self._anchors[ended.anchor] = ended.value

    def _scalar(self, event: ScalarEvent, line: int) -> None:
        if event.tag is not None and str(event.tag) not in _TEXT_TAGS:
            self._refuse(f"the tag {shown(event.tag)} is not allowed; use plain values", line)
        plain = event.style is None and event.tag is None
        if self._awaits_key():
            self._key(event.value, line, plain=plain)
            value: object = event.value
        else:
            value = core_scalar(event.value) if plain else event.value
            self._put(value, line)
        if event.anchor is not None:
            self._anchors[event.anchor] = value

    def _alias(self, name: str, line: int) -> None:
        if any(at.anchor == name for at in self._stack):
            self._refuse(f"the alias *{name} refers to what it is part of", line)
        if name not in self._anchors:
            self._refuse(f"the alias *{name} has no anchor before it", line)
        value = self._anchors[name]
        if not self._awaits_key():
            self._put(value, line)
        elif isinstance(value, str):
            self._key(value, line, plain=False)
        else:
            self._refuse("a key is a text", line)

    def _awaits_key(self) -> bool:
        at = self._stack[-1] if self._stack else None
        return at is not None and isinstance(at.value, dict) and at.awaits_key

    def _key(self, key: str, line: int, *, plain: bool) -> None:
        at = self._stack[-1]
        if plain and key == "<<":
            self._refuse("merge keys (<<) are not part of YAML 1.2; write the keys out", line)
        if key in at.value:
            self._refuse(f"the key {shown(key)} is there twice", line, path=(*self._path(), key))
        at.key, at.awaits_key = key, False
        self.lines[id(at.value)][key] = line

    def _put(self, value: object, line: int) -> None:
        if not self._stack:
            self.top = value
            return
        at = self._stack[-1]
        if isinstance(at.value, list):
            self.lines[id(at.value)][len(at.value)] = line
            at.value.append(value)
        elif at.key is not None:
            at.value[at.key] = value
            at.awaits_key = True
