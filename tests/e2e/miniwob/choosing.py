"""Tasks that want a choice made: lists, boxes, dates, sliders, results of a search."""

from itertools import chain

from tests.e2e.miniwob.episodes import Look, Play, Solver, Step
from tests.e2e.miniwob.moves import (
    SUBMIT,
    between,
    click,
    exactly,
    fill,
    ordinals,
    press,
    quoted,
)


def option() -> Play:
    seen = yield Look()
    name = between(seen, "Select ", " from the list")
    return [{"select": {"selector": "#options", "label": name}}, click("#area button")]


def options() -> Play:
    names = {"selector": "#options option", "all": True}
    seen = yield Look(extract={"fields": {"names": names}})
    said = between(seen, "Select ", " from the scroll list")
    wanted = [name for name in seen.items[0]["names"] if name in said.split(", ")]
    return [{"select": {"selector": "#options", "label": wanted}}, click("#area button")]


def styled_option() -> Play:
    seen = yield Look()
    [name] = quoted(seen)
    size = between(seen, "Choose ", " from the dropdown")
    return [
        click(".selectric"),
        click(exactly("//*[contains(@class, 'selectric-items')]//li", size)),
        click(f"#{name.lower()}"),
    ]


def boxes() -> Play:
    seen = yield Look()
    said = between(seen, "Select ", " and click Submit")
    names = [] if said == "nothing" else said.split(", ")
    return [*({"check": f'label="{name}"'} for name in names), SUBMIT]


def radio() -> Play:
    seen = yield Look()
    return [{"check": f'label="{between(seen, "Select ", " and click Submit")}"'}, SUBMIT]


def radio_and_text() -> Play:
    seen = yield Look()
    [value], (which, where) = quoted(seen), ordinals(seen)
    return [
        {"check": {"selector": "#area input[type=radio]", "nth": which}},
        fill(f"#input-{where + 1}", value),
        SUBMIT,
    ]


def _pick_date(said: str, latest_month: int) -> list[Step]:
    month, day, _ = map(int, said.split("/"))
    return [
        click("#datepicker"),
        *[click(".ui-datepicker-prev")] * (latest_month - month),
        click(exactly("//td[@data-handler='selectDay']/a", str(day))),
    ]


def date() -> Play:
    seen = yield Look()
    return [*_pick_date(between(seen, "Select ", " as the date"), 12), SUBMIT]


def completion() -> Play:
    seen = yield Look()
    # Either may begin or end with a space, which only the quotes keep.
    start, *ends = quoted(seen)
    typing = {"type": {"selector": "#tags", "text": start}}
    offered = {"list": "li.ui-menu-item", "fields": {"name": {"required": True}}}
    names = (yield Look(steps=[typing], extract=offered)).items
    end = next(iter(ends), "")
    name = next(e["name"] for e in names if e["name"].startswith(start) and e["name"].endswith(end))
    return [typing, click(exactly("//li[contains(@class, 'ui-menu-item')]", name)), SUBMIT]


def spinner() -> Play:
    seen = yield Look()
    number = int(between(seen, "Select ", " with the spinner"))
    arrow = click(".ui-spinner-up" if number > 0 else ".ui-spinner-down")
    return [*[arrow] * abs(number), SUBMIT]


def slider() -> Play:
    handle, value = ".ui-slider-handle", {"selector": "#val", "type": "number"}
    lowest = yield Look(steps=[press("Home", handle)], extract={"fields": {"value": value}})
    highest = yield Look(steps=[press("End", handle)], extract={"fields": {"value": value}})
    low, high = lowest.items[0]["value"], highest.items[0]["value"]
    wanted = int(between(lowest, "Select ", " with the slider"))
    return [*_slide(handle, wanted, low, high), SUBMIT]


def sliders() -> Play:
    seen = yield Look()
    wanted = between(seen, "combination [", "]").split(",")
    steps = [
        _slide(f"#slider-{number} .ui-slider-handle", int(value), 0, 20)
        for number, value in enumerate(wanted, 1)
    ]
    return [*chain.from_iterable(steps), SUBMIT]


def slider_and_box() -> Play:
    seen = yield Look()
    wanted = int(between(seen, "Select ", " with the slider"))
    [box] = ordinals(seen)
    return [
        *_slide(".ui-slider-handle", wanted, -10, 10),
        {"check": {"selector": "#area input[type=checkbox]", "nth": box}},
        SUBMIT,
    ]


def _slide(handle: str, value: int, low: int, high: int) -> list[Step]:
    pages, rest = divmod(value - low, (high - low) // 5)
    return [
        press("Home", handle),
        *[press("PageUp", handle)] * pages,
        *[press("ArrowRight", handle)] * rest,
    ]


def food() -> Play:
    fields = {"name": ".item-name", "types": {"selector": "img", "attribute": "alt", "all": True}}
    seen = yield Look(extract={"list": ".food-item", "fields": fields})
    if "each item" in seen.utterance:
        said = [name.strip() for name in seen.utterance.split(": ")[1].split(",")]
        wanted = [i for i, item in enumerate(seen.items) if item["name"] in said]
    else:
        count, kind = between(seen, "Order ", "").split(" items that are ")
        wanted = [i for i, item in enumerate(seen.items) if kind in item["types"]][:1] * int(count)
    order = click("#submit-order button")
    return [*(click(".food-item .add", nth=place) for place in wanted), order]


def contact() -> Play:
    pages = {"next": "#pagination .next a", "max_pages": 5}
    names = {"list": "#contact", "fields": {"name": "h2.name"}, "paginate": pages}
    seen = yield Look(extract=names)
    name = between(seen, "Find ", " in the contact book")
    place = [item["name"] for item in seen.items].index(name)
    what = next(w for w in ("phone", "email", "address") if f"their {w}" in seen.utterance)
    return [*[click("#pagination .next a")] * place, click(f"#contact .{what}")]


def search_result() -> Play:
    seen = yield Look()
    page, place = divmod(ordinals(seen)[0], 3)
    return [
        fill("#search-text", seen.bold[0]),
        click("#search"),
        click(exactly("//*[@id='pagination']//a", str(page + 1))),
        click("#page-content a", nth=place),
    ]


def flight() -> Play:
    seen = yield Look()
    which, origin, destination, day = seen.bold
    search = [
        *_complete("#flight-from", origin),
        *_complete("#flight-to", destination),
        *_pick_date(day, 12),
        click("#search"),
    ]
    fields = {
        "shortest": {"selector": ".time-duration", "attribute": "data-duration", "type": "number"},
        "cheapest": {"selector": ".flight-price", "attribute": "data-price", "type": "number"},
    }
    found = yield Look(steps=search, extract={"list": ".flight", "fields": fields})
    values = [item[which] for item in found.items]
    return [*search, click(".flight-price", nth=values.index(min(values)))]


def _complete(field: str, text: str) -> list[Step]:
    offered = f".ui-autocomplete:visible >> text=/{text}/"
    # The list gives the focus back to its field a moment after the click.
    return [{"type": {"selector": field, "text": text}}, click(offered, first=True), {"wait": 200}]


TASKS: dict[str, Solver] = {
    "book-flight": flight,
    "book-flight-nodelay": flight,
    "choose-date": date,
    "choose-date-easy": date,
    "choose-date-medium": date,
    "choose-date-nodelay": date,
    "choose-list": option,
    "click-checkboxes": boxes,
    "click-checkboxes-large": boxes,
    "click-checkboxes-transfer": boxes,
    "click-option": radio,
    "click-scroll-list": options,
    "form-sequence": slider_and_box,
    "form-sequence-2": radio_and_text,
    "form-sequence-3": styled_option,
    "order-food": food,
    "phone-book": contact,
    "search-engine": search_result,
    "use-autocomplete": completion,
    "use-autocomplete-nodelay": completion,
    "use-slider": slider,
    "use-slider-2": sliders,
    "use-spinner": spinner,
}
