"""Why an attempt ended badly: the reasons an agent may give, and which of them may pass."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Reason(StrEnum):
    """The typed reason of a failure; the values are part of the public API."""

    ASSERTION_FAILED = "assertion_failed"
    BROWSER_LOST = "browser_lost"
    AGENT_LOST = "agent_lost"
    ARTIFACT_STORE_FULL = "artifact_store_full"
    ARTIFACT_TOO_LARGE = "artifact_too_large"
    CANCELLED = "cancelled"
    DOWNLOAD_FAILED = "download_failed"
    DRAINED = "drained"
    EGRESS_DENIED = "egress_denied"
    HUMAN_TIMEOUT = "human_timeout"
    HTTP_STATUS = "http_status"
    IDENTITY_NOT_SAVED = "identity_not_saved"
    IDENTITY_TOO_LARGE = "identity_too_large"
    IDENTITY_UNAVAILABLE = "identity_unavailable"
    JOB_TIMEOUT = "job_timeout"
    NAVIGATION_FAILED = "navigation_failed"
    NAVIGATION_TIMEOUT = "navigation_timeout"
    NEEDS_BROWSER = "needs_browser"
    PAUSED_TOO_LONG = "paused_too_long"
    PAGE_CRASHED = "page_crashed"
    PAGE_CLOSED = "page_closed"
    PAGE_FLOODED = "page_flooded"
    PROXY_AUTH_REFUSED = "proxy_auth_refused"
    PROXY_UNREACHABLE = "proxy_unreachable"
    REQUIRED_MISSING = "required_missing"
    SCRIPT_ERROR = "script_error"
    SELECTOR_AMBIGUOUS = "selector_ambiguous"
    SELECTOR_INVALID = "selector_invalid"
    SELECTOR_NOT_FOUND = "selector_not_found"
    STALE_ASSIGNMENT = "stale_assignment"
    STEP_TIMEOUT = "step_timeout"
    VALUE_INVALID = "value_invalid"
    INTERNAL = "internal"


PERMANENT = frozenset(
    {
        Reason.ASSERTION_FAILED,
        Reason.ARTIFACT_TOO_LARGE,
        Reason.CANCELLED,
        Reason.EGRESS_DENIED,
        Reason.IDENTITY_TOO_LARGE,
        Reason.HUMAN_TIMEOUT,
        Reason.JOB_TIMEOUT,
        Reason.NEEDS_BROWSER,
        Reason.PAUSED_TOO_LONG,
        Reason.PROXY_AUTH_REFUSED,
        Reason.SCRIPT_ERROR,
        Reason.SELECTOR_AMBIGUOUS,
        Reason.SELECTOR_INVALID,
        Reason.VALUE_INVALID,
    }
)
"""Reasons that another attempt would only meet again."""


class Failure(BaseModel):
    """What went wrong, where, in words for a person."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    reason: Reason
    detail: str
    """At most 2,000 characters; may quote the page, so it is untrusted text."""
    step_index: int | None = None
    """Which step, counted from 0; None where the attempt as a whole failed."""
    step: str | None = None
    """The step's id or name, or its verb."""
    status: int | None = None
    """The HTTP status, for `http_status`."""
