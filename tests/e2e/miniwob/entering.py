"""Tasks that want something typed: texts, dates, logins, answers."""

import re

from tests.e2e.miniwob.episodes import Look, Play, Solver, Step
from tests.e2e.miniwob.moves import (
    SUBMIT,
    always,
    click,
    fill,
    ordinals,
    press,
    quoted,
)


def date() -> Play:
    seen = yield Look()
    month, day, year = seen.bold[0].split("/")
    return [fill("#tt", f"{year}-{month}-{day}"), SUBMIT]


def time() -> Play:
    seen = yield Look()
    found = re.search(r"(\d+):(\d+)\s([AP])M", seen.utterance)
    assert found is not None
    hour = int(found[1]) % 12 + (12 if found[3] == "P" else 0)
    return [fill("#tt", f"{hour:02}:{found[2]}"), SUBMIT]


def password() -> Play:
    seen = yield Look()
    [word] = seen.bold
    return [fill("#password", word), fill("#verify", word), SUBMIT]


def text() -> Play:
    seen = yield Look()
    return [fill("#tt", seen.bold[0]), SUBMIT]


def text_key_by_key() -> Play:
    seen = yield Look()
    return [{"type": {"selector": "#tt", "text": seen.bold[0]}}, SUBMIT]


def text_in_case() -> Play:
    seen = yield Look()
    [word] = seen.bold
    upper = "upper case" in seen.utterance
    return [fill("#tt", word.upper() if upper else word.lower()), SUBMIT]


def focus() -> Play:
    seen = yield Look()
    return [click("#area input", nth=ordinals(seen)[0])]


def login() -> Play:
    seen = yield Look()
    user, secret = quoted(seen)
    return [fill("#username", user), fill("#password", secret), SUBMIT]


def login_with_popup() -> Play:
    seen = yield Look()
    user, secret = quoted(seen)
    away = click("#popup-cancel", optional=True, timeout="400ms")
    return [
        *(click("#username"), away, fill("#username", user)),
        *(click("#password"), away, fill("#password", secret)),
        SUBMIT,
    ]


def movie_search() -> Play:
    named = "#area p > span, #area .row > div, #area th, #area .label, #area .ui-label"
    seen = yield Look(extract={"list": named, "fields": {"label": {"required": True}}})
    genre, director, year = seen.bold
    values = {"Genre": genre, "Director": director, "Year": year, "Released": year}
    labels = [item["label"] for item in seen.items]
    fields = [
        fill("#area input", next(values[key] for key in values if key in label), nth=place)
        for place, label in enumerate(labels)
    ]
    return [*fields, click("#area button, #area .final, #area .ui-submit")]


def nth_word() -> Play:
    seen = yield Look(extract={"fields": {"text": {"selector": "#area p", "required": True}}})
    words = seen.items[0]["text"].split()
    return [fill("#answer-input", re.sub("[^a-zA-Z]", "", words[ordinals(seen)[0]])), SUBMIT]


def last_word() -> Play:
    shown = {"selector": "#text-area", "prop": "value", "required": True}
    seen = yield Look(extract={"fields": {"text": shown}})
    return [fill("#answer-input", seen.items[0]["text"].split()[-1].rstrip(".")), SUBMIT]


def copy() -> Play:
    shown = {"selector": "#to-copy", "prop": "value", "required": True}
    seen = yield Look(extract={"fields": {"text": shown}})
    return [fill("#answer-input", seen.items[0]["text"]), SUBMIT]


def copy_one() -> Play:
    shown = {"selector": "#area textarea", "prop": "value", "all": True}
    seen = yield Look(extract={"fields": {"texts": shown}})
    return [fill("#answer-input", seen.items[0]["texts"][ordinals(seen)[0]]), SUBMIT]


def highlight() -> Play:
    seen = yield Look()
    paragraph = "#randomText" if not ordinals(seen) else "#randomText p"
    return [click(paragraph, nth=next(iter(ordinals(seen)), 0), count=3), SUBMIT]


def scroll_by_keys() -> Play:
    seen = yield Look()
    key = "Control+End" if "to the bottom" in seen.utterance else "Control+Home"
    return [press(key, "#text-area"), SUBMIT]


_ROWS = {"list": "#tab tr", "fields": {"key": "td:nth-child(1)", "value": "td:nth-child(2)"}}


def table_value() -> Play:
    seen = yield Look(extract=_ROWS)
    values = {row["key"]: row["value"] for row in seen.items}
    return [fill("#tt", values[seen.bold[0]]), SUBMIT]


def table_values() -> Play:
    rows = {"list": _ROWS["list"], "fields": _ROWS["fields"]}
    seen = yield Look(extract={"fields": {"rows": rows, "first": "#ll1", "second": "#ll2"}})
    [item] = seen.items
    values = {f"{row['key']}:": row["value"] for row in item["rows"]}
    return [fill("#tt1", values[item["first"]]), fill("#tt2", values[item["second"]]), SUBMIT]


def algebra() -> Play:
    seen = yield Look(extract={"fields": {"problem": "#math-problem"}})
    left, sign, right, _, result = seen.items[0]["problem"].split()
    known = int(right if left == "x" else left)
    if sign == "+":
        answer = int(result) - known
    else:
        answer = int(result) + known if left == "x" else known - int(result)
    return [fill("#math-answer", answer), SUBMIT]


def arithmetic() -> Play:
    seen = yield Look(extract={"fields": {"problem": "#math-problem"}})
    left, sign, right, _ = seen.items[0]["problem"].split()
    one, two = int(left), int(right)
    return [fill("#math-answer", {"+": one + two, "-": one - two, "x": one * two}[sign]), SUBMIT]


def blocks() -> Play:
    shown = {"selector": ".addition-block", "count": True}
    seen = yield Look(extract={"fields": {"blocks": shown}})
    return [fill("#math-answer", seen.items[0]["blocks"]), SUBMIT]


def guess() -> Play:
    low, high = 0, 9
    steps: list[Step] = []
    lower = {"selector": "#lower:not(.hide)", "exists": True}
    higher = {"selector": "#higher:not(.hide)", "exists": True}
    while True:
        middle = (low + high) // 2
        steps = [*steps, fill("#tt", middle), SUBMIT]
        seen = yield Look(steps=steps, extract={"fields": {"lower": lower, "higher": higher}})
        [hint] = seen.items
        if hint["lower"]:
            high = middle - 1
        elif hint["higher"]:
            low = middle + 1
        else:
            return steps


def command() -> Play:
    said = {"fields": {"said": {"selector": ".output", "all": True}}}
    seen = yield Look(steps=[_enter("ls")], extract=said)
    files = seen.items[0]["said"][-1].split()
    if seen.bold[0].startswith("."):
        name = next(file for file in files if file.endswith(seen.bold[0]))
    else:
        name = next(file for file in files if "." not in file)
    return [_enter(f"rm {name}")]


def _enter(line: str) -> Step:
    return {"type": {"selector": "#terminal-target", "text": f"{line}\n"}}


def skewed_text() -> Play:
    letters = {"selector": "#captcha span", "all": True}
    seen = yield Look(extract={"fields": {"letters": letters}})
    return [fill("#tt", "".join(seen.items[0]["letters"])), SUBMIT]


def number() -> Play:
    said = (yield Look()).utterance
    bound = re.search(r"(less|greater) than (\d+)", said)
    for clicks in range(1, 30):
        generate = [click("#generate")] * clicks
        shown = {"selector": "#display-number", "type": "number", "required": True}
        seen = yield Look(steps=generate, extract={"fields": {"number": shown}})
        found = seen.items[0]["number"]
        if bound is None:
            fits = found % 2 == (1 if "odd" in said else 0)
        else:
            fits = found < int(bound[2]) if bound[1] == "less" else found > int(bound[2])
        if fits:
            return [*generate, click("#submit")]
    raise AssertionError(said)


TASKS: dict[str, Solver] = {
    "copy-paste": copy,
    "copy-paste-2": copy_one,
    "enter-date": date,
    "enter-password": password,
    "enter-text": text,
    "enter-text-2": text_in_case,
    "enter-text-dynamic": text_key_by_key,
    "enter-time": time,
    "find-word": nth_word,
    "focus-text": always(click("#tt")),
    "focus-text-2": focus,
    "generate-number": number,
    "guess-number": guess,
    "highlight-text": highlight,
    "highlight-text-2": highlight,
    "login-user": login,
    "login-user-popup": login_with_popup,
    "multi-layouts": movie_search,
    "multi-orderings": movie_search,
    "read-table": table_value,
    "read-table-2": table_values,
    "scroll-text": last_word,
    "scroll-text-2": scroll_by_keys,
    "simple-algebra": algebra,
    "simple-arithmetic": arithmetic,
    "terminal": command,
    "text-transform": skewed_text,
    "visual-addition": blocks,
}
