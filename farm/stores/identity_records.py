"""Saved identities as they are kept, as values. What is secret is sealed bytes here."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from farm.core.model import Instant, Namespace


class Mode(StrEnum):
    """How a job uses a saved identity."""

    EXCLUSIVE = "exclusive"
    READ_ONLY = "read_only"
    CLONE = "clone"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBorrowing:
    """What a job to be accepted will have of the farm."""

    identity: str | None
    mode: Mode
    secret: bytes | None
    """What its own proxy is told, sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedState:
    """Cookies and storage, and how much they are."""

    sealed: bytes
    cookies: int
    origins: int
    size: int
    """In bytes, before it was sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """How much an identity remembers, since when, and from whom."""

    cookies: int
    origins: int
    size: int
    saved_at: Instant
    attempt_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedIdentity:
    """One identity, without its state."""

    namespace: Namespace
    name: str
    version: int
    options: Mapping[str, Any]
    """`BrowserOptions`, in JSON terms."""
    proxy: Mapping[str, Any] | None
    """`server` and `bypass`."""
    secret: bytes | None
    """What the proxy is told, sealed."""
    state: KeptState | None
    created_at: Instant
    updated_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What of an identity is to be another; a name that is not in it stays."""

    options: Mapping[str, Any] | None = None
    """None leaves them."""
    proxy: tuple[Mapping[str, Any] | None, bytes | None] | None = None
    """The proxy, or none, and what it is told; None leaves both."""
    state: tuple[SealedState | None] | None = None
    """The state, or none; None leaves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A running attempt that has an identity."""

    job_id: str
    attempt_id: str
    mode: Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowed:
    """What a running attempt has of the farm, sealed."""

    job_id: str
    namespace: Namespace
    mode: Mode
    spec_proxy: Mapping[str, Any] | None
    """The job's own proxy, which goes before the identity's."""
    spec_secret: bytes | None
    identity: SavedIdentity | None
    """None where the job names none, or it is no more; `name` tells."""
    name: str | None
    state: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """One sealed text, where it is kept and what it is bound to."""

    table: str
    column: str
    row: int
    bound_to: str
    sealed: bytes


def of_job(job_id: str) -> str:
    """Name what the secret of a job's own proxy is bound to."""
    return f"the proxy of job {job_id}"


def of_identity(namespace: str, name: str, what: str) -> str:
    """Name what a sealed part of an identity is bound to: it opens in no other place."""
    return f"the {what} of identity {namespace}/{name}"
