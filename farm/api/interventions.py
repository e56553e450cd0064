"""What a person does to a job: cancel, run again, pause, resume, take over, say something."""

from aiohttp import web
from aiohttp.typedefs import Handler

from farm.api.answers import answer, body_of, raw_body
from farm.api.deps import deps_of, namespace_of, principal_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import job_view
from farm.errors import ConflictError
from farm.jobs.interventions import Wanted
from farm.protocol.messages import Intervention
from farm.protocol.resources import InterventionBody, InterventionView, JobView, MessageBody


async def cancel_job(request: web.Request) -> web.Response:
    """Cancel a queued job at once, ask a running one to stop."""
    deps = deps_of(request)
    by = who(request, await _body(request))
    job = await deps.jobs.cancel(namespace_of(request), request.match_info["job_id"], by=by)
    return answer(job_view(job, await deps.readings.of_one(job)))


async def retry_job(request: web.Request) -> web.Response:
    """Run a job again that has failed, timed out or been cancelled."""
    deps = deps_of(request)
    by = who(request, await _body(request))
    job = await deps.jobs.retry(namespace_of(request), request.match_info["job_id"], by=by)
    return answer(job_view(job, await deps.readings.of_one(job)))


async def pause_job(request: web.Request) -> web.Response:
    """Let a job wait: a running one before its next step, a queued one in the queue."""
    return await _intervene(request, "pause", await _body(request))


async def resume_job(request: web.Request) -> web.Response:
    """Let a paused job go on."""
    return await _intervene(request, "resume", await _body(request))


async def take_over_job(request: web.Request) -> web.Response:
    """Let a person work in the job's tab, once its step in progress is over."""
    return await _intervene(request, "takeover", await _body(request))


async def hand_back_job(request: web.Request) -> web.Response:
    """Let the job go on where a person has left its tab."""
    return await _intervene(request, "hand_back", await _body(request))


async def message_job(request: web.Request) -> web.Response:
    """Show a text to the people at the browser."""
    body = await body_of(request, MessageBody)
    return await _intervene(request, "message", body, body.text)


async def _intervene(
    request: web.Request, kind: Intervention, body: InterventionBody, text: str = ""
) -> web.Response:
    deps, job_id, by = deps_of(request), request.match_info["job_id"], who(request, body)
    namespace = namespace_of(request)
    done = await deps.jobs.intervene(namespace, job_id, Wanted(kind=kind, by=by, text=text))
    if done.outcome != "applied":
        words = done.outcome.replace("_", " ")
        raise ConflictError(
            f"{words}: {done.detail}",
            job_id=job_id,
            outcome=done.outcome,
            intervention_id=done.intervention_id,
        )
    job = await deps.jobs.job(namespace, job_id)
    view = job_view(job, await deps.readings.of_one(job))
    return answer(InterventionView(id=done.intervention_id, kind=kind, by=by, job=view))


async def _body(request: web.Request) -> InterventionBody:
    if not (await raw_body(request)).strip():
        return InterventionBody()
    return await body_of(request, InterventionBody)


def who(request: web.Request, body: InterventionBody) -> str:
    """Return by whom something is done: as the body says, or the name of the token."""
    asks = principal_of(request)
    return body.by or asks.name or asks.token_id


def _route(path: str, handler: Handler, summary: str, body: type[InterventionBody]) -> Route:
    return Route(
        method="POST",
        path=f"/v1/jobs/{{job_id}}/{path}",
        handler=handler,
        summary=summary,
        access=Access.ADMIN,
        takes_body=True,
        body=body,
        body_may_be_left_out=body is InterventionBody,
        answers=(Answer(model=JobView if path in ("cancel", "retry") else InterventionView),),
    )


ROUTES = (
    _route("cancel", cancel_job, "Cancel a job", InterventionBody),
    _route("retry", retry_job, "Run a job again that has ended", InterventionBody),
    _route("pause", pause_job, "Pause a job", InterventionBody),
    _route("resume", resume_job, "Let a paused job go on", InterventionBody),
    _route("take-over", take_over_job, "Take over a job's tab", InterventionBody),
    _route("hand-back", hand_back_job, "Hand a job's tab back", InterventionBody),
    _route("message", message_job, "Say something to the people at a job's browser", MessageBody),
)
