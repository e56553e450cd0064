"""Whatever is sent, the answer is a job or an error with problems, never anything else."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farm.errors import InvalidInputError, TooLargeError
from farm.jobs.files import JobSpec, parse
from farm.jobs.files.words import verb_words
from farm.protocol.steps import VERBS

# A busy machine generates slowly; that is no fault of the files.
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))
WORDS = sorted(
    {*verb_words(), *JobSpec.model_fields, "url", "extract", "paginate", "next", "fields", "list"}
    | {key for model in VERBS.values() for key in model.model_fields}
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*WORDS, "${params.x}", "${", "xpath/", "//a[", "a@b", "9d", "1e400d"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)
steps = st.lists(
    st.dictionaries(st.sampled_from(sorted(verb_words())), values, min_size=1, max_size=2),
    max_size=4,
)
jobs = st.fixed_dictionaries(
    {"name": st.text(max_size=5), "steps": steps | values},
    optional={key: values for key in JobSpec.model_fields if key not in ("name", "steps")},
)


def resolves(pointer: str, document: Any) -> bool:
    node = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return False
    return True


def outcome(body: bytes, content_type: str | None) -> JobSpec | list[Any]:
    try:
        return parse(body, content_type=content_type, params={})
    except InvalidInputError as error:
        problems = error.context["problems"]
        assert isinstance(problems, list)
        assert problems
        assert len(problems) <= 20
        json.dumps({"detail": error.detail, "problems": problems}).encode()
        return problems
    except TooLargeError:
        return [{"pointer": ""}]


@given(values | jobs)
@settings(SLOW, max_examples=200)
def test_any_json_is_a_job_or_has_problems_at_places_that_exist(value: Any) -> None:
    found = outcome(json.dumps(value).encode(), "application/json")
    if isinstance(found, JobSpec):
        assert JobSpec.model_validate_json(found.model_dump_json()) == found
    else:
        assert all(resolves(problem["pointer"], value) for problem in found), found


@given(jobs)
@settings(SLOW, max_examples=100)
def test_json_read_as_yaml_never_ends_in_another_error(value: Any) -> None:
    outcome(json.dumps(value).encode(), "application/yaml")


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@settings(SLOW, max_examples=100)
def test_any_bytes_never_end_in_another_error(body: bytes) -> None:
    outcome(body, None)


@given(
    st.sampled_from(EXAMPLES),
    st.lists(
        st.tuples(
            st.floats(0, 1), st.integers(0, 12), st.sampled_from("\t\n :-{}[]&*!|>'\"#%@$~1a")
        ),
        min_size=1,
        max_size=6,
    ),
)
@settings(SLOW, max_examples=150)
def test_a_good_file_with_damage_never_ends_in_another_error(
    path: Path, damage: list[tuple[float, int, str]]
) -> None:
    text = path.read_text()
    for place, length, put in damage:
        at = int(place * len(text))
        text = text[:at] + put + text[at + length :]
    outcome(text.encode(), "application/yaml")
