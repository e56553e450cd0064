"""What a caller of `acquire` says, checked, as a request the core understands."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.core.json_values import json_flaw
from farm.core.model import ClientId, ClientType, Namespace, Request, TaskId
from farm.core.placement import ANYWHERE, BrowserPlacement, identity_in
from farm.core.pools import queue_of
from farm.errors import InvalidInputError
from farm.protocol.plan import BrowserOptions, profile_of

_NEVER_S = 100 * 365 * 86_400.0
"""The term of assignments that do not end by themselves: finite, for stores and clients of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The manager's timeout of assignments, and how often it is looked for what is over.

    Raises:
        ValueError: If a number can't be used, naming it.
    """

    timeout_ms: float
    interval_s: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.timeout_ms) or self.timeout_ms < 0:
            raise ValueError("task_timeout_ms must be finite, and zero or more")
        if self.sweeps and not (math.isfinite(self.interval_s) and self.interval_s > 0):
            raise ValueError("task_timeout_check_interval_s must be finite and above zero")

    @property
    def sweeps(self) -> bool:
        """Tell whether assignments end by themselves."""
        return self.timeout_ms > 0

    def term_s(self, timeout_ms: float | None) -> float:
        """Return how long an assignment holds without being renewed.

        Raises:
            InvalidInputError: If a caller's own timeout is not above 0 or over the manager's.
        """
        if timeout_ms is None:
            return self.timeout_ms / 1000 if self.sweeps else _NEVER_S
        if not math.isfinite(timeout_ms) or timeout_ms <= 0:
            raise InvalidInputError("timeout_ms must be finite and above zero")
        if self.sweeps and timeout_ms > self.timeout_ms:
            raise InvalidInputError(f"timeout_ms is at most the manager's {self.timeout_ms:g}")
        return timeout_ms / 1000


def checked_wait(wait: float | None) -> float | None:
    """Return how many seconds to wait. Raises InvalidInputError if that is no such number."""
    if wait is not None and not (math.isfinite(wait) and wait >= 0):
        raise InvalidInputError("wait must be finite, and zero or more seconds")
    return wait


def request_of(
    namespace: str,
    task_id: str,
    *,
    task_queue: str | None,
    activity_type: str | None,
    node: str | None,
    client_type: str | None,
    requirements: Mapping[str, Any] | None,
    affinity_client_id: str | None,
    placement: BrowserPlacement | None,
    auto_provision: bool,
    options: BrowserOptions | None,
) -> Request:
    """Make the request.

    Raises:
        InvalidInputError: If a name is empty, there is no such client type, it has no windows and
            one is asked for, or a requirement is no JSON value.
    """
    named = {"namespace": namespace, "task_id": task_id}
    named |= {} if activity_type is None else {"activity_type": activity_type}
    named |= {} if node is None else {"node": node}
    for name, given in named.items():
        if not given:
            raise InvalidInputError(f"{name} is empty")
    wanted = dict(requirements or {})
    if flaw := json_flaw(wanted, "requirements"):
        raise InvalidInputError(flaw)
    try:
        kind = None if client_type is None else ClientType(client_type)
    except ValueError as error:
        raise InvalidInputError(str(error)) from error
    _check_placement(kind, placement)
    identity = placement.identity if placement is not None else None
    return Request(
        namespace=Namespace(namespace),
        task_id=TaskId(task_id),
        task_queue=queue_of(task_queue),
        activity_type=activity_type,
        node=node,
        client_type=kind,
        requirements=wanted,
        affinity_client_id=None if affinity_client_id is None else ClientId(affinity_client_id),
        identity=None if identity is None else identity_in(namespace, identity),
        profile=profile_of(options) if options is not None else "",
        auto_provision=auto_provision,
        placement=placement,
    )


def _check_placement(kind: ClientType | None, placement: BrowserPlacement | None) -> None:
    if kind in (None, ClientType.BROWSER) or placement is None:
        return
    if placement.mode not in ANYWHERE or placement.identity is not None:
        raise InvalidInputError(f"placement: a {kind} client has no windows and no identities")
