"""From the values of one page of results to the items of a data set, wherever they were read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.ports import Evidence
from agent.steps.records import Reader
from agent.steps.substitution import mentions
from agent.steps.values import canonical
from farm.protocol.extraction import FieldSpec
from farm.protocol.messages import Items
from farm.protocol.steps import Extract

MAX_TEXT = 1_000_000
"""Longer texts of a page are cut, with a notice; in UTF-16 units, as JavaScript counts."""
MAX_EVENT = 500_000
"""About how many characters of items go into one event; a page of more is sent in several."""


@dataclass(slots=True)
class Kept:
    """What an attempt remembers of the items it has noted."""

    counts: dict[str, int] = field(default_factory=dict)
    """How many items each data set has."""
    seen: dict[tuple[str, tuple[str, ...]], set[str]] = field(default_factory=dict)
    """By data set and the fields of `unique_by`: what was there already."""


class Collector:
    """The items of one extract step, on however many pages of results."""

    def __init__(self, step: Extract, kept: Kept, evidence: Evidence) -> None:
        self._step = step
        self._kept = kept
        self._evidence = evidence
        self._taken = 0

    async def keep(
        self, records: Sequence[object], *, resolve: Callable[[str], object], size: int = 0
    ) -> int:
        """Note the records as items and return how many were new.

        Args:
            records: What was read for each, in the order of the fields.
            resolve: Gives a `value` with its references replaced.
            size: How many characters they have in all; 0 is unknown.

        Raises:
            StepFailed: `required_missing`; the records before that one have been noted.
        """
        reader = Reader(fields=self._step.fields, resolve=resolve)
        items: list[dict[str, Any]] = []
        try:
            for values in records:
                if self.full:
                    break
                item = reader.item(values, self._first() + len(items))
                if self._is_new(item):
                    items.append(item)
                    self._taken += 1
        finally:
            await self._note(items, size)
        return len(items)

    @property
    def full(self) -> bool:
        """Whether there are as many items as were asked for."""
        paginate = self._step.paginate
        return (
            paginate is not None
            and paginate.max_items is not None
            and (self._taken >= paginate.max_items)
        )

    def _first(self) -> int:
        return self._kept.counts.get(self._step.name, 0)

    def _is_new(self, item: dict[str, Any]) -> bool:
        if not self._step.unique_by:
            return True
        place = (self._step.name, self._step.unique_by)
        seen = self._kept.seen.setdefault(place, set())
        key = canonical([item[name] for name in self._step.unique_by])
        if key in seen:
            return False
        seen.add(key)
        return True

    async def _note(self, items: list[dict[str, Any]], size: int) -> None:
        for part in _parts(items, size):
            first = self._first()
            self._kept.counts[self._step.name] = first + len(part)
            await self._evidence.note(
                Items(dataset=self._step.name, first=first, items=tuple(part))
            )


def mentions_title(fields: Mapping[str, FieldSpec]) -> bool:
    """Tell whether any `value` among the fields needs the page's title."""
    return any(
        mentions(spec.value, "page.title")
        or (spec.fields is not None and mentions_title(spec.fields))
        for spec in fields.values()
    )


def _parts(items: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    """Cut the items of one page into events of bearable size."""
    if 0 < size <= MAX_EVENT:
        if items:
            yield items
        return
    part: list[dict[str, Any]] = []
    length = 0
    for item in items:
        part.append(item)
        length += len(canonical(item))
        if length > MAX_EVENT:
            yield part
            part, length = [], 0
    if part:
        yield part
