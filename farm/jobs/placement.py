"""What a job asks of the pool."""

from hashlib import blake2b

from farm.core.model import ClientType, Namespace, Request, TaskId
from farm.jobs.files import JobSpec, identity
from farm.protocol.plan import BrowserOptions


def options_of(spec: JobSpec) -> BrowserOptions:
    """Return what the job's window is to be opened with."""
    asked = spec.browser
    return BrowserOptions(viewport=asked.viewport, locale=asked.locale, user_agent=asked.user_agent)


def profile_of(options: BrowserOptions) -> str:
    """Name a set of options; the plain ones have the empty name."""
    if options == BrowserOptions():
        return ""
    return blake2b(options.model_dump_json().encode(), digest_size=8).hexdigest()


def request_for(job_id: str, namespace: Namespace, spec: JobSpec) -> Request:
    """Turn a job into a request for a context."""
    return Request(
        namespace=namespace,
        task_id=TaskId(job_id),
        client_type=ClientType(spec.requires.client_type or ClientType.BROWSER),
        requirements=spec.requires.metadata,
        identity=identity(spec),
        profile=profile_of(options_of(spec)),
        auto_provision=True,
    )
