"""Tasks that want the right things clicked, in the right order."""

from collections.abc import Mapping

from tests.e2e.miniwob.episodes import Look, Play, Solver
from tests.e2e.miniwob.moves import SUBMIT, always, between, click, exactly, quoted


def button() -> Play:
    seen = yield Look()
    [name] = quoted(seen)
    return [click(f'aria/{name}[role="button"]', first=True)]


def dialog_button() -> Play:
    seen = yield Look()
    [name] = quoted(seen)
    if name == "x":
        return [click(".ui-dialog-titlebar-close")]
    return [click(f"role=button[name='{name}']")]


def link() -> Play:
    seen = yield Look()
    [word] = quoted(seen)
    return [click(exactly("//span[@class='alink']", word), first=True)]


def link_in_sections() -> Play:
    words = {"selector": ".alink", "all": True}
    seen = yield Look(extract={"list": "#area > div", "fields": {"words": words}})
    [word] = quoted(seen)
    section = next(i for i, item in enumerate(seen.items) if word in item["words"])
    found = exactly(f"//*[@id='area']/div[{section + 1}]//span[@class='alink']", word)
    return [click("#area > h3", nth=section), click(found, first=True)]


def link_in_tabs() -> Play:
    words = {"selector": ".alink", "all": True}
    seen = yield Look(extract={"list": "#area > div", "fields": {"words": words}})
    [word] = quoted(seen)
    # A link that is nowhere would be in a tab that is filled only when it is opened.
    tab = next((i for i, item in enumerate(seen.items, 1) if word in item["words"]), None)
    if tab is None:
        return [click("#area a[href='#tabs-2']")]
    found = exactly(f"//*[@id='tabs-{tab}']//span[@class='alink']", word)
    return [click(f"#area a[href='#tabs-{tab}']"), click(found, first=True)]


def tab() -> Play:
    seen = yield Look()
    return [click(f'aria/{between(seen, "Click on ", ".")}[role="tab"]')]


def color() -> Play:
    shown = {"selector": "#query .color", "attribute": "style", "regex": "color: *([a-z]+)"}
    seen = yield Look(extract={"fields": {"shown": shown}})
    wanted = seen.bold[0] if seen.bold else seen.items[0]["shown"]
    return [click(f"#area .color[data-color={wanted}]")]


def widget() -> Play:
    seen = yield Look()
    [kind] = quoted(seen)
    return [click(f"#area [data-type={kind}]", first=True)]


def menu() -> Play:
    seen = yield Look()
    *above, leaf = between(seen, "Select ", "").split(">")
    entry = "//*[@id='menu']//li/div"
    return [
        *({"hover": exactly(entry, name)} for name in above),
        {"wait_for": exactly(entry, leaf)},
        click(exactly(entry, leaf)),
    ]


def icon_menu() -> Play:
    fields: Mapping[str, object] = {
        "icon": {"selector": "#query .ui-icon", "attribute": "class", "regex": r"ui-icon-\S+"},
        "inner": {"selector": "#menu ul li", "all": True},
        "inner_icons": {"selector": "#menu ul .ui-icon", "attribute": "class", "all": True},
    }
    seen = yield Look(extract={"fields": fields})
    [item] = seen.items
    entry, icon = "//*[@id='menu']//li/div", item["icon"]
    if icon is None:
        [name] = quoted(seen)[1:]
        wanted, inside = exactly(entry, name), name in item["inner"]
    else:
        wanted = f"#menu .{icon}"
        inside = any(icon in one.split() for one in item["inner_icons"])
    opened = [{"hover": exactly(entry, "Playback")}, {"wait_for": wanted}] if inside else []
    return [click("#open-menu"), *opened, click(wanted)]


def shades() -> Play:
    seen = yield Look(extract={"list": "#area span", "fields": {"color": "@data-color"}})
    color = between(seen, "all the shades of ", " and press")
    places = [i for i, item in enumerate(seen.items) if item["color"] == color]
    return [*(click("#area span", nth=place) for place in places), click("#submit")]


def grid_coordinate() -> Play:
    seen = yield Look()
    return [click(f"circle[id='{seen.bold[0]}']")]


def tree() -> Play:
    above = {"selector": "xpath/ancestor::li", "all": True}
    fields = {"name": "xpath/span", "above": above}
    seen = yield Look(extract={"list": "#tree li", "fields": fields})
    [name] = quoted(seen)
    place = next(i for i, item in enumerate(seen.items, 1) if item["name"] == name)
    node = f"xpath/(//*[@id='tree']//li)[{place}]"
    depth = len(seen.items[place - 1]["above"])
    folders = [click(f"{node}/ancestor::li[{up}]/span") for up in range(depth, 0, -1)]
    return [*folders, click(f"{node}/span")]


def greatest_card() -> Play:
    value = {"selector": ".card-value", "type": "number", "required": True}
    seen = yield Look(extract={"list": ".card", "fields": {"value": value}})
    values = [item["value"] for item in seen.items]
    return [click("#cardholder > div", nth=values.index(max(values))), click("#submit")]


def odd_or_even() -> Play:
    number = {"selector": ".display-number", "type": "number"}
    seen = yield Look(extract={"list": "#numbers .row", "fields": {"number": number}})
    kinds = ["odd" if item["number"] % 2 else "even" for item in seen.items]
    marks = [click(f"#numbers .row:nth-child({i}) .{kind}") for i, kind in enumerate(kinds, 1)]
    return [*marks, click("#submit")]


def shape() -> Play:
    fields: Mapping[str, object] = {
        "text": "#area_svg text",
        "circle": {"selector": "#area_svg circle", "exists": True},
        "rectangle": {"selector": "#area_svg rect", "exists": True},
    }
    seen = yield Look(extract={"fields": fields})
    [item] = seen.items
    if item["text"] is not None:
        kind = "digit" if item["text"].isdigit() else "letter"
    else:
        kind = next((k for k in ("circle", "rectangle") if item[k]), "triangle")
    return [click(f"button[data-type={kind}]")]


def ticket() -> Play:
    fields = {
        "duration": {"selector": ".time-duration", "attribute": "data-duration", "type": "number"},
        "cost": {"selector": ".buy-ticket", "attribute": "data-price", "type": "number"},
    }
    seen = yield Look(extract={"list": ".flight", "fields": fields})
    which, what = seen.bold[0].rsplit(" ", 1)
    best = min if which in ("cheapest", "shortest") else max
    values = [item[what] for item in seen.items]
    return [click(".buy-ticket", nth=values.index(best(values)))]


_UNFOLD = always(click("#area h3"), {"wait_for": ".ui-accordion-content"}, SUBMIT)
_FIRST_BUTTON = always(click("aria/ONE"))

TASKS: dict[str, Solver] = {
    "ascending-numbers": always(
        click("xpath///*[local-name()='text'][.='1']"),
        *(click(f"svg rect[data-index='{number}']") for number in range(2, 6)),
    ),
    "buy-ticket": ticket,
    "click-button": button,
    "click-button-sequence": always(
        click("role=button[name='ONE']"), click("role=button[name='TWO']")
    ),
    "click-collapsible": _UNFOLD,
    "click-collapsible-2": link_in_sections,
    "click-collapsible-2-nodelay": link_in_sections,
    "click-collapsible-nodelay": _UNFOLD,
    "click-color": color,
    "click-dialog": always(click(".ui-dialog-titlebar-close")),
    "click-dialog-2": dialog_button,
    "click-link": link,
    "click-menu": menu,
    "click-menu-2": icon_menu,
    "click-shades": shades,
    "click-tab": tab,
    "click-tab-2": link_in_tabs,
    "click-tab-2-easy": link_in_tabs,
    "click-tab-2-hard": link_in_tabs,
    "click-tab-2-medium": link_in_tabs,
    "click-test": always(click("text/Click Me!")),
    "click-test-2": _FIRST_BUTTON,
    "click-test-transfer": _FIRST_BUTTON,
    "click-widget": widget,
    "find-greatest": greatest_card,
    "grid-coordinate": grid_coordinate,
    "identify-shape": shape,
    "navigate-tree": tree,
    "odd-or-even": odd_or_even,
    "unicode-test": button,
}
