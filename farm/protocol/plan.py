"""A job as an agent runs it: every key checked, every default filled in."""

from functools import cache
from hashlib import blake2b
from typing import Any, Literal
from zoneinfo import available_timezones

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from farm.protocol.extraction import Strict
from farm.protocol.recordings import Recording
from farm.protocol.steps import Effect, Step

POPUPS = 5
"""How many pages an attempt may have open beside its own, unless its job says."""


class Viewport(Strict):
    """The page's size in CSS pixels."""

    width: int = Field(ge=100, le=10_000)
    height: int = Field(ge=100, le=10_000)


class WindowBounds(Strict):
    """Where a window is to be on its screen, in pixels."""

    left: int = Field(default=0, ge=-10_000, le=10_000)
    top: int = Field(default=0, ge=-10_000, le=10_000)
    width: int = Field(ge=100, le=10_000)
    height: int = Field(ge=100, le=10_000)


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


class Geolocation(Strict):
    """Where the device says that it is."""

    latitude: float = Field(ge=-90, le=90, allow_inf_nan=False)
    longitude: float = Field(ge=-180, le=180, allow_inf_nan=False)
    accuracy: float = Field(default=0, ge=0, allow_inf_nan=False)
    """In metres."""


Permission = Literal[
    "accelerometer",
    "ambient-light-sensor",
    "background-sync",
    "camera",
    "clipboard-read",
    "clipboard-write",
    "geolocation",
    "gyroscope",
    "local-fonts",
    "local-network-access",
    "magnetometer",
    "microphone",
    "midi",
    "midi-sysex",
    "notifications",
    "payment-handler",
    "screen-wake-lock",
    "storage-access",
]
"""What a page may be let do without a person being asked, by Chromium's names."""


class BrowserOptions(Strict):
    """What a window's identity is created with.

    Extra headers are none of it: they would go to every host that a page loads something from, and
    make `fetch` ask for leave where it need not.
    """

    viewport: Viewport | None = None
    device_scale_factor: float | None = Field(default=None, ge=0.5, le=4, allow_inf_nan=False)
    """Device pixels to a CSS pixel; goes with a viewport."""
    bounds: WindowBounds | None = None
    """Where the window is; a viewport keeps its own size whatever that of the window."""
    locale: str | None = Field(default=None, pattern=r"^[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*$")
    timezone: str | None = None
    """A name of the IANA database."""
    user_agent: str | None = Field(default=None, min_length=1, max_length=512)
    geolocation: Geolocation | None = None
    """Told to pages that have the permission of this name."""
    permissions: tuple[Permission, ...] | None = None
    """Granted to every page of the window. All others, and all without this, are denied."""
    color_scheme: Literal["light", "dark", "no-preference"] | None = None
    """What style sheets are told that people prefer."""

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, zone: str | None) -> str | None:
        # Chromium would refuse it too, but only when the window is opened.
        if zone is not None and zone not in _zones():
            raise ValueError("should be a time zone such as Europe/Oslo or UTC")
        return zone

    @field_validator("device_scale_factor")
    @classmethod
    def _of_a_viewport(cls, factor: float | None, given: ValidationInfo) -> float | None:
        if factor is not None and given.data.get("viewport") is None:
            raise ValueError("goes with a viewport")
        return factor

    @field_validator("permissions")
    @classmethod
    def _in_order(cls, named: tuple[Permission, ...] | None) -> tuple[Permission, ...] | None:
        # The same window, however it was written.
        return None if not named else tuple(sorted(set(named)))


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


class Borrows(BaseModel):
    """What an attempt has of the farm that its plan does not say, for it is secret.

    The agent asks for it by HTTP under the attempt's token: `farm.protocol.identities.Lent`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    identity: str | None = None
    """The saved identity, for people; None where it is only a proxy."""
    save: Literal["on_success", "always", "never"] = "never"
    """When what the window holds at the end is given back."""


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
    options: BrowserOptions = BrowserOptions()
    """How a flow shows itself to servers. A tab's window has been opened with them."""
    borrows: Borrows | None = None
    record: Recording | None = None
    """What to record of it; None is nothing."""
    popups: int = Field(default=POPUPS, ge=0)
    """So many pages it may have open beside its own; what is opened beyond is closed."""
