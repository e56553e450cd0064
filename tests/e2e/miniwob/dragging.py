"""Tasks that want something dragged."""

from tests.e2e.miniwob.episodes import Look, Play, Solver, Step
from tests.e2e.miniwob.moves import SUBMIT, always, between, click, drag, ordinals

_WAYS = {"left": {"x": -25}, "right": {"x": 25}, "up": {"y": -25}, "down": {"y": 25}}
_OVER = 4
"""An item changes places with another one once it is more than half over it, in pixels."""
_ROWS = {
    "list": "#sortable li",
    "fields": {"name": "div", "top": {"prop": "offsetTop", "type": "number"}},
}


def some_way() -> Play:
    seen = yield Look()
    return [drag("#area svg > *", **_WAYS[between(seen, "Drag the ", " then").split()[-1]]), SUBMIT]


def resize() -> Play:
    seen = yield Look()
    side, size = seen.bold
    by = 20 if size == "larger" else -20
    if side == "width":
        return [drag(".ui-resizable-e", x=by), click("#submit")]
    return [drag(".ui-resizable-s", y=by), click("#submit")]


def item() -> Play:
    seen = yield Look(extract=_ROWS)
    name, where = between(seen, "Drag ", ".").split(" ", 1)
    names = [row["name"] for row in seen.items]
    start = names.index(name)
    ends = {
        "to the top": 0,
        "to the bottom": len(names) - 1,
        "up by one position": start - 1,
        "down by one position": start + 1,
    }
    end = ends[where] if where in ends else ordinals(seen)[0]
    return [_move([row["top"] for row in seen.items], start, end)]


def sort() -> Play:
    seen = yield Look(extract=_ROWS)
    numbers = [int(row["name"]) for row in seen.items]
    tops = [row["top"] for row in seen.items]
    steps = []
    for end, number in enumerate(sorted(numbers)):
        start = numbers.index(number, end)
        if start != end:
            numbers.insert(end, numbers.pop(start))
            steps.append(_move(tops, start, end))
    return [*steps, SUBMIT]


def _move(tops: list[float], start: int, end: int) -> Step:
    over = _OVER if end > start else -_OVER
    return drag("#sortable li", nth=start, y=round(tops[end] - tops[start]) + over)


TASKS: dict[str, Solver] = {
    "drag-box": always(drag("#draggableSmall", to="#draggableLarge"), SUBMIT),
    "drag-circle": some_way,
    "drag-items": item,
    "drag-single-shape": some_way,
    "drag-sort-numbers": sort,
    "resize-textarea": resize,
}
