"""What a call to a farm can fail with.

FarmClientError
├── FarmApiError             the farm answered with a problem
└── FarmUnreachableError     nobody answered, or the connection broke
"""

from farm.protocol.problems import Problem


class FarmClientError(Exception):
    """Base of both."""


class FarmApiError(FarmClientError):
    """The farm refused; `problem` is what it said, as RFC 9457 has it."""

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(f"{status} {problem.title}: {problem.detail}")
        self.status = status
        self.problem = problem


class FarmUnreachableError(FarmClientError):
    """No answer; the call may or may not have been carried out."""
