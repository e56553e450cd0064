"""A job as an agent runs it: every key checked, every default filled in."""

from hashlib import blake2b
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from farm.protocol.extraction import Strict
from farm.protocol.steps import Effect, Step


class Viewport(Strict):
    """The page's size in CSS pixels."""

    width: int = Field(ge=100, le=10_000)
    height: int = Field(ge=100, le=10_000)


class BrowserOptions(Strict):
    """What a window's identity is created with."""

    viewport: Viewport | None = None
    locale: str | None = Field(default=None, pattern=r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*$")
    user_agent: str | None = Field(default=None, min_length=1, max_length=512)


PLAIN = BrowserOptions()
"""The options of who asks for none."""


def profile_of(options: BrowserOptions) -> str:
    """Name a set of options; the plain ones have the empty name."""
    if options == PLAIN:
        return ""
    return blake2b(options.model_dump_json().encode(), digest_size=8).hexdigest()


class Timeouts(Strict):
    """The clocks of one attempt, in milliseconds."""

    job: int = 600_000
    navigation: int = 30_000
    step: int = 15_000


class Egress(BaseModel):
    """Where a page may go beside the public internet."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    allow: tuple[str, ...] = ()
    """`host`, `host:port` or `network/prefix` of private and loopback destinations."""


class Plan(BaseModel):
    """Everything an agent needs to run one attempt of a job."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    job_id: str
    attempt_id: str
    attempt_number: int = 1
    name: str
    steps: tuple[Step, ...]
    params: dict[str, Any] = {}
    timeouts: Timeouts = Timeouts()
    effects: Literal[Effect.ONCE, Effect.IDEMPOTENT] = Effect.ONCE
    """What an unmarked acting step counts as."""
    reuse: bool = False
    """The tab stays as it is after success, for the next job of the same identity."""
    egress: Egress = Egress()
