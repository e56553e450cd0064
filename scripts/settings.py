"""The settings as a page: python -m scripts.settings > docs/settings.md."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import annotated_types
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import agent.config
import farm.config

_HEAD = """\
# Settings

Made by `scripts/settings.py` from `farm/config.py` and `agent/config.py`; change it there.

Settings come from the environment. A variable that begins with `FARM_` or `AGENT_` and is none of
these stops the start, and the nearest known one is named.
"""
_CLIENT = """
The command line also reads `FARM_URL`, `FARM_TOKEN` and `FARM_TOKEN_FILE`, to find a farm; see
[cli.md](cli.md).
"""


def document() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            _HEAD,
            *_section("The coordinator: `farm serve`, `farm up`", farm.config.Settings, "FARM_"),
            _CLIENT,
            *_section("The agent: `farm-agent`", agent.config.Settings, "AGENT_"),
            "",
        ]
    )


def _section(title: str, model: type[BaseModel], prefix: str) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| variable | default | bounds | meaning |"
    yield "| --- | --- | --- | --- |"
    yield from _rows(model, prefix)


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    meanings = _docstrings(model)
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _rows(inner, f"{prefix}{name.upper()}__")
            continue
        variable = field.validation_alias or prefix + name.upper()
        meaning = " ".join(meanings.get(name, "").split()).replace("|", "\\|")
        yield f"| `{variable}` | {_default(field)} | {_bounds(field)} | {meaning} |"


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the texts below the fields, which Python itself throws away."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - for the type checker
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[field.target.id] = str(text.value.value)
    return found


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    value: Any = field.default
    # Made at start, or worked out from the machine: the meaning says what it is.
    if value is PydanticUndefined or field.default_factory is not None or _of_machine(field):
        return "see there"
    if isinstance(value, bool):
        return f"`{int(value)}`"
    if value is None or value in ((), {}):
        return "none"
    return f"`{','.join(map(str, value))}`" if isinstance(value, tuple) else f"`{value}`"


def _of_machine(field: FieldInfo) -> bool:
    return field is agent.config.Settings.model_fields["slots"]


def _bounds(field: FieldInfo) -> str:
    if SecretStr in (field.annotation, *get_args(field.annotation)):
        return "secret"
    rules = (*field.metadata, *_inner_rules(field.annotation))
    return ", ".join(word for rule in rules if (word := _word(rule)))


def _word(rule: object) -> str:
    for kind, name, words in _RULES:
        if isinstance(rule, kind):
            return words.format(getattr(rule, name))
    pattern: str | None = getattr(rule, "pattern", None)
    return pattern.strip("^$()").replace("|", ", ") if pattern else ""


_RULES: tuple[tuple[type, str, str], ...] = (
    (annotated_types.Gt, "gt", "> {}"),
    (annotated_types.Ge, "ge", "≥ {}"),
    (annotated_types.Lt, "lt", "< {}"),
    (annotated_types.Le, "le", "≤ {}"),
    (annotated_types.MinLen, "min_length", "length ≥ {}"),
    (annotated_types.MaxLen, "max_length", "length ≤ {}"),
)


def _inner_rules(annotation: object) -> tuple[Any, ...]:
    if not isinstance(annotation, UnionType):
        return ()
    return tuple(
        rule for part in get_args(annotation) for rule in getattr(part, "__metadata__", ())
    )


def main() -> None:
    """Write the page, or with `--check` only say whether docs/settings.md is it."""
    if "--check" not in sys.argv:
        sys.stdout.write(document())
        return
    page = Path(__file__).parents[1] / "docs" / "settings.md"
    if page.read_text() != document():
        sys.exit("docs/settings.md is behind: python -m scripts.settings > docs/settings.md")


if __name__ == "__main__":
    main()
