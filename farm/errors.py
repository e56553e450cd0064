"""Errors the farm raises on purpose.

FarmError
├── InvalidInputError        what was sent can't be accepted; `problems` says where
├── TooLargeError            what was sent is larger than allowed
├── UnauthorizedError        no token, or not one of ours
├── ForbiddenError           the token's scope does not reach that far
├── NotFoundError            the thing named does not exist
├── ConflictError            the thing is not in a state that allows this
├── StaleAssignmentError     the handle's assignment has ended; somebody else may hold the context
├── ClientAbsentError        the agent that holds the context is not there
├── CollaboratorMissingError the manager was constructed without what the call needs
├── StrategyError            the caller's dispatch strategy failed; nothing was taken
├── ArtifactStoreFullError   there is no room to keep the file
├── UnreadableError          what is kept is sealed with a key the farm does not have
└── StoreUnavailableError    the store did not answer; the caller may retry
    └── NotOwnerError        another coordinator has taken the attempt over; it may go on there
"""

from collections.abc import Mapping
from typing import ClassVar


class FarmError(Exception):
    """Base of every error a caller may meet; `slug` names the problem type on the wire."""

    slug: ClassVar[str]

    def __init__(self, detail: str, **context: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.context: Mapping[str, object] = context


class InvalidInputError(FarmError):
    """What was sent can't be accepted."""

    slug = "invalid-input"


class TooLargeError(FarmError):
    """What was sent is larger than allowed."""

    slug = "too-large"


class UnauthorizedError(FarmError):
    """No token, or not one of ours."""

    slug = "unauthorized"


class ForbiddenError(FarmError):
    """The token's scope does not reach that far."""

    slug = "forbidden"


class NotFoundError(FarmError):
    """The thing named does not exist."""

    slug = "not-found"


class ConflictError(FarmError):
    """The thing is not in a state that allows this."""

    slug = "conflict"


class StaleAssignmentError(FarmError):
    """The handle's assignment has ended."""

    slug = "stale-assignment"


class ClientAbsentError(FarmError):
    """The agent that holds the context is not there."""

    slug = "client-absent"


class CollaboratorMissingError(FarmError):
    """The manager was constructed without what the call needs; `name` says which."""

    slug = "collaborator-missing"

    def __init__(self, name: str) -> None:
        super().__init__(f"the manager needs {name}, and has none", name=name)


class StrategyError(FarmError):
    """The caller's dispatch strategy failed; nothing was taken."""

    slug = "strategy-failed"


class ArtifactStoreFullError(FarmError):
    """There is no room to keep the file."""

    slug = "artifact-store-full"


class UnreadableError(FarmError):
    """What is kept is sealed with a key the farm does not have, or was tampered with."""

    slug = "unreadable"


class StoreUnavailableError(FarmError):
    """The store did not answer."""

    slug = "store-unavailable"


class NotOwnerError(StoreUnavailableError):
    """Another coordinator has taken the attempt over."""

    slug = "not-owner"
