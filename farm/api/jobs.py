"""`/v1/jobs`: submit, list, show, resolve."""

import asyncio
from http import HTTPStatus

from aiohttp import hdrs, web

from farm.api.answers import answer, body_of, number_in_query, raw_body, whole_in_query
from farm.api.deps import Deps, deps_of, namespace_of, principal_of
from farm.api.interventions import who
from farm.api.queries import choice_in_query
from farm.api.routes import Access, Answer, Parameter, Route
from farm.api.views import job_detail, job_members, job_view
from farm.api.watching import SAFETY_POLL_S, SLICE_S, gone
from farm.core.job_states import AT_REST, JobState
from farm.core.model import Namespace
from farm.errors import InvalidInputError, NotFoundError
from farm.jobs.files import JobSpec
from farm.protocol.resources import (
    SUBMISSION,
    JobAccepted,
    JobDetail,
    JobList,
    JobView,
    ResolveBody,
    Submission,
)
from farm.stores.records import Job

MAX_WAIT_S = 60.0
MAX_PAGE = 500
_PARAM = "param."


async def submit_job(request: web.Request) -> web.Response:
    """Accept a job file; 201 with a new job, 200 with the one that was there.

    With `wait` the answer comes once it is at rest; it is accepted long before.
    """
    deps = deps_of(request)
    wait_s = _wait_s(request)
    file, content_type, params = await _submission(request)
    job, duplicate = await deps.jobs.submit(
        namespace_of(request), file, content_type, params, request.headers.get("Idempotency-Key")
    )
    if wait_s:
        # Nobody has had a turn since a new job was accepted, so it is as it was.
        known = None if duplicate else job
        job = await _at_rest(request, deps, job.job_id, wait_s, known)
    return answer(
        JobAccepted(**job_members(job, await deps.readings.of_one(job)), duplicate=duplicate),
        status=HTTPStatus.OK if duplicate else HTTPStatus.CREATED,
        location=f"/v1/jobs/{job.job_id}",
    )


async def list_jobs(request: web.Request) -> web.Response:
    """Return one page of the namespace's jobs, newest first."""
    deps = deps_of(request)
    limit = whole_in_query(request, "limit", default=50, least=1, most=MAX_PAGE)
    found = await deps.jobs.jobs(
        namespace_of(request),
        state=_state(request),
        before=await _cursor(request, deps),
        limit=limit + 1,
    )
    page = found[:limit]
    readings = await deps.readings.of(page)
    return answer(
        JobList(
            items=tuple(job_view(job, readings[job.job_id]) for job in page),
            next_cursor=page[-1].job_id if len(found) > limit else None,
        )
    )


async def show_job(request: web.Request) -> web.Response:
    """Return one job with its history; with `wait` not before it is at rest."""
    deps = deps_of(request)
    if wait_s := _wait_s(request):
        await _at_rest(request, deps, _id(request), wait_s)
    record = await deps.jobs.record_of(namespace_of(request), _id(request))
    return answer(job_detail(record, await deps.readings.of_one(record.job)))


async def resolve_job(request: web.Request) -> web.Response:
    """Decide what an uncertain job is."""
    deps = deps_of(request)
    body = await body_of(request, ResolveBody)
    by = who(request, body)
    job = await deps.jobs.resolve(namespace_of(request), _id(request), body.as_, by=by)
    return answer(job_view(job, await deps.readings.of_one(job)))


async def delete_job(request: web.Request) -> web.Response:
    """Delete a job that has ended, with its records, history and files."""
    asks = principal_of(request)
    await deps_of(request).retention.delete(
        asks.namespace, _id(request), by=asks.name or asks.token_id
    )
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _at_rest(
    request: web.Request, deps: Deps, job_id: str, wait_s: float, known: Job | None = None
) -> Job:
    """Read a job, and again when it may have come to rest, until it has or time is over (P7).

    `known` is the job as it is now, where it has just been read.
    """
    namespace: Namespace = namespace_of(request)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    with deps.feed.subscribe(job_id, rest_only=True) as watcher:
        while True:
            generation = watcher.generation()
            job = known or await deps.jobs.job(namespace, job_id)
            known = None
            poll_at = min(until, loop.time() + SAFETY_POLL_S)
            while job.state not in AT_REST and (left := poll_at - loop.time()) > 0:
                if gone(request) or deps.feed.closed:
                    return job
                if await watcher.changed_since(generation, within_s=min(left, SLICE_S)):
                    break
            if job.state in AT_REST or loop.time() >= until:
                return job


def _wait_s(request: web.Request) -> float:
    return number_in_query(request, "wait", default=0, least=0, most=MAX_WAIT_S)


def _id(request: web.Request) -> str:
    return request.match_info["job_id"]


async def _submission(request: web.Request) -> tuple[bytes, str | None, dict[str, object]]:
    """Return the job file, what it is said to be, and the values for its params."""
    params: dict[str, object] = {**_params(request)}
    if request.content_type != SUBMISSION:
        return await raw_body(request), request.headers.get(hdrs.CONTENT_TYPE), params
    sent = await body_of(request, Submission)
    if twice := params.keys() & sent.params.keys():
        raise InvalidInputError(f"the parameter {min(twice)!r} is in the query and in the body")
    return sent.job.encode(), sent.content_type, {**sent.params, **params}


def _params(request: web.Request) -> dict[str, str]:
    params: dict[str, str] = {}
    for key, value in request.query.items():
        if key == _WAIT.name:
            continue
        name = key.removeprefix(_PARAM)
        if name == key or not name:
            raise InvalidInputError(
                f"the query has {key!r}; a parameter is given as {_PARAM}<name>=<value>",
                parameter=key,
            )
        if name in params:
            raise InvalidInputError(f"the parameter {name!r} is given twice", parameter=key)
        params[name] = value
    return params


def _state(request: web.Request) -> JobState | None:
    text = choice_in_query(request, "state", tuple(JobState))
    return None if text is None else JobState(text)


async def _cursor(request: web.Request, deps: Deps) -> str | None:
    text = request.query.get("cursor")
    if text is None:
        return None
    try:
        return (await deps.jobs.job(namespace_of(request), text)).job_id
    except NotFoundError:
        raise InvalidInputError(
            "the cursor is not one of this farm's; take it from next_cursor of the page before",
            parameter="cursor",
        ) from None


_WAIT = Parameter(
    name="wait",
    description="Seconds, up to 60: answer once the job is at rest, or after that.",
    type="number",
)

ROUTES = (
    Route(
        method="POST",
        path="/v1/jobs",
        handler=submit_job,
        summary="Submit a job",
        access=Access.ADMIN,
        parameters=(
            _WAIT,
            Parameter(name="param.{name}", description="A value for one of the job's params."),
            Parameter(
                name="Idempotency-Key",
                where="header",
                description="The same as the body's idempotency_key.",
            ),
        ),
        takes_body=True,
        body=JobSpec,
        body_may_be_shorter=True,
        body_media_types=("application/yaml", "application/json"),
        other_bodies={SUBMISSION: Submission},
        answers=(
            Answer(status=HTTPStatus.CREATED, description="Accepted.", model=JobAccepted),
            Answer(description="It was there already.", model=JobAccepted),
        ),
    ),
    Route(
        method="GET",
        path="/v1/jobs",
        handler=list_jobs,
        summary="List jobs, newest first",
        access=Access.ADMIN,
        parameters=(
            Parameter(name="state", description="Only jobs in this state."),
            Parameter(name="limit", description="At most so many, up to 500.", type="integer"),
            Parameter(name="cursor", description="The next_cursor of the page before."),
        ),
        answers=(Answer(model=JobList),),
    ),
    Route(
        method="GET",
        path="/v1/jobs/{job_id}",
        handler=show_job,
        summary="Show a job with its history",
        access=Access.ADMIN,
        parameters=(_WAIT,),
        answers=(Answer(model=JobDetail),),
    ),
    Route(
        method="DELETE",
        path="/v1/jobs/{job_id}",
        handler=delete_job,
        summary="Delete a job that has ended",
        access=Access.ADMIN,
        answers=(Answer(status=HTTPStatus.NO_CONTENT, description="It is gone.", empty=True),),
    ),
    Route(
        method="POST",
        path="/v1/jobs/{job_id}/resolve",
        handler=resolve_job,
        summary="Decide an uncertain job",
        access=Access.ADMIN,
        takes_body=True,
        body=ResolveBody,
        answers=(Answer(model=JobView),),
    ),
)
