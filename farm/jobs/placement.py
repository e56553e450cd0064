"""What a job asks of the pool."""

from farm.core.model import ClientType, Namespace, Request, TaskId
from farm.core.placement import identity_in
from farm.core.pools import JOB
from farm.jobs.files import JobSpec, Place, browser_options, identity, requirements
from farm.protocol.plan import BrowserOptions, profile_of


def request_for(
    job_id: str,
    namespace: Namespace,
    spec: JobSpec,
    place: Place,
    options: BrowserOptions | None = None,
) -> Request:
    """Turn a job into a request for a context, in a window of these options, or of its own.

    An identity belongs to its namespace: the same name elsewhere is another one (P16). A flow has
    neither window nor identity: what it is to be like goes with the plan.
    """
    if place is Place.FLOW:
        return Request(
            namespace=namespace,
            task_id=TaskId(job_id),
            task_queue=spec.queue,
            activity_type=JOB,
            node=spec.node,
            client_type=ClientType.CONSOLE,
            requirements=requirements(spec),
            auto_provision=True,
        )
    name = identity(spec)
    # A window that is cleaned in place serves one namespace, so it is in the profile's name (P16).
    resets = spec.browser.context == "reset"
    profile = profile_of(browser_options(spec) if options is None else options)
    return Request(
        namespace=namespace,
        task_id=TaskId(job_id),
        task_queue=spec.queue,
        activity_type=JOB,
        node=spec.node,
        client_type=ClientType(spec.requires.client_type or ClientType.BROWSER),
        requirements=requirements(spec),
        identity=None if name is None else identity_in(namespace, name),
        profile=f"{profile}/{namespace}" if resets else profile,
        resets=resets,
        auto_provision=True,
    )
