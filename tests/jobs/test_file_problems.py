"""What is wrong is said where the person wrote it, all at once, with the nearest word."""

import pytest

from farm.errors import InvalidInputError
from farm.jobs.files import MAX_PROBLEMS, ProblemBody, parse

HEAD = "name: a\nsteps:\n  - goto: https://a.example/\n"


def problems_of(text: str, content_type: str = "application/yaml") -> list[ProblemBody]:
    with pytest.raises(InvalidInputError) as caught:
        parse(text.encode(), content_type=content_type)
    problems = caught.value.context["problems"]
    assert isinstance(problems, list)
    return problems


@pytest.mark.parametrize(
    ("step", "place", "words", "near"),
    [
        ('clik: "#a"', "/clik", "unknown verb 'clik'", "click"),
        ("navigat: x", "/navigat", "unknown verb", "goto"),
        ("{clik: x, timeout: 3}", "/clik", "unknown verb", "click"),
        ("relod", "", "unknown verb", "reload"),
        ("{type: scren_shot}", "/type", "unknown verb", "screenshot"),
        ("qqqqq: 1", "/qqqqq", "unknown verb", None),
        ("{timeout: 3}", "", "needs a verb", None),
        ("{click: a, hover: b}", "", "one step is one verb; found 'click' and 'hover'", None),
        ("12", "", "a step is a verb, or a mapping", None),
        ("[goto, x]", "", "a step is a verb, or a mapping", None),
        ("click: {selecter: x}", "/click/selecter", "unknown key 'selecter'", "selector"),
        ("click: {selecter: x}", "/click", "selector is missing", None),
        ("click", "", "selector is missing", None),
        ("{click: x, tiemout: 3}", "/tiemout", "unknown key", "timeout"),
        ("{click: {selector: x, first: true}, first: true}", "/first", "said twice", None),
        ("{type: click, selector: x, buton: left}", "/buton", "unknown key", "button"),
        ("goto: {url: x, waitUntl: load}", "/goto/waitUntl", "unknown key", "wait_until"),
        ("goto: {url: x, waitUntil: loaded}", "/goto/waitUntil", "should be 'load'", "load"),
        ("goto: 12", "/goto", "should be a text; put the value in quotes", None),
        ("goto: [x]", "/goto", "should be a text", None),
        ('goto: ""', "/goto", "may not be empty", None),
        ("fill: x", "/fill", "fill takes a mapping with selector, value", None),
        ("fill: {selector: x, value: 12}", "/fill/value", "put the value in quotes", None),
        ("set: {x: 1}", "/set", "var is missing", None),
        ("set: {x: 1}", "/set/x", "unknown key 'x'", None),
        ("{click: x, timeout: soon}", "/timeout", "such as '10s'", None),
        ("{click: x, timeout: 99d}", "/timeout", "should be at most", None),
        ("{click: x, optional: perhaps}", "/optional", "should be true or false", None),
        ("{click: x, effect: onec}", "/effect", "should be 'none', 'idempotent'", "once"),
        ("{click: x, nth: -1}", "/nth", "should be at least 0", None),
        ("{click: x, nth: 1.5}", "/nth", "should be a whole number", None),
        ("{click: x, id: a b}", "/id", "letters, digits", None),
        ("screenshot: a/b.png", "/screenshot", "a file name", None),
        ("drag: {selector: x}", "/drag", "either to, or x and y", None),
        ("drag: {selector: x, to: y, x: 3}", "/drag", "either to, or x and y", None),
        ("drag: {selector: x, to: 'txt/a'}", "/drag/to", "unknown selector form", "text/"),
        ("select: {selector: x}", "/select", "exactly one of value, label and index", None),
        ("select: {selector: x, value: {a: 1}}", "/select/value", "or should be a list", None),
        ("upload: {selector: x, files: [a.csv]}", "/upload/files/0", "a file of the farm", None),
        ("extract: {}", "/extract", "fields is missing", None),
        ("extract: {fields: {}}", "/extract/fields", "needs at least 1 entry", None),
        ("extract: {fields: [a]}", "/extract/fields", "should be a mapping", None),
        ("extract: {fields: {a: 1}}", "/extract/fields/a", "should be a mapping", None),
        (
            "extract: {fields: {a: {selectr: x}}}",
            "/extract/fields/a/selectr", "unknown key", "selector",
        ),
        (
            "extract: {fields: {a: {fields: {b: {list: q, fields: {c: {tpe: text}}}}}}}",
            "/extract/fields/a/fields/b/fields/c/tpe", "unknown key", "type",
        ),
        (
            "extract: {fields: {a: {selector: x, regex: '('}}}",
            "/extract/fields/a/regex", "not a regular expression", None,
        ),
        (
            "extract: {fields: {a: {selector: x, regex: 'a{99999999999999999999}'}}}",
            "/extract/fields/a/regex", "not a regular expression", None,
        ),
        (
            "extract: {fields: {a: {selector: x, exists: true, count: true}}}",
            "/extract/fields/a", "exclude each other", None,
        ),
        (
            "extract: {fields: {a: b}, paginate: {nxt: c}}",
            "/extract/paginate/nxt", "unknown key", "next",
        ),
        (
            "extract: {fields: {a: b}, paginate: {next: c, maxPages: 0}}",
            "/extract/paginate/maxPages", "should be at least 1", None,
        ),
        ("extract: {fields: {a: b}, unique_by: c}", "/extract", "unique_by names 'c'", None),
    ],
)  # fmt: skip
def test_a_wrong_step_is_named_where_it_was_written(
    step: str, place: str, words: str, near: str | None
) -> None:
    problems = problems_of(f"{HEAD}  - {step}\n")
    (found,) = [p for p in problems if p["pointer"] == f"/steps/1{place}" and words in p["detail"]]
    assert (found["line"], found["nearest"]) == (4, near)


@pytest.mark.parametrize(
    ("line", "place", "words", "near"),
    [
        ("timout: 3m", "/timout", "unknown key", "timeout"),
        ("maxAttempts: 3", "/maxAttempts", "unknown key", None),
        ("retry: {maxAttempts: 11}", "/retry/maxAttempts", "should be at most 10", None),
        ("retry: {max_attempt: 1}", "/retry/max_attempt", "unknown key", "max_attempts"),
        ("retry: 3", "/retry", "should be a mapping", None),
        ("timeout: 0", "/timeout", "should be at least 1", None),
        ("timeout: {step: 9 years}", "/timeout/step", "such as '10s'", None),
        ("timeout: " + "9" * 400 + "d", "/timeout", "such as '10s'", None),
        ("on_uncertain: holt", "/on_uncertain", "should be 'hold'", "hold"),
        ("effects: none", "/effects", "should be", "once"),
        ("version: 2", "/version", "should be 1", None),
        ("version: true", "/version", "the only version is 1", None),
        ("browser: {context: frehs}", "/browser/context", "should be 'fresh'", "fresh"),
        ("browser: {viewport: {width: 1}}", "/browser/viewport", "height is missing", None),
        ("browser: {bounds: {left: 1, width: 800}}", "/browser/bounds", "height is missing", None),
        ("browser: {bounds: {lefd: 1}}", "/browser/bounds/lefd", "unknown key", "left"),
        ("browser: {popups: many}", "/browser/popups", "should be", None),
        ("browser: {viewport: {widht: 1}}", "/browser/viewport/widht", "unknown key", "width"),
        ("browser: {locale: '!'}", "/browser/locale", "language tag", None),
        ("browser: {timezone: Europe/Olso}", "/browser/timezone", "such as Europe/Oslo", None),
        ("browser: {colorScheme: drak}", "/browser/colorScheme", "should be 'light'", "dark"),
        ("browser: {permissions: [camrea]}", "/browser/permissions/0", "should be", "camera"),
        ("browser: {permissions: camera}", "/browser/permissions", "should be a list", None),
        ("browser: {geolocation: {latitude: 1}}", "/browser/geolocation", "longitude is", None),
        (
            "browser: {geolocation: {latitude: 91, longitude: 0}}",
            "/browser/geolocation/latitude",
            "should be at most 90",
            None,
        ),
        (
            "browser: {device_scale_factor: 2}",
            "/browser/device_scale_factor",
            "goes with a viewport",
            None,
        ),
        ("requires: {client_type: bowser}", "/requires/client_type", "should be", "browser"),
        ("requires: [eu]", "/requires", "should be a mapping", None),
        ("record: [vidio]", "/record/0", "should be 'video', 'trace'", "video"),
        ("record: vidio", "/record", "should be 'video', 'trace'", "video"),
        ("record: []", "/record", "needs at least 1 entry", None),
        ("record: {keep: always}", "/record", "kinds is missing", None),
        ("record: {kinds: [har], keep: never}", "/record/keep", "'always' or 'on_failure'", None),
        ("record: {kinds: [har], overlai: no}", "/record/overlai", "unknown key", "overlay"),
        ("record: 7", "/record", "should be a mapping", None),
        ("params: [a]", "/params", "should be a mapping", None),
        ("params: {a b: 1}", "/params/a b", "name of a param", None),
        ("url: https://a.example/", "/url", "steps, or url and extract", None),
        ("onUncertain: hold\non_uncertain: hold", "/on_uncertain", "said twice", None),
    ],
)
def test_a_wrong_envelope_is_named_where_it_was_written(
    line: str, place: str, words: str, near: str | None
) -> None:
    problems = problems_of(f"{HEAD}{line}\n")
    (found,) = [p for p in problems if p["pointer"] == place and words in p["detail"]]
    assert found["line"] == 4 + line.count("\n")
    assert found["nearest"] == near


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("steps: [back]", "", "name is missing"),
        ("name: a", "", "steps (or url and extract) is missing"),
        ("name: a\nsteps: []", "/steps", "needs at least 1 entry"),
        ("name: a\nsteps: {goto: x}", "/steps", "should be a list"),
        ("name: a\nsteps:", "/steps", "should be a list"),
        ('name: ""\nsteps: [back]', "/name", "may not be empty"),
        ('name: "a\\nb"\nsteps: [back]', "/name", "control characters"),
        ("url: https://a.example/", "", "extract is missing"),
        ("extract: {fields: {a: b}}", "", "url is missing"),
        (
            "url: x\nextract: {fields: {a: {slector: b}}}",
            "/extract/fields/a/slector",
            "unknown key",
        ),
        ("url: 1\nextract: {fields: {a: b}}", "/url", "should be a text"),
        ("url: x\nextract: h1", "/extract", "extract takes a mapping with fields"),
    ],
)
def test_a_job_with_something_missing_says_what(text: str, place: str, words: str) -> None:
    (found,) = problems_of(text)
    assert found["pointer"] == place
    assert words in found["detail"]


@pytest.mark.parametrize(
    ("selector", "words", "near"),
    [
        ("", "may not be empty", None),
        ("  ", "may not be empty", None),
        ("aria/", "something must follow aria/", None),
        ("xpath/", "something must follow xpath/", None),
        ("text/ ", "something must follow text/", None),
        ("role=", "something must follow role=", None),
        ("role=[name='x']", "role= is followed by a role", None),
        ("arai/Save", "unknown selector form 'arai/'", "aria/"),
        ("roel=button", "unknown selector form 'roel='", "role="),
        ("::-p-aria(Save)", "write aria/…", "aria/"),
        ("div ::-p-xpath(//a)", "write xpath/…", "xpath/"),
        ("aria/[role='']", "aria/ needs a name or a role", None),
        ("iframe >> ", "both sides of >>", None),
        ("//a[", "not closed", None),
        ("//a)", "too many", None),
        ("//a[@x='y]", "quotation mark", None),
        ("xpath///a/", "unfinished", None),
        ("//a[]", "unfinished", None),
        ("//a/@", "unfinished", None),
    ],
)
def test_a_selector_of_no_known_form_is_refused(
    selector: str, words: str, near: str | None
) -> None:
    quoted = selector.replace("'", "''")
    for step in (
        f"click: '{quoted}'",
        f"press: {{key: Enter, selector: '{quoted}'}}",
        f"extract: {{list: '{quoted}', fields: {{a: b}}}}",
        f"scroll: '{quoted}'",
    ):
        (found,) = problems_of(f"{HEAD}  - {step}\n")
        assert words in found["detail"]
        assert (found["line"], found["nearest"]) == (4, near)


@pytest.mark.parametrize("selector", ["xpath/", "//a[", "text/x", "aria/x", "role=button", " "])
def test_inside_a_record_only_css_and_xpath_are_selectors(selector: str) -> None:
    (short,) = problems_of(f"{HEAD}  - extract: {{fields: {{a: '{selector}'}}}}\n")
    assert short["pointer"] == "/steps/1/extract/fields/a"
    (long,) = problems_of(f"{HEAD}  - extract: {{fields: {{a: {{selector: '{selector}'}}}}}}\n")
    assert long["pointer"] == "/steps/1/extract/fields/a/selector"


@pytest.mark.parametrize(
    "selector",
    [
        "h3 a",
        "a[href='x/y']",
        "css=a",
        "css/a",
        "pierce/a",
        "text/Log in",
        "text=Log in",
        "aria/Save",
        'aria/Save[role="button"]',
        'aria/[name="x"][role="button"]',
        "role=button",
        "role=button[name='A >> B']",
        "label=User",
        "iframe#pay >> role=button[name=Pay]",
        'xpath///a[@href="x\'y"]',
        "//a[contains(., 'x')]/..",
        "(//a)[2]",
        "text/${vars.name}",
        "my-app >>> button",
    ],
)
def test_a_selector_of_a_known_form_is_accepted(selector: str) -> None:
    quoted = selector.replace("'", "''")
    _, click = parse(f"{HEAD}  - click: '{quoted}'\n".encode(), content_type=None).steps
    assert click.type == "click"


def test_all_problems_are_said_at_once_in_the_order_of_their_lines() -> None:
    problems = problems_of("""
name: a
timout: 3
steps:
  - clik: x
  - click: aria/
  - goto: "${params.x}"
  - fill: {selector: a}
effects: twice
""")
    assert [(p["line"], p["pointer"]) for p in problems] == [
        (3, "/timout"),
        (5, "/steps/0/clik"),
        (6, "/steps/1/click"),
        (7, "/steps/2/goto"),
        (8, "/steps/3/fill"),
        (9, "/effects"),
    ]


def test_at_most_twenty_problems_are_told_and_the_rest_counted() -> None:
    with pytest.raises(InvalidInputError, match=r"/steps/0/clik .*and 49 more") as caught:
        parse(b"name: a\nsteps:\n" + b"  - clik: x\n" * 50, content_type=None)
    problems = caught.value.context["problems"]
    assert isinstance(problems, list)
    assert len(problems) == MAX_PROBLEMS


def test_an_entry_that_is_refused_does_not_make_its_list_too_short() -> None:
    (found,) = problems_of(f"{HEAD}  - upload: {{selector: x, files: [a.csv]}}\n")
    assert found["pointer"] == "/steps/1/upload/files/0"
    (found,) = problems_of(f"{HEAD}  - upload: {{selector: x, files: []}}\n")
    assert (found["pointer"], found["detail"]) == (
        "/steps/1/upload/files",
        "needs at least 1 entry",
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [("identity: a b", "letters, digits"), ("proxy: 'ftp://p:1'", "should begin with http://")],
)
def test_a_word_in_the_place_of_a_mapping_is_pointed_at_where_it_stands(
    line: str, words: str
) -> None:
    (found,) = problems_of(HEAD + line + "\n")
    assert (found["pointer"], found["line"]) == ("/" + line.split(":")[0], 4)
    assert words in found["detail"]


def test_json_has_pointers_and_no_lines() -> None:
    (found,) = problems_of('{"name": "a", "steps": [{"clik": "x"}]}', "application/json")
    assert (found["pointer"], found["line"]) == ("/steps/0/clik", None)


def test_more_than_a_thousand_steps_are_refused() -> None:
    (found,) = problems_of("name: a\nsteps:\n" + "  - back\n" * 1_001)
    assert found["detail"] == "has at most 1000 entries"
