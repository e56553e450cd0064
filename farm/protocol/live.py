"""What is said of a tab that people watch: between agent and farm, and between farm and viewers.

Places on the page are fractions of the picture, from its upper left corner, so that whoever scales
it need not know how large the page is; the agent turns them into the page's own pixels.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

MAX_TEXT = 100_000
"""So many characters are pasted at once."""
MAX_DROP_BYTES = 8 * 1024 * 1024
"""The largest file that is dropped into a page."""

Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=-10_000, le=10_000, allow_inf_nan=False)]
Modifiers = Annotated[int, Field(ge=0, le=15)]
"""Of 1 for Alt, 2 for Control, 4 for Meta and 8 for Shift."""
Phase = Literal["automation", "pausing", "paused", "taking_over", "human"]
"""Who acts on a tab: a job (also while its step in progress is waited for), nobody, or a person."""
Mode = Literal["view", "control"]
"""What a viewer may do."""


class Said(BaseModel):
    """Unknown fields are ignored, so that an older peer survives a newer one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# What a person does


class Mouse(Said):
    """The pointer moves, or a button goes down or up."""

    kind: Literal["mouse"] = "mouse"
    act: Literal["move", "down", "up"]
    x: Fraction
    y: Fraction
    button: Literal["none", "left", "middle", "right", "back", "forward"] = "none"
    clicks: int = Field(default=1, ge=1, le=3)
    """The second of a double click is 2."""
    modifiers: Modifiers = 0


class Wheel(Said):
    """The wheel turns, by so many pixels of the page."""

    kind: Literal["wheel"] = "wheel"
    x: Fraction
    y: Fraction
    dx: Delta = 0
    dy: Delta = 0
    modifiers: Modifiers = 0


class Key(Said):
    """A key goes down or up; named as DOM's KeyboardEvent names it."""

    kind: Literal["key"] = "key"
    act: Literal["down", "up"]
    key: str = Field(min_length=1, max_length=32)
    code: str = Field(default="", max_length=32)
    key_code: int = Field(default=0, ge=0, le=255)
    location: int = Field(default=0, ge=0, le=3)
    repeat: bool = False
    modifiers: Modifiers = 0


class Text(Said):
    """Text goes in where the caret is: what an input method has put together, or a paste."""

    kind: Literal["text"] = "text"
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    pasted: bool = False


class TouchPoint(Said):
    """One finger."""

    id: int = Field(ge=0, le=31)
    x: Fraction
    y: Fraction


class Touch(Said):
    """Fingers come down, move or go; `points` are those that are down then."""

    kind: Literal["touch"] = "touch"
    act: Literal["start", "move", "end", "cancel"]
    points: tuple[TouchPoint, ...] = Field(default=(), max_length=10)
    modifiers: Modifiers = 0


class Drop(Said):
    """A file is dropped; its bytes lie beside this in the frame."""

    kind: Literal["drop"] = "drop"
    x: Fraction
    y: Fraction
    name: str = Field(min_length=1, max_length=255)


Act = Annotated[Mouse | Wheel | Key | Text | Touch | Drop, Field(discriminator="kind")]


class Input(Said):
    """A person does something to the page."""

    op: Literal["input"] = "input"
    act: Act
    by: str = Field(default="", max_length=200)
    """Who; filled in by the farm."""


# Farm to agent


class Want(Said):
    """How pictures are to be from now on; the first one begins the capture."""

    op: Literal["want"] = "want"
    width: int = Field(default=1280, ge=64, le=3840)
    height: int = Field(default=1280, ge=64, le=3840)
    """At most as large as this, in the proportions of the page."""
    fps: float = Field(default=10.0, gt=0, le=60)
    """At most so many a second; fewer where nothing changes or nobody keeps up."""
    overlay: bool = True
    """With what a headed tab shows people; else it is taken out of the page meanwhile."""


class Took(Said):
    """A picture has been shown to who is fastest; there is room for the next."""

    op: Literal["took"] = "took"
    seq: int = Field(ge=1)


class LetGo(Said):
    """Whoever may hold buttons or keys down is no longer in control: release them."""

    op: Literal["let_go"] = "let_go"


class Leave(Said):
    """Whoever is in control has not come back: nobody is, and the job stays paused."""

    op: Literal["leave"] = "leave"
    by: str = Field(max_length=200)
    """Who it was; where it is somebody else now, nothing happens."""


ToTab = Annotated[Want | Took | Input | LetGo | Leave, Field(discriminator="op")]
to_tab: TypeAdapter[ToTab] = TypeAdapter(ToTab)


# Agent to farm


class Frame(Said):
    """A picture of the page: a JPEG, whose bytes lie beside this in the frame."""

    op: Literal["frame"] = "frame"
    seq: int = Field(ge=1)
    """Counts the pictures of one channel."""
    page_width: float = Field(gt=0, le=100_000)
    page_height: float = Field(gt=0, le=100_000)
    """What is to be seen of the page, in its own pixels."""


class Control(Said):
    """Who acts on the tab has changed."""

    op: Literal["control"] = "control"
    phase: Phase
    by: str = Field(default="", max_length=200)
    """Who has control, or has paused."""
    asked: str = Field(default="", max_length=2000)
    """What a step of the job asks a person to do."""


class Refused(Said):
    """Something that was asked for was not done."""

    op: Literal["refused"] = "refused"
    what: str = Field(max_length=64)
    why: str = Field(max_length=500)


class Closed(Said):
    """There are no more pictures of this tab, and why; the last message of a channel."""

    op: Literal["closed"] = "closed"
    reason: Literal[
        "tab_closed",
        "tab_crashed",
        "task_over",
        "browser_lost",
        "agent_absent",
        "not_understood",
        "unavailable",
        "expired",
        "elsewhere",
        "farm_stops",
    ]
    detail: str = Field(default="", max_length=500)


FromTab = Annotated[Frame | Control | Refused | Closed, Field(discriminator="op")]
from_tab: TypeAdapter[FromTab] = TypeAdapter(FromTab)


# Viewer to farm


class Look(Said):
    """How large the viewer shows the picture, in its own pixels, and how often it wants a new one.

    The first one begins it; a viewer that has said nothing is sent no picture.
    """

    op: Literal["look"] = "look"
    width: int = Field(default=1280, ge=1, le=16_384)
    height: int = Field(default=1280, ge=1, le=16_384)
    fps: float = Field(default=10.0, ge=0, le=60)
    """0 is none for now: the viewer can't be seen itself."""
    overlay: bool = True
    """As for `want`; it is taken out while nobody who looks wants it."""


class Shown(Said):
    """The viewer has drawn a picture; there is room for the next."""

    op: Literal["shown"] = "shown"
    seq: int = Field(ge=1)


class Ask(Said):
    """The viewer wants control of the tab to change."""

    op: Literal["ask"] = "ask"
    action: Literal["take_over", "hand_back", "pause", "resume", "stop"]


FromViewer = Annotated[Look | Shown | Input | Ask, Field(discriminator="op")]
from_viewer: TypeAdapter[FromViewer] = TypeAdapter(FromViewer)


# Farm to viewer


class Scene(Said):
    """Who is there and who acts; sent first, and whenever any of it changes."""

    op: Literal["scene"] = "scene"
    context: str
    mode: Mode
    you: str
    """What others call this viewer."""
    phase: Phase | None = None
    """None as long as the agent has not said."""
    by: str = ""
    """Who has control, or has paused; a viewer's mouse and keyboard are obeyed if it is `you`."""
    asked: str = ""
    """What a step of the job asks a person to do."""
    job_id: str | None = None
    job: str | None = None
    label: str = ""
    """What people call the tab."""
    viewers: tuple[str, ...] = ()
    expires_in_s: float | None = None
    """When the link that was used opens nothing any more."""


ToViewer = Annotated[Frame | Scene | Refused | Closed, Field(discriminator="op")]
to_viewer: TypeAdapter[ToViewer] = TypeAdapter(ToViewer)


class Tab(Said):
    """One tab on the wall."""

    context: str
    label: str
    client_id: str
    job_id: str | None = None
    job: str | None = None


class Tabs(Said):
    """Every tab that can be watched now; sent first, and whenever they are others."""

    op: Literal["tabs"] = "tabs"
    tabs: tuple[Tab, ...]


ToWall = Annotated[Tabs | Closed, Field(discriminator="op")]
to_wall: TypeAdapter[ToWall] = TypeAdapter(ToWall)
