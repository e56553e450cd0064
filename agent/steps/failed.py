"""How a step says that it failed, wherever it runs."""

import re

from farm.protocol.failures import Reason

MAX_DETAIL = 2_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class StepFailed(Exception):  # noqa: N818 - an expected outcome of a step
    """A step did not do what it should; carries what a `Failure` needs to say."""

    def __init__(self, reason: Reason, detail: str, *, status: int | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.status = status


def clean(text: str) -> str:
    """Return a text fit to be shown: no control characters, at most 2,000 in all."""
    text = _ANSI.sub("", text).encode("utf-8", "replace").decode("utf-8").strip()
    return text if len(text) <= MAX_DETAIL else text[: MAX_DETAIL - 1] + "…"


def invalid_selector(selector: str | None, why: str) -> StepFailed:
    """Return the failure of a selector that cannot be understood."""
    return StepFailed(
        Reason.SELECTOR_INVALID, clean(f"{selector!r} is not a valid selector: {why}")
    )
