"""The verbs of a job. One class a verb; `agent/steps/` holds what each does on a page.

`shorthand` names the key that a step written as `- verb: value` fills. `acts` tells whether the
verb may change the outside world: an acting step counts as `once` unless it or the job says
otherwise (see `effect_of`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from farm.protocol.durations import DurationMs
from farm.protocol.extraction import ExtractSpec, Strict


class Effect(StrEnum):
    """What a step may do to the outside world."""

    NONE = "none"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


WaitUntil = Literal["load", "domcontentloaded", "commit", "networkidle"]
ArtifactName = Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f]{1,120}$")]


class StepBase(Strict):
    """The keys every step may have."""

    shorthand: ClassVar[str | None] = None
    acts: ClassVar[bool] = False

    id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    name: str | None = Field(default=None, max_length=200)
    timeout: DurationMs | None = None
    """How long this step may take; else the job's step (or navigation) timeout."""
    optional: bool = False
    """A failure of this step is noted and skipped."""
    effect: Effect | None = None
    """What the step may change outside; None is the verb's own default."""


class Targeted(StepBase):
    """A step on one element. A selector that matches two is an error unless `first` or `nth`."""

    selector: str = Field(min_length=1)
    """CSS, `xpath/…`, `text/…`, `aria/…`, `role=…`, or Playwright's own forms."""
    first: bool = False
    nth: int | None = Field(default=None, ge=0)

    @field_validator("selector")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if value.strip() == "" or value.strip() in ("xpath/", "text/", "aria/", "css/", "role="):
            raise ValueError("a selector may not be empty")
        return value


class Goto(StepBase):
    """Open a URL."""

    shorthand = "url"
    type: Literal["goto"] = "goto"
    url: str = Field(min_length=1)
    wait_until: WaitUntil = "load"
    referer: str | None = None
    expect_status: tuple[int, ...] | None = None
    """Fail with `http_status` unless the answer has one of these."""

    @field_validator("expect_status", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, int) else value


class Back(StepBase):
    """Go one page back."""

    type: Literal["back"] = "back"
    wait_until: WaitUntil = "load"


class Reload(StepBase):
    """Load the page again."""

    type: Literal["reload"] = "reload"
    wait_until: WaitUntil = "load"


class Click(Targeted):
    """Click an element."""

    shorthand = "selector"
    acts = True
    type: Literal["click"] = "click"
    button: Literal["left", "right", "middle"] = "left"
    count: int = Field(default=1, ge=1, le=3)
    modifiers: tuple[Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"], ...] = ()
    force: bool = False


class Fill(Targeted):
    """Put a value into a field, replacing what is there; with `submit`, press Enter afterwards."""

    type: Literal["fill"] = "fill"
    value: str
    submit: bool = False


class Type(Targeted):
    """Type a text key by key; a line break presses Enter."""

    type: Literal["type"] = "type"
    text: str
    delay: DurationMs = 0


class Press(StepBase):
    """Press a key or a chord such as `Control+A`, on an element or where the focus is."""

    shorthand = "key"
    acts = True
    type: Literal["press"] = "press"
    key: str = Field(min_length=1)
    selector: str | None = Field(default=None, min_length=1)


class Select(Targeted):
    """Choose options of a `<select>` by value, label or index."""

    acts = True
    type: Literal["select"] = "select"
    value: str | tuple[str, ...] | None = None
    label: str | tuple[str, ...] | None = None
    index: int | tuple[int, ...] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Select:
        if sum(x is not None for x in (self.value, self.label, self.index)) != 1:
            raise ValueError("say exactly one of value, label and index")
        return self


class Check(Targeted):
    """Tick a checkbox or radio button."""

    shorthand = "selector"
    acts = True
    type: Literal["check"] = "check"


class Uncheck(Targeted):
    """Untick a checkbox."""

    shorthand = "selector"
    acts = True
    type: Literal["uncheck"] = "uncheck"


class Hover(Targeted):
    """Move the mouse over an element."""

    shorthand = "selector"
    type: Literal["hover"] = "hover"


class Drag(Targeted):
    """Drag an element onto another one, or by so many pixels."""

    acts = True
    type: Literal["drag"] = "drag"
    to: str | None = Field(default=None, min_length=1)
    """A selector of the one element to drop it on."""
    x: int = 0
    y: int = 0

    @model_validator(mode="after")
    def _exactly_one(self) -> Drag:
        if (self.to is None) == (self.x == 0 and self.y == 0):
            raise ValueError("say either to, or x and y")
        return self


class Scroll(StepBase):
    """Scroll by pixels, or to `top`, `bottom` or an element."""

    shorthand = "to"
    type: Literal["scroll"] = "scroll"
    to: str | None = Field(default=None, min_length=1)
    y: int | None = None
    x: int = 0

    @model_validator(mode="after")
    def _exactly_one(self) -> Scroll:
        if (self.to is None) == (self.y is None):
            raise ValueError("say exactly one of to and y")
        return self


class WaitFor(StepBase):
    """Wait until an element is in a state, or until so many match."""

    shorthand = "selector"
    type: Literal["wait_for"] = "wait_for"
    selector: str = Field(min_length=1)
    state: Literal["visible", "hidden", "attached", "detached"] = "visible"
    count: int | None = Field(default=None, ge=0)
    operator: Literal[">=", "==", "<="] = ">="


class WaitForUrl(StepBase):
    """Wait until the page's address matches a glob such as `**/account`."""

    shorthand = "url"
    type: Literal["wait_for_url"] = "wait_for_url"
    url: str = Field(min_length=1)


class Wait(StepBase):
    """Wait a while. Prefer `wait_for`."""

    shorthand = "ms"
    type: Literal["wait"] = "wait"
    ms: DurationMs


HUMAN_MS = 1_800_000
"""How long a person is waited for, where the step does not say."""


class Human(StepBase):
    """Ask for a person, let them work in the page, and go on when they hand the tab back."""

    shorthand = "message"
    type: Literal["human"] = "human"
    message: str = Field(min_length=1, max_length=500)
    """What the person is to do."""


class Extract(StepBase, ExtractSpec):
    """Take records from the page; see `ExtractSpec`. `name` is the data set."""

    type: Literal["extract"] = "extract"
    name: str = Field(default="items", pattern=r"^[A-Za-z0-9_.-]{1,64}$")


class Screenshot(StepBase):
    """Take a picture of the page or of an element, as an artifact."""

    shorthand = "name"
    type: Literal["screenshot"] = "screenshot"
    name: ArtifactName = "screenshot.png"
    full_page: bool = False
    selector: str | None = Field(default=None, min_length=1)
    format: Literal["png", "jpeg"] = "png"
    quality: int | None = Field(default=None, ge=1, le=100)


class Pdf(StepBase):
    """Print the page to a PDF, as an artifact."""

    shorthand = "name"
    type: Literal["pdf"] = "pdf"
    name: ArtifactName = "page.pdf"
    format: str = "A4"
    landscape: bool = False
    print_background: bool = True


class Html(StepBase):
    """Keep the page's markup, as an artifact."""

    shorthand = "name"
    type: Literal["html"] = "html"
    name: ArtifactName = "page.html"


class Eval(StepBase):
    """Run JavaScript in the page; with `var`, keep the value under that name."""

    shorthand = "script"
    acts = True
    type: Literal["eval"] = "eval"
    script: str = Field(min_length=1)
    args: Any = None
    var: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,63}$")


class Download(StepBase):
    """Keep a file that the page hands out, as an artifact.

    A click or a URL brings it; with neither, one that begins by itself is waited for.
    """

    shorthand = "selector"
    acts = True
    type: Literal["download"] = "download"
    selector: str | None = Field(default=None, min_length=1)
    """What to click."""
    first: bool = False
    nth: int | None = Field(default=None, ge=0)
    url: str | None = Field(default=None, min_length=1)
    """What to open instead."""
    name: ArtifactName | None = None
    """Else the one the page suggests, made safe."""
    max_bytes: int = Field(default=100 * 1024 * 1024, ge=1, le=1 << 40)
    """A larger file is broken off."""

    @model_validator(mode="after")
    def _one_cause(self) -> Download:
        if self.selector is not None and self.url is not None:
            raise ValueError("say selector or url, not both")
        return self


FileReference = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}/[^/\\\x00-\x1f]{1,120}$")]
"""`file_…/name` for a file handed to the farm, `job_…/name` for the artifact of a job."""


class Upload(Targeted):
    """Put files from the farm's store into a field of the page."""

    acts = True
    type: Literal["upload"] = "upload"
    files: tuple[FileReference, ...] = Field(min_length=1, max_length=100)
    max_bytes: int = Field(default=1 << 30, ge=1, le=1 << 40)
    """A larger file is not fetched."""

    @field_validator("files", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class Assert(StepBase):
    """Fail with `assertion_failed` unless everything said holds (waits up to the timeout)."""

    shorthand = "selector"
    type: Literal["assert"] = "assert"
    selector: str | None = Field(default=None, min_length=1)
    """Some element matches and is visible."""
    text: str | None = None
    """With a selector: its text contains this; else the page's text does."""
    url: str | None = None
    """A glob the address matches."""
    var: str | None = None
    equals: Any = None
    """With `var`: the value equals this."""
    message: str | None = None

    @model_validator(mode="after")
    def _something(self) -> Assert:
        if all(x is None for x in (self.selector, self.text, self.url, self.var)):
            raise ValueError("say at least one of selector, text, url and var")
        return self


Method = Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Requests by these change nothing where they go to."""


class Http(StepBase):
    """Ask a server, beside the page: flows only. Shares the flow's cookies; the page stays.

    The answer is `{status, url, headers, body}`, where the body of JSON is its value.
    """

    shorthand = "url"
    type: Literal["http"] = "http"
    url: str = Field(min_length=1)
    method: Method = "GET"
    headers: dict[str, str] = Field(default={})
    body: str | None = None
    json_body: Any = Field(default=None, alias="json")
    """A value to be sent as JSON, in the place of `body`."""
    expect_status: tuple[int, ...] | None = None
    """Fail with `http_status` unless the answer has one of these; else from 400 on."""
    var: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,63}$")

    @field_validator("expect_status", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, int) else value

    @field_validator("method", mode="before")
    @classmethod
    def _in_capitals(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_body(self) -> Http:
        if self.body is not None and self.json_body is not None:
            raise ValueError("body and json exclude each other")
        return self


class Activity(StepBase):
    """Run a coroutine that is installed beside the agent: flows only. With `var`, keep its value.

    What it does outside is not known, so it acts unless the step says `effect: none`.
    """

    shorthand = "name"
    acts = True
    type: Literal["activity"] = "activity"
    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    """The name of its entry point."""
    args: dict[str, Any] = Field(default={})
    var: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w{0,63}$")


class Set(StepBase):
    """Keep a value under a name, for `${vars.name}` in later steps."""

    type: Literal["set"] = "set"
    var: str = Field(pattern=r"^[A-Za-z_]\w{0,63}$")
    value: Any


Step = Annotated[
    Goto
    | Back
    | Reload
    | Click
    | Fill
    | Type
    | Press
    | Select
    | Check
    | Uncheck
    | Hover
    | Drag
    | Scroll
    | WaitFor
    | WaitForUrl
    | Wait
    | Human
    | Extract
    | Screenshot
    | Pdf
    | Html
    | Eval
    | Download
    | Upload
    | Http
    | Activity
    | Assert
    | Set,
    Field(discriminator="type"),
]

VERBS: dict[str, type[StepBase]] = {
    "goto": Goto,
    "back": Back,
    "reload": Reload,
    "click": Click,
    "fill": Fill,
    "type": Type,
    "press": Press,
    "select": Select,
    "check": Check,
    "uncheck": Uncheck,
    "hover": Hover,
    "drag": Drag,
    "scroll": Scroll,
    "wait_for": WaitFor,
    "wait_for_url": WaitForUrl,
    "wait": Wait,
    "human": Human,
    "extract": Extract,
    "screenshot": Screenshot,
    "pdf": Pdf,
    "html": Html,
    "eval": Eval,
    "download": Download,
    "upload": Upload,
    "http": Http,
    "activity": Activity,
    "assert": Assert,
    "set": Set,
}
"""Every verb under the name it is written by."""


def acts(step: StepBase) -> bool:
    """Tell whether the step's verb, as used here, may change the outside world."""
    match step:
        case Fill(submit=submit):
            return submit
        case Type(text=text):
            return "\n" in text
        case Download(selector=selector):
            return selector is not None
        case Http(method=method):
            return method not in SAFE_METHODS
        case _:
            return type(step).acts


def effect_of(step: StepBase, default: Effect) -> Effect:
    """Return the effect a step counts as: its own word, else `default` where its verb acts."""
    if step.effect is not None:
        return step.effect
    return default if acts(step) else Effect.NONE
