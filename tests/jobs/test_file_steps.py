"""The ways a job and its steps may be written, and that they mean the same."""

from typing import Any

import pytest

from farm.jobs.files import JobSpec, parse
from farm.protocol.steps import VERBS, Click, Eval, Extract, Goto, Step, Type, Wait


def job(text: str, **params: object) -> JobSpec:
    return parse(text.encode(), content_type="application/yaml", params=params)


def step(line: str) -> Step:
    use = "none" if line.startswith(("http", "activity")) else "required"
    (found,) = job(f"name: a\nbrowser: {use}\nsteps:\n  - {line}\n").steps
    return found


@pytest.mark.parametrize(
    "line",
    [
        'click: {selector: "#a", timeout: 800, optional: true}',
        '{click: "#a", timeout: 800ms, optional: true}',
        '{click: {selector: "#a"}, timeout: 0.8s, optional: true}',
        '{type: click, selector: "#a", timeout: 800, optional: true}',
        '{Click: "#a", timeout: 800, optional: true}',
    ],
)
def test_every_way_to_write_a_click_is_the_same_click(line: str) -> None:
    assert step(line) == Click(selector="#a", timeout=800, optional=True)


@pytest.mark.parametrize("line", ["back", "back:", "back: {}", "{type: back}", "goBack"])
def test_a_verb_without_required_keys_may_stand_alone(line: str) -> None:
    assert step(line).type == "back"


@pytest.mark.parametrize(
    ("line", "verb"),
    [
        ("navigate: https://a.example/", "goto"),
        ("open: https://a.example/", "goto"),
        ("evaluate: 1 + 1", "eval"),
        ("executeJavascript: 1 + 1", "eval"),
        ('waitForElement: "#a"', "wait_for"),
        ('waitForURL: "**/a"', "wait_for_url"),
        ('pressSequentially: {selector: "#a", text: b}', "type"),
        ('press_sequentially: {selector: "#a", text: b}', "type"),
    ],
)
def test_aliases_and_camel_case_name_the_same_verbs(line: str, verb: str) -> None:
    assert step(line).type == verb


def test_type_is_a_verb_as_well_as_the_key_of_the_canonical_form() -> None:
    typed = Type(selector="#a", text="b")
    assert step('type: {selector: "#a", text: b}') == typed
    assert step('{type: type, selector: "#a", text: b}') == typed
    assert step('{type: {selector: "#a", text: b}}') == typed


@pytest.mark.parametrize("verb", [name for name, model in VERBS.items() if model.shorthand])
def test_every_shorthand_fills_the_key_it_names(verb: str) -> None:
    key = VERBS[verb].shorthand
    assert key is not None
    value = 800 if key == "ms" else "top"
    assert getattr(step(f"{verb}: {value}"), key) == value


def test_camel_case_keys_are_the_same_keys() -> None:
    spec = job("""
name: a
idempotencyKey: k
onUncertain: fail
retry: {maxAttempts: 3}
requires: {clientType: browser, metadata: {someKey: 1}}
browser: {userAgent: x}
steps:
  - goto: {url: https://a.example/, waitUntil: commit, expectStatus: 200}
  - extract: {uniqueBy: someField, fields: {someField: a}, paginate: {next: b, maxPages: 2}}
""")
    goto, extract = spec.steps
    assert isinstance(goto, Goto)
    assert isinstance(extract, Extract)
    assert extract.paginate is not None
    assert (spec.idempotency_key, spec.on_uncertain, spec.retry.max_attempts) == ("k", "fail", 3)
    assert (spec.requires.client_type, spec.requires.metadata) == ("browser", {"someKey": 1})
    assert (spec.browser.user_agent, goto.wait_until, goto.expect_status) == ("x", "commit", (200,))
    assert (list(extract.fields), extract.unique_by) == (["someField"], ("someField",))
    assert extract.paginate.max_pages == 2


def test_defaults_are_filled_in() -> None:
    spec = job("name: a\nsteps: [back]\n")
    assert (spec.version, spec.on_uncertain, spec.effects, spec.browser.context) == (
        1, "hold", "once", "fresh",
    )  # fmt: skip
    assert spec.retry.max_attempts == 2
    assert (spec.timeout.job, spec.timeout.navigation, spec.timeout.step) == (
        600_000, 30_000, 15_000,
    )  # fmt: skip


@pytest.mark.parametrize("written", ["2m", "120000", "{job: 2m}", "{job: 120s}"])
def test_one_duration_is_the_timeout_of_the_job(written: str) -> None:
    spec = job(f"name: a\ntimeout: {written}\nsteps: [back]\n")
    assert (spec.timeout.job, spec.timeout.step) == (120_000, 15_000)


def test_url_and_extract_alone_are_a_job_named_after_the_host() -> None:
    spec = job("url: https://www.a.example/list?x=1\nextract: {fields: {title: h1}}\ntimeout: 9s\n")
    goto, extract = spec.steps
    assert spec.name == "www.a.example"
    assert spec.timeout.job == 9_000
    assert goto == Goto(url="https://www.a.example/list?x=1")
    assert extract == Extract.model_validate({"fields": {"title": "h1"}})


def test_a_short_job_may_have_a_name_of_its_own() -> None:
    assert job("name: b\nurl: https://a.example/\nextract: {fields: {title: h1}}\n").name == "b"


def test_words_that_yaml_1_1_took_for_truth_values_stay_words() -> None:
    assert step("{set: {var: x, value: no}}") == VERBS["set"].model_validate(
        {"var": "x", "value": "no"}
    )


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"a": 1, "b": 1.0, "c": True, "d": None, "e": "\u00fc\U0001f600", "f": [{"g": []}]},
    ],
)
def test_a_job_comes_back_from_json_as_it_was(params: dict[str, Any]) -> None:
    for written in (FULL, FLOW):
        spec = job(written).model_copy(update={"params": params})
        text = spec.model_dump_json()
        assert JobSpec.model_validate_json(text) == spec
        assert JobSpec.model_validate(spec.model_dump(mode="json", by_alias=True)) == spec
        assert JobSpec.model_validate_json(text).model_dump_json() == text


FULL = """
version: 1
name: everything
description: All of it
idempotency_key: k-1
timeout: {job: 2m, step: 3s, navigation: 4s}
retry: {max_attempts: 3}
on_uncertain: retry
effects: idempotent
requires: {metadata: {region: eu, gpu: null, n: 1.0}, client_type: browser}
browser:
  viewport: {width: 800, height: 600}
  bounds: {left: 10, top: 20, width: 900, height: 700}
  popups: 2
  device_scale_factor: 2
  locale: en-GB
  timezone: Europe/Oslo
  user_agent: x
  geolocation: {latitude: 59.9, longitude: 10.7, accuracy: 30}
  permissions: [notifications, geolocation]
  color_scheme: dark
  context: reuse
steps:
  - goto: {url: https://a.example/, expect_status: [200, 304]}
  - back
  - reload: {wait_until: networkidle}
  - click: {selector: "#a", modifiers: [Shift], effect: none}
  - fill: {selector: "#a", value: "", submit: true}
  - type: {selector: "#a", text: b, delay: 5}
  - press: Enter
  - select: {selector: "#a", value: [x, y]}
  - select: {selector: "#a", label: x}
  - select: {selector: "#a", index: 2}
  - check: "#a"
  - uncheck: "#a"
  - hover: "#a"
  - drag: {selector: "#a", to: "#b"}
  - scroll: {y: -200}
  - wait_for: {selector: "#a", count: 3}
  - wait_for_url: "**/x"
  - wait: 1.5s
  - human: {message: "Solve it", timeout: 2h}
  - extract:
      list: li
      fields:
        a: "@data-x"
        b: {selector: i, default: {deep: [1, null]}}
        c: {fields: {d: {list: q, fields: {e: p}}}}
      unique_by: [a, b]
      paginate: {next: a.next}
  - screenshot
  - pdf: {landscape: true}
  - html: {name: x.html}
  - download: {selector: "#a", max_bytes: 9}
  - upload: {selector: "#a", files: [file_1/a.txt]}
  - eval: {script: "a => a", args: {x: [1, 2.5]}, var: y}
  - assert: {var: y, equals: 1.0}
  - set: {var: z, value: {a: [true]}}
"""


FLOW = """
name: without a browser
browser: {use: none, locale: en-GB, user_agent: x}
steps:
  - http: {url: https://a.example/api, method: post, json: {a: [1]}, var: v, expect_status: 201}
  - http: {url: https://a.example/api, method: PUT, body: b, headers: {Content-Type: text/plain}}
  - activity: {name: tidy, args: {x: 1}, var: w, effect: none}
"""


def test_the_jobs_that_have_everything_use_every_verb() -> None:
    spec = job(FULL)
    assert {s.type for s in (*spec.steps, *job(FLOW).steps)} == set(VERBS)
    assert next(s.ms for s in spec.steps if isinstance(s, Wait)) == 1_500
    assert next(s.args for s in spec.steps if isinstance(s, Eval)) == {"x": [1, 2.5]}
