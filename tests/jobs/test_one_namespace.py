"""What a library does for one namespace reaches no other's (P16), as over HTTP."""

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from farm.core.job_states import JobState
from farm.core.model import Namespace
from farm.errors import NotFoundError
from farm.jobs.identities import IdentityBook
from farm.jobs.interventions import Wanted
from farm.jobs.retention import Retention
from farm.jobs.service import JobService
from farm.jobs.why import Explaining
from farm.manager.leaving import Leaving
from farm.stores.ports.deployments import Deployments
from tests.api.stack import DEFAULT, Stack, running

OTHER = Namespace("other")

CALLS: Mapping[str, Callable[[JobService, Namespace, str], Any]] = {
    "job": lambda jobs, ns, job_id: jobs.job(ns, job_id),
    "record_of": lambda jobs, ns, job_id: jobs.record_of(ns, job_id),
    "attempts": lambda jobs, ns, job_id: jobs.attempts(ns, job_id),
    "effects": lambda jobs, ns, job_id: jobs.effects(ns, job_id),
    "history": lambda jobs, ns, job_id: jobs.history(ns, job_id),
    "items": lambda jobs, ns, job_id: jobs.items(ns, job_id, every=True),
    "artifacts": lambda jobs, ns, job_id: jobs.artifacts(ns, job_id),
    "cancel": lambda jobs, ns, job_id: jobs.cancel(ns, job_id),
    "retry": lambda jobs, ns, job_id: jobs.retry(ns, job_id),
    "resolve": lambda jobs, ns, job_id: jobs.resolve(ns, job_id, "failed"),
    "intervene": lambda jobs, ns, job_id: jobs.intervene(ns, job_id, Wanted(kind="pause", by="x")),
}
ABOUT_A_JOB = {
    name
    for name, method in inspect.getmembers(JobService, inspect.isfunction)
    if not name.startswith("_") and "job_id" in inspect.signature(method).parameters
}


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as stack:
        yield stack


async def done(call: Any) -> Any:
    if inspect.isawaitable(call):
        return await call
    return [one async for one in call]


def test_whatever_the_service_does_with_a_job_is_tried() -> None:
    assert set(CALLS) == ABOUT_A_JOB


@pytest.mark.parametrize("name", sorted(CALLS))
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.FAILED, JobState.UNCERTAIN])
async def test_another_namespaces_job_is_not_found_and_stays_as_it_was(
    stack: Stack, name: str, state: JobState
) -> None:
    job_id = await stack.submit()
    if state is not JobState.QUEUED:
        await stack.finish(await stack.start(job_id), job_state=state)
    before = await stack.ledger.record_of(DEFAULT, job_id, events=100)
    with pytest.raises(NotFoundError):
        await done(CALLS[name](stack.jobs, OTHER, job_id))
    assert await stack.ledger.record_of(DEFAULT, job_id, events=100) == before


@pytest.mark.parametrize("name", ["job", "record_of", "history", "items", "attempts"])
async def test_what_is_ones_own_is_read(stack: Stack, name: str) -> None:
    job_id = await stack.submit()
    attempt = await stack.start(job_id)
    await stack.add_items(attempt, {"n": 1})
    assert await done(CALLS[name](stack.jobs, DEFAULT, job_id)) != []
    assert [job.job_id for job in await stack.jobs.jobs(DEFAULT, state=None, before=None, limit=9)]
    assert not await stack.jobs.jobs(OTHER, state=None, before=None, limit=9)


BY_TOKEN = {"lend", "save"}
"""Fenced by the token of the attempt, which is nobody else's."""
OF_THE_FARM = {"counts", "look_again", "reseal", "seal_for_job", "sweep"}
"""About no one in particular."""


@pytest.mark.parametrize(
    "service", [JobService, Retention, Explaining, IdentityBook, Leaving, Deployments]
)
def test_each_call_of_a_service_says_for_which_namespace(service: type) -> None:
    silent = {
        name
        for name, method in inspect.getmembers(service, inspect.isfunction)
        if not name.startswith("_")
        and next(iter(list(inspect.signature(method).parameters)[1:]), None) != "namespace"
    }
    assert silent <= BY_TOKEN | OF_THE_FARM
