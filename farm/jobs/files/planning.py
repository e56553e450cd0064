"""What a checked job asks for: the plan of an attempt, its kind of worker, its hosts."""

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from farm.core.eligibility import canonical
from farm.core.model import Namespace
from farm.core.pools import DEFAULT_QUEUE
from farm.jobs.files.places import Place, places
from farm.jobs.files.spec import JobSpec
from farm.protocol.plan import Borrows, BrowserOptions, Egress, Plan
from farm.protocol.recordings import RECORDS, RECORDS_VIDEO, Recording, RecordingKind
from farm.protocol.steps import Goto

_PORTS = {"http": 80, "https": 443}


def to_plan(
    spec: JobSpec,
    *,
    job_id: str,
    attempt_id: str,
    attempt_number: int,
    place: Place,
    egress: Egress,
    recording_max_bytes: int,
) -> Plan:
    """Return what an agent needs to run one attempt."""
    return Plan(
        job_id=job_id,
        attempt_id=attempt_id,
        attempt_number=attempt_number,
        name=spec.name,
        steps=spec.steps,
        params=spec.params,
        timeouts=spec.timeouts,
        effects=spec.effects,
        reuse=spec.browser.context == "reuse",
        egress=egress,
        options=browser_options(spec) if place is Place.FLOW else BrowserOptions(),
        borrows=_borrows(spec),
        record=_recording(spec, recording_max_bytes),
        popups=spec.browser.most_popups,
    )


def _borrows(spec: JobSpec) -> Borrows | None:
    if spec.identity is not None:
        return Borrows(identity=spec.identity.name, save=spec.identity.saves)
    return None if spec.proxy is None else Borrows()


def browser_options(spec: JobSpec, saved: Mapping[str, Any] | None = None) -> BrowserOptions:
    """Return what the job's window is to be opened with.

    Args:
        spec: The job. What it says goes before what its identity says.
        saved: The options of its saved identity, in JSON terms.

    Raises:
        ValidationError: If the two don't go together.
    """
    besides = {"context", "popups", "use"}
    asked = spec.browser.model_dump(mode="json", exclude=besides, exclude_none=True)
    return BrowserOptions.model_validate({**(saved or {}), **asked})


def identity(spec: JobSpec) -> str | None:
    """Return the name of the window's identity; None where the job wants a clean one.

    Jobs that reuse and ask for the same options get the same name.
    """
    if spec.browser.context != "reuse":
        return None
    options = browser_options(spec)
    if options == BrowserOptions():
        return "shared"
    return f"shared-{_digest(options.model_dump(mode='json'))[:12]}"


def requirements(spec: JobSpec) -> dict[str, Any]:
    """Return what an agent's metadata must have: what the job says, and what its recordings need.

    An agent that can't record what is asked for is passed over as one of other metadata.
    """
    if spec.record is None:
        return spec.requires.metadata
    needed = {RECORDS: True}
    if RecordingKind.VIDEO in spec.record.kinds:
        needed[RECORDS_VIDEO] = True
    return spec.requires.metadata | needed


def _recording(spec: JobSpec, max_bytes: int) -> Recording | None:
    asked = spec.record
    if asked is None:
        return None
    return Recording(kinds=asked.kinds, keep=asked.keep, overlay=asked.overlay, max_bytes=max_bytes)


def match_key(spec: JobSpec, namespace: Namespace, place: Place | None = None) -> str:
    """Return a key that is equal for jobs that ask for the same kind of worker.

    Args:
        spec: The job.
        namespace: Whose it is.
        place: Where it is to run; by default where it is tried first.
    """
    kind: list[object] = [namespace, requirements(spec), Place.FLOW]
    if (place or places(spec)[0]) is not Place.FLOW:
        requires = spec.requires.model_dump(mode="json") | {"metadata": requirements(spec)}
        kind = [namespace, requires, identity(spec)]
        if (use := spec.identity) is not None:
            kind.append([use.name, use.mode])  # who waits for one identity waits for the same
    if (spec.queue, spec.node) != (DEFAULT_QUEUE, None):
        kind.append({"queue": spec.queue, "node": spec.node})
    return _digest(kind)[:32]


def canonical_hash(spec: JobSpec) -> str:
    """Return a hash of the whole job, params filled in, however its file was written."""
    unsaid: dict[str, Any] = {"record": True} if spec.record is None else {}
    if spec.browser.use == "required":
        unsaid["browser"] = {"use"}
    if spec.queue == DEFAULT_QUEUE:
        unsaid["queue"] = True
    if spec.node is None:
        unsaid["node"] = True
    return _digest(spec.model_dump(mode="json", exclude=unsaid))


def place_of(spec: JobSpec, namespace: Namespace, key: str) -> Place:
    """Return where a job is to run now, which its match key tells."""
    allowed = places(spec)
    return next((p for p in allowed if match_key(spec, namespace, p) == key), allowed[0])


def falls_back_to(spec: JobSpec, place: Place) -> Place | None:
    """Return where a job may run that won't do in a place; None where nowhere else."""
    later = places(spec)
    following = later[later.index(place) + 1 :] if place in later else ()
    return next(iter(following), None)


def private_hosts(spec: JobSpec) -> tuple[str, ...]:
    """Return `host:port` of each private or loopback host that a `goto` names literally."""
    found = (_private(step.url) for step in spec.steps if isinstance(step, Goto))
    return tuple(dict.fromkeys(host for host in found if host is not None))


def _private(url: str) -> str | None:
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if host is None or port is None or not _is_private(host):
        return None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return any(address.is_private and not address.is_link_local for address in _addresses(host))


def _addresses(host: str) -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    yield mapped or address


def _digest(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
