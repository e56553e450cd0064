"""The words people may write: verbs with their aliases, and the keys of each mapping."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from farm.jobs.files.problems import Path
from farm.jobs.files.spec import Browser, JobSpec, Record, Requires, Retry, Timeouts
from farm.protocol.extraction import FieldSpec, Paginate
from farm.protocol.identities import IdentityUse, Proxy
from farm.protocol.plan import Geolocation, Viewport, WindowBounds
from farm.protocol.steps import VERBS, StepBase

ALIASES = {
    "navigate": "goto",
    "open": "goto",
    "go_back": "back",
    "refresh": "reload",
    "press_sequentially": "type",
    "drag_and_drop": "drag",
    "select_option": "select",
    "wait_for_element": "wait_for",
    "wait_for_selector": "wait_for",
    "take_screenshot": "screenshot",
    "evaluate": "eval",
    "execute_javascript": "eval",
}
"""Other names of verbs, from other formats."""

COMMON_KEYS = frozenset(StepBase.model_fields)
"""The keys every step may have."""

ENVELOPE_MAPPINGS: dict[Path, type[BaseModel]] = {
    (): JobSpec,
    ("timeout",): Timeouts,
    ("retry",): Retry,
    ("requires",): Requires,
    ("browser",): Browser,
    ("browser", "viewport"): Viewport,
    ("browser", "bounds"): WindowBounds,
    ("browser", "geolocation"): Geolocation,
    ("identity",): IdentityUse,
    ("proxy",): Proxy,
    ("record",): Record,
}
"""The mappings outside the steps whose keys are ours."""


def snake(word: str) -> str:
    """Return `waitForURL` as `wait_for_url`; a word that is in snake case stays as it is."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word)
    return parted.lower()


def verb_of(word: str) -> str | None:
    """Return the verb that a word names, in either case or by an alias; None where none."""
    if word in VERBS:
        return word
    plain = snake(word)
    return plain if plain in VERBS else ALIASES.get(plain)


def known_keys(path: Path, value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that a mapping may have, by its place in the canonical form of a job."""
    model: type[BaseModel]
    if path[:1] != ("steps",):
        model = ENVELOPE_MAPPINGS.get(path, JobSpec)
    elif len(path) == 2:
        model = VERBS[value["steps"][path[1]]["type"]]
    else:
        model = Paginate if path[2:] == ("paginate",) else FieldSpec
    return tuple(name for name in model.model_fields if name != "type" or model is FieldSpec)


def verb_words() -> dict[str, str]:
    """Return every word for a verb with the verb it means."""
    return {**ALIASES, **{verb: verb for verb in VERBS}}
