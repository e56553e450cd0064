import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request

import farm.errors
from farm.api.errors import STATUS, problem_of
from farm.errors import FarmError, InvalidInputError
from tests.api.stack import Stack


def every_error(base: type[FarmError] = FarmError) -> set[type[FarmError]]:
    found = set(base.__subclasses__())
    return found.union(*(every_error(one) for one in found))


def test_every_error_has_its_status() -> None:
    assert {e for e in every_error() if e.__module__ == farm.errors.__name__} == set(STATUS)


def test_every_error_has_a_slug_of_its_own() -> None:
    assert len({error.slug for error in STATUS}) == len(STATUS)


def test_every_error_is_drawn_in_the_tree() -> None:
    assert all(error.__name__ in (farm.errors.__doc__ or "") for error in STATUS)


def test_the_context_of_an_error_becomes_members_of_the_problem() -> None:
    error = InvalidInputError("no", parameter="x", status="taken", value=object())
    problem = problem_of(error, make_mocked_request("GET", "/p"))
    assert problem.status == 422
    assert problem.instance == "/p"
    assert problem.model_extra is not None
    assert problem.model_extra["parameter"] == "x"
    assert problem.model_extra["value"].startswith("<object")


async def test_an_unexpected_failure_is_a_problem_that_says_only_where_the_log_has_it(
    stack: Stack,
) -> None:
    async def fails(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the secret reason")

    stack.ledger.jobs = fails  # type: ignore[method-assign, assignment]  # a bug, on purpose
    async with stack.http.get(f"{stack.url}/v1/jobs", headers=stack.as_admin()) as response:
        assert response.status == 500
        assert response.content_type == "application/problem+json"
        body = await response.json()
        assert body["request_id"] == response.headers["X-Request-ID"]
        assert "secret" not in await response.text()
    assert body["type"] == "/problems/internal"


async def test_an_answer_that_breaks_in_the_middle_is_cut_not_ended(stack: Stack) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.add_items(attempt, {"a": "x" * 100_000})

    async def breaks(*args: object, **kwargs: object) -> object:
        async for item in real(*args, **kwargs):  # type: ignore[arg-type]
            yield item
            raise RuntimeError("broken")

    real = stack.ledger.items
    stack.ledger.items = breaks  # type: ignore[method-assign, assignment]  # a bug, on purpose
    with pytest.raises(aiohttp.ClientError):
        async with stack.http.get(
            f"{stack.url}/v1/jobs/{job_id}/items", headers=stack.as_admin()
        ) as response:
            await response.read()
