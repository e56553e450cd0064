"""Tasks about figures, letters and digits in a drawing."""

from dataclasses import dataclass
from typing import Any

from tests.e2e.miniwob.episodes import Look, Play, Seen, Solver, Step
from tests.e2e.miniwob.moves import SUBMIT, between, click, drag, exactly

_DRAWN = "#area_svg > :not(#shape-container)"
_FIGURES = {"rect": "rectangle", "circle": "circle", "polygon": "triangle"}
_LARGE = 20
"""What is large is so many pixels high; what is small, half of it."""
_LOOK = Look(
    extract={
        "list": _DRAWN,
        "fields": {
            "tag": {"prop": "tagName"},
            "text": {"prop": "textContent"},
            "color": "@fill",
            "font": {"attribute": "font-size", "type": "number"},
            "width": {"attribute": "width", "type": "number"},
            "radius": {"attribute": "r", "type": "number"},
            "points": "@points",
        },
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One thing of the drawing."""

    text: str
    kind: str
    """What `text` is: a `shape`, a `letter` or a `digit`."""
    color: str
    large: bool

    def fits(self, said: str) -> bool:
        """Say whether a description is one of this: a size, a color, and what it is, or some."""
        *looks, what = said.split(" ")
        size = "large" if self.large else "small"
        return set(looks) <= {size, self.color} and what in (self.text, self.kind, "item")


def _drawn(seen: Seen) -> list[Drawn]:
    return [_one(item) for item in seen.items]


def _one(item: dict[str, Any]) -> Drawn:
    figure = _FIGURES.get(item["tag"])
    text = figure or item["text"]
    kind = "shape" if figure else "digit" if text.isdigit() else "letter"
    return Drawn(text=text, kind=kind, color=item["color"], large=_height(item) >= _LARGE)


def _height(item: dict[str, Any]) -> float:
    if item["points"]:
        heights = [float(point.split(",")[1]) for point in item["points"].split()]
        return max(heights) - min(heights)
    return float(item["font"] or item["width"] or 2 * item["radius"])


def pick() -> Play:
    seen = yield _LOOK
    said = between(seen, "Click on a ", "")
    place = next(i for i, one in enumerate(_drawn(seen)) if one.fits(said))
    return [click(_DRAWN, nth=place)]


def count() -> Play:
    seen = yield _LOOK
    said = between(seen, "How many ", "s are there?")
    fitting = sum(one.fits(said) for one in _drawn(seen))
    return [click(exactly("//*[@id='count-buttons']/button", str(fitting)))]


def into_box() -> Play:
    seen = yield _LOOK
    figure = between(seen, "Drag all ", "s into")
    places = [i for i, one in enumerate(_drawn(seen)) if one.text == figure]
    return [*(drag(_DRAWN, nth=i, to="#shape-container") for i in places), SUBMIT]


def into_two_boxes() -> Play:
    seen = yield _LOOK
    said = between(seen, "Drag all ", " into the left box")
    left, right = (f"#shape-container[x='{x}']" for x in (2, 84))

    def step(place: int, one: Drawn) -> Step:
        fits = said in (f"{one.text}s", f"{one.color} shapes")
        return drag(_DRAWN, nth=place, to=left if fits else right)

    return [*(step(place, one) for place, one in enumerate(_drawn(seen))), SUBMIT]


TASKS: dict[str, Solver] = {
    "click-shape": pick,
    "count-shape": count,
    "drag-shapes": into_box,
    "drag-shapes-2": into_two_boxes,
}
