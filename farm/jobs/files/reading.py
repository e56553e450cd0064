"""Bytes in, a document out: YAML or JSON, told by the content type or by its first character."""

import json
from dataclasses import replace

from farm.errors import TooLargeError
from farm.jobs.files.document import Document, Repeating, check_bounds
from farm.jobs.files.problems import InvalidFileError, Problem
from farm.jobs.files.yaml_values import read_yaml

MAX_BYTES = 1_000_000


def read(body: bytes, *, content_type: str | None) -> Document:
    """Read a job file.

    Raises:
        TooLargeError: If it is over 1,000,000 bytes.
        InvalidFileError: If it is not one JSON or YAML document of plain values.
    """
    if len(body) > MAX_BYTES:
        raise TooLargeError(f"a job file has at most {MAX_BYTES} bytes, this one {len(body)}")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        detail = f"the file is not UTF-8 (byte {error.start})"
        raise InvalidFileError(Problem(path=(), detail=detail, line=line)) from None
    if text.strip() == "":
        raise InvalidFileError(Problem(path=(), detail="the file is empty"))
    document = _read_as(text, (content_type or "").partition(";")[0].strip().lower())
    try:
        check_bounds(document.value)
    except InvalidFileError as error:
        found = error.problems[0]
        place = found.line or document.line_of(found.path)
        raise InvalidFileError(replace(found, line=place)) from None
    return document


def _read_as(text: str, media_type: str) -> Document:
    kind = media_type.rpartition("/")[2].rpartition("+")[2]
    if kind == "json":
        return read_json(text)
    if kind in ("yaml", "x-yaml") or not text.lstrip().startswith(("{", "[")):
        return read_yaml(text)
    # Anything else, such as what curl says by default: JSON where it is JSON, else YAML's braces.
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return read_yaml(text)
    return read_json(text)


def read_json(text: str) -> Document:
    """Read one JSON document; NaN, infinities and repeated keys are refused.

    Raises:
        InvalidFileError: If it is not such a document.
    """
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_int=_integer)
    except json.JSONDecodeError as error:
        problem = Problem(path=(), detail=f"not JSON: {error.msg}", line=error.lineno)
        raise InvalidFileError(problem) from None
    except RecursionError:
        raise InvalidFileError(Problem(path=(), detail="nested too deep")) from None
    return Document(value=value)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    marked = Repeating(value)
    for name, _ in pairs:
        if name in seen:
            marked.key = name
        seen.add(name)
    return marked


def _integer(digits: str) -> int:
    # Beyond 30 digits the value no longer matters: it is refused for its size, not computed.
    return int(digits) if len(digits) <= 30 else 10**30
