"""Bytes in: what is read, what is refused, and on which line."""

import pytest

from farm.errors import InvalidInputError, TooLargeError
from farm.jobs.files import MAX_BYTES, JobSpec, ProblemBody, parse

GOOD = "name: a\nsteps:\n  - goto: https://a.example/\n"


def problems_of(
    text: str | bytes, content_type: str | None = "application/yaml"
) -> list[ProblemBody]:
    body = text.encode() if isinstance(text, str) else text
    with pytest.raises(InvalidInputError) as caught:
        parse(body, content_type=content_type)
    problems = caught.value.context["problems"]
    assert isinstance(problems, list)
    return problems


def only(text: str | bytes, content_type: str | None = "application/yaml") -> ProblemBody:
    (problem,) = problems_of(text, content_type)
    return problem


def test_yaml_and_json_of_the_same_job_are_the_same_job() -> None:
    as_json = b'{"name": "a", "steps": [{"goto": "https://a.example/"}]}'
    read = parse(as_json, content_type="application/json")
    assert read == parse(GOOD.encode(), content_type="application/yaml")


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "application/yaml",
        "application/x-yaml; charset=utf-8",
        "text/yaml",
        "text/plain",
        "application/x-www-form-urlencoded",
    ],
)
def test_yaml_is_read_under_any_type_that_does_not_say_json(content_type: str | None) -> None:
    assert parse(GOOD.encode(), content_type=content_type).name == "a"


@pytest.mark.parametrize("body", ['{"name": "a", "steps": ["back"]}', "{name: a, steps: [back]}"])
def test_braces_of_either_format_are_read_without_a_type(body: str) -> None:
    assert parse(body.encode(), content_type=None).name == "a"


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse(b"\xef\xbb\xbf" + GOOD.encode(), content_type=None).name == "a"


def test_a_file_over_the_limit_is_too_large_and_one_at_it_is_not() -> None:
    at_limit = GOOD.encode() + b"#" * (MAX_BYTES - len(GOOD))
    assert isinstance(parse(at_limit, content_type="application/yaml"), JobSpec)
    with pytest.raises(TooLargeError):
        parse(at_limit + b"#", content_type="application/yaml")


@pytest.mark.parametrize("body", [b"", b"  \n\n", b"# only a comment\n", b"\xef\xbb\xbf"])
def test_an_empty_file_says_so(body: bytes) -> None:
    assert only(body)["detail"] == "the file is empty"


@pytest.mark.parametrize("body", ["- back", "just words", "12", "null"])
def test_the_top_level_is_a_mapping(body: str) -> None:
    assert only(body)["detail"] == "a job file is a mapping of keys to values"


def test_a_file_that_is_not_utf8_names_the_line() -> None:
    problem = only(b"name: a\nx: \xff\n")
    assert (problem["pointer"], problem["line"]) == ("", 2)
    assert "UTF-8" in problem["detail"]


@pytest.mark.parametrize(
    ("text", "place", "line", "words"),
    [
        ("name: a\nname: b\n", "/name", 2, "'name' is there twice"),
        ("a:\n  - b: 1\n    b: 2\n", "/a/0/b", 3, "'b' is there twice"),
        ("name: a\n\tsteps: 1\n", "", 2, "tab"),
        ("name: a\nsteps: [\n", "", 3, "not YAML"),
        ("name: a\x01\n", "", 1, "U+0001"),
        ("name: a\n---\nname: b\n", "", 2, "a second one"),
        ("%YAML 1.1\n---\nname: a\n", "", 2, "YAML 1.2"),
        ("a: 1\nb: !!python/object:os.system x\n", "/b", 2, "tag"),
        ("a: !!python/object/apply:os.system [x]\n", "/a", 1, "tag"),
        ("a: !secret x\n", "/a", 1, "tag"),
        ("a: !!binary aGk=\n", "/a", 1, "tag"),
        ("a:\n  b: &x\n    - *x\n", "/a/b/0", 3, "refers to what it is part of"),
        ("a: *nobody\n", "/a", 1, "no anchor"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "/c", 3, "merge keys"),
        ("? [a]\n: b\n", "", 1, "a key is a text"),
        ("a: .nan\n", "/a", 1, "NaN"),
        ("a:\n- b: -.inf\n", "/a/0/b", 2, "infinity"),
        ("a: 99999999999999999999\n", "/a", 1, "64 bits"),
        ("a: 1e999\n", "/a", 1, "infinity"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_where_it_stands(
    text: str, place: str, line: int, words: str
) -> None:
    problem = only(text)
    assert (problem["pointer"], problem["line"]) == (place, line)
    assert words in problem["detail"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('{"a": {"b": 1, "b": 2}}', "/a/b", "'b' is there twice"),
        ('{"a": [1, {"b/c": 1, "b/c": 2}]}', "/a/1/b~1c", "twice"),
        ('{"a": NaN}', "/a", "NaN"),
        ('{"a": [-Infinity]}', "/a/0", "infinity"),
        ('{"a": 1e999}', "/a", "infinity"),
        ('{"a": "\\ud800"}', "/a", "surrogate"),
        ('{"a": "\\u0000"}', "/a", "NUL"),
        ('{"a": ' + "9" * 5_000 + "}", "/a", "64 bits"),
        ('{"a": 1,}', "", "not JSON"),
        ('{"' + "k" * 300 + '": 1}', "", "a key has at most 256 characters"),
    ],
)
def test_what_is_no_plain_json_is_refused_where_it_stands(
    text: str, place: str, words: str
) -> None:
    problem = only(text, "application/json")
    assert problem["pointer"] == place
    assert words in problem["detail"]


def test_json_that_is_broken_names_the_line() -> None:
    assert only('{"name": "a",\n "steps": ]}', "application/json")["line"] == 2


@pytest.mark.parametrize("opening", ["[", '{"a":', "{a: ", "- ", "[1,"])
@pytest.mark.parametrize("content_type", ["application/json", "application/yaml", None])
def test_a_file_nested_too_deep_is_refused_at_once(opening: str, content_type: str | None) -> None:
    assert problems_of(opening * (900_000 // len(opening)), content_type)


def test_64_levels_are_read_and_65_are_not() -> None:
    def nested(levels: int) -> str:
        return f"name: a\nsteps: [back]\nparams: {{x: {'[' * levels}{']' * levels}}}\n"

    assert parse(nested(62).encode(), content_type=None).name == "a"
    assert "nested deeper than 64" in only(nested(63))["detail"]


def test_anchors_are_allowed_and_written_out() -> None:
    text = """
name: a
steps:
  - click: &button {selector: "#go", first: true}
  - click: *button
"""
    first, second = parse(text.encode(), content_type=None).steps
    assert first == second


def test_a_bomb_of_aliases_is_refused() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "more than 50000 values" in only("\n".join(rows))["detail"]


def test_a_bomb_of_long_texts_is_refused() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 100)}]\n"
    assert "more than 4000000 characters" in only(text)["detail"]


def test_more_than_50000_values_are_refused_in_json_too() -> None:
    body = '{"a": [' + ",".join("1" * 60_000) + "]}"
    assert "more than 50000 values" in only(body, "application/json")["detail"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"),
        ("on", "on"),
        ("2026-01-31", "2026-01-31"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("010", 10),
        ("0o10", 8),
        ("0xff", 255),
        ("-3.5e2", -350.0),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("'12'", "12"),
        ("!!str 12", "12"),
    ],
)
def test_plain_scalars_follow_the_core_schema(written: str, meant: object) -> None:
    spec = parse(f"name: a\nparams:\n  x: {written}\nsteps: [back]\n".encode(), content_type=None)
    assert spec.params == {"x": meant}
    assert type(spec.params["x"]) is type(meant)
