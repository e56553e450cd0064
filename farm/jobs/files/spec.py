"""A job as it was submitted, checked and with every default filled in.

This is what the ledger keeps, as JSON; it comes back from there unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from farm.core.pools import DEFAULT_QUEUE, queue_of
from farm.protocol.durations import DurationMs
from farm.protocol.extraction import Strict
from farm.protocol.identities import IdentityUse, Proxy
from farm.protocol.plan import POPUPS, BrowserOptions
from farm.protocol.plan import Timeouts as PlanTimeouts
from farm.protocol.recordings import RecordingKind
from farm.protocol.steps import Effect, Step

_Clock = Annotated[DurationMs, Field(ge=1)]


class Timeouts(Strict):
    """The clocks of an attempt. A duration in the place of all three is the job's."""

    job: _Clock = 600_000
    """A whole attempt."""
    navigation: _Clock = 30_000
    """`goto`, `back` and `reload`, unless the step says its own."""
    step: _Clock = 15_000
    """Every other step, unless it says its own."""


class Retry(Strict):
    """How often an attempt that failed for a passing reason is made again."""

    max_attempts: int = Field(default=2, ge=1, le=10)
    """All attempts together; 1 is no retry."""


class Requires(Strict):
    """What an agent must be like to get the job."""

    metadata: dict[str, Any] = Field(default={})
    """Each of these keys is in the agent's metadata with exactly this value."""
    client_type: Literal["browser", "console", "mobile", "web"] | None = None


class Browser(BrowserOptions):
    """The window the job runs in. A word in its place is `use`."""

    use: Literal["required", "none", "auto"] = "required"
    """`required`: a tab. `none`: a flow. `auto`: a flow, and a tab where that won't do."""
    context: Literal["fresh", "reset", "reuse"] = "fresh"
    """`fresh`: a new window. `reset`: one that a job of this namespace with equal options may have
    had, cleaned in place. `reuse`: one kept as it is between jobs that ask for equal options."""
    popups: Literal["adopt", "close"] | Annotated[int, Field(ge=0, le=50)] | None = None
    """What becomes of pages that the job's pages open. `adopt`, as without it: up to five stay
    until it ends. `close`: none does. A number is how many."""

    @property
    def most_popups(self) -> int:
        """How many may be open at a time."""
        if isinstance(self.popups, int):
            return self.popups
        return 0 if self.popups == "close" else POPUPS


class Record(Strict):
    """What is recorded of each attempt. A list, or one word, in its place is `kinds`."""

    kinds: tuple[RecordingKind, ...] = Field(min_length=1)
    keep: Literal["always", "on_failure"] = "always"
    overlay: bool = True
    """Whether pages of a headed browser show the overlay meanwhile."""

    @field_validator("kinds")
    @classmethod
    def _once(cls, kinds: tuple[RecordingKind, ...]) -> tuple[RecordingKind, ...]:
        return tuple(dict.fromkeys(kinds))


class JobSpec(Strict):
    """The envelope and the steps."""

    version: Literal[1] = 1
    name: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")
    description: str | None = Field(default=None, max_length=10_000)
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=200)
    """The same key and body again are the same job."""
    params: dict[str, Any] = Field(default={})
    """As they were filled in."""
    timeout: Timeouts = Timeouts()
    retry: Retry = Retry()
    on_uncertain: Literal["hold", "fail", "retry"] = "hold"
    """What becomes of the job when an effect may or may not have happened."""
    effects: Literal[Effect.ONCE, Effect.IDEMPOTENT] = Effect.ONCE
    """What an acting step counts as that says nothing itself."""
    queue: Annotated[str, AfterValidator(queue_of)] = Field(default=DEFAULT_QUEUE, max_length=200)
    """The task queue: only agents that serve it get the job; an empty name is the default one."""
    node: str | None = Field(default=None, min_length=1, max_length=200)
    """Only agents of this node get it; None is any."""
    requires: Requires = Requires()
    browser: Browser = Browser()
    identity: IdentityUse | None = None
    """The saved identity it works as."""
    proxy: Proxy | None = None
    """What its pages go through, in the place of the identity's. Its credentials are kept apart."""
    record: Record | None = None
    """None is nothing."""
    steps: tuple[Step, ...] = Field(min_length=1, max_length=1_000)

    @property
    def timeouts(self) -> PlanTimeouts:
        """The clocks as an agent is told them."""
        clocks = self.timeout
        return PlanTimeouts(job=clocks.job, navigation=clocks.navigation, step=clocks.step)

    @field_validator("identity", "proxy")
    @classmethod
    def _of_a_window_of_its_own(
        cls, value: IdentityUse | Proxy | None, given: ValidationInfo
    ) -> IdentityUse | Proxy | None:
        browser = given.data.get("browser")
        if value is not None and isinstance(browser, Browser) and browser.context != "fresh":
            raise ValueError(
                f"goes with a window of its own, so not with browser.context: {browser.context}"
            )
        return value

    @field_validator("proxy")
    @classmethod
    def _not_by_params(cls, proxy: Proxy | None, given: ValidationInfo) -> Proxy | None:
        told = proxy.credentials if proxy is not None else None
        params = given.data.get("params", {})
        if told is not None and {told.username, told.password} & set(_texts(params)):
            # Params are kept as they are, and every step may write them into a page.
            raise ValueError("takes its username and password from no param; write them here")
        return proxy

    @field_validator("version", mode="before")
    @classmethod
    def _not_true(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("the only version is 1")  # noqa: TRY004 - pydantic wants ValueError
        return value


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inside in value.values():
                yield from _texts(inside)
        case list() | tuple():
            for inside in value:
                yield from _texts(inside)
        case _:
            pass
