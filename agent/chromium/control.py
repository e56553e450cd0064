"""Who has control of one tab, and what follows: steps that wait, and whose input reaches the page.

The rules are a table in `agent.machine.control`. With the guard on, what a person does in the real
window reaches the page only while they have control. Chromium then drops automation's own clicks
and keys as well, without a word, so whatever sends any does it within `acting`.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from agent.chromium.between import once_attached
from agent.chromium.shielding import within
from agent.clock import monotonic
from agent.machine.control import HELD, Holder, Move, OutOfPlaceError, move
from farm.protocol.messages import AttemptEvent, ControlMoved, HumanAct

Act = Literal["pointer", "key", "wheel", "touch", "paste", "drop"]
Kind = Literal["pausing", "paused", "resumed", "taking_over", "taken_over", "handed_back"]

LONGEST_S = 3600.0
_ONE_ACT_S = 1.0
"""What a person does again within so long is one act."""
_ANSWER_S = 1.0
_ECHO_S = 1.0
"""So much later than through the page the same click may be seen on the screen."""

_SAID: dict[tuple[Move, Holder], Kind] = {
    (Move.PAUSE, Holder.PAUSING): "pausing",
    (Move.REACH, Holder.PAUSED): "paused",
    (Move.RESUME, Holder.AUTOMATION): "resumed",
    (Move.TAKE_OVER, Holder.TAKING_OVER): "taking_over",
    (Move.TAKE_OVER, Holder.HUMAN): "taken_over",
    (Move.REACH, Holder.HUMAN): "taken_over",
    (Move.ASK, Holder.HUMAN): "taken_over",
    (Move.HAND_BACK, Holder.AUTOMATION): "handed_back",
    (Move.GIVE_UP, Holder.AUTOMATION): "handed_back",
    (Move.LEAVE, Holder.PAUSING): "pausing",
    (Move.LEAVE, Holder.PAUSED): "paused",
}
"""How the attempt's history calls a move into a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarding:
    """How people and automation are kept apart in the tabs of a browser."""

    guard: bool = False
    """A person's input reaches a page only while they have control."""
    longest_s: float = LONGEST_S
    """So long a tab may be kept from automation at a time."""


class TabControl:
    """Implements `agent.ports.Control` for one tab, run after run."""

    def __init__(self, guarding: Guarding) -> None:
        self.guards = guarding.guard
        self.longest_s = guarding.longest_s
        self.holder = Holder.AUTOMATION
        self.by = ""
        """Who has control, or has paused; empty where nobody has, or a step has asked."""
        self.asked = ""
        """What a step of the job asks a person to do; empty while none does."""
        self._sessions: dict[CDPSession, bool | None] = {}
        """The pages of the tab, and whether input to them is ignored; None where that was ordered,
        and the answer has not come."""
        self._acting = 0
        self._open = False
        self._changed = asyncio.Event()
        self._tell: Callable[[AttemptEvent], None] | None = None
        self._watch: Callable[[], None] = _nothing
        self._last_acts: dict[Act, float] = {}
        self._human_until = -math.inf
        self._listeners: set[Callable[[], None]] = set()
        self.hands: set[Callable[[], Awaitable[None]]] = set()
        """Let go of what people elsewhere hold down; awaited before automation goes on."""

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a listener called whenever `holder` or `by` has changed; return what ends that."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def watch_over(self, session: CDPSession) -> None:
        """Guard one more page, for as long as the session lasts; the first one is the tab's own."""
        self._sessions[session] = False
        session.on("close", lambda _: self._forget(session))
        await self._apply()

    def _forget(self, session: CDPSession) -> None:
        self._sessions.pop(session, None)

    async def open_up(self) -> None:
        """Guard nothing any more: what is left here is for people to look at."""
        self._open = True
        await self._apply()

    # A run

    def begin(self, tell: Callable[[AttemptEvent], None], watch: Callable[[], None]) -> None:
        """A run begins, under automation.

        Args:
            tell: Takes what is to be in its history.
            watch: Is called when `holder` has changed.
        """
        self._set(Holder.AUTOMATION)
        self._tell, self._watch, self._last_acts = tell, watch, {}

    def end(self) -> None:
        """The run is over; nobody can take anything over any more."""
        self._tell, self._watch = None, _nothing
        self._set(Holder.AUTOMATION)

    @property
    def held(self) -> bool:
        """Whether automation does nothing now."""
        return self.holder in HELD

    @property
    def human_may_act(self) -> bool:
        """Whether what a person does may reach the page."""
        return self.holder is Holder.HUMAN

    @property
    def clicks_come_through_the_page(self) -> bool:
        """Whether a click that is seen on the screen now is one that the page tells of, too.

        The page may have been first, and the click have ended the control that it was made with.
        """
        return self.human_may_act or monotonic() - self._human_until < _ECHO_S

    def move(self, what: Move, by: str = "") -> None:
        """Take in what somebody wants; it takes effect between two steps.

        Raises:
            OutOfPlaceError: If it does not follow from the state, or no run is there.
        """
        if self._tell is None:
            raise OutOfPlaceError(self.holder, what)
        self._move(what, by)

    def acted(self, act: Act) -> None:
        """Keep in the run's history that the person in control has done something."""
        now = monotonic()
        if not self.human_may_act or self._tell is None:
            return
        if now - self._last_acts.get(act, -_ONE_ACT_S) >= _ONE_ACT_S:
            self._last_acts[act] = now
            self._tell(HumanAct(act=act, by=self.by))

    # What steps need: see `agent.ports.Control`

    async def gate(self) -> None:
        """Return when automation has control; to be called between two steps."""
        if self.holder not in HELD:
            self._move(Move.REACH, self.by)
        await self._while_held()

    async def ask(self, request: str) -> None:
        """Let a person in, and return when they hand the tab back."""
        self.asked = request
        self._move(Move.ASK, self.by if self.holder is Holder.TAKING_OVER else "")
        try:
            await self._while_held()
        finally:
            self.asked = ""
            if self.holder is Holder.HUMAN:
                self._move(Move.GIVE_UP, "")
            self._watch()  # where nobody is asked any more, a pause has an end of its own

    @asynccontextmanager
    async def acting(self) -> AsyncIterator[None]:
        """Let input reach the page meanwhile, automation's and, as it can't be told apart, all.

        Raises:
            PlaywrightError: If the page is gone.
        """
        self._acting += 1
        try:
            await self._apply(strict=True)
            yield
        finally:
            self._acting -= 1
            await self._apply()

    async def _while_held(self) -> None:
        while self.held:
            self._changed.clear()
            await self._apply()
            await self._changed.wait()
        for let_go in tuple(self.hands):
            await let_go()  # under the guard a release would not arrive
        await self._apply()

    def _move(self, what: Move, by: str) -> None:
        before, after = self.holder, move(self.holder, what)
        if before is after and not (after is Holder.HUMAN and by != self.by):
            return
        kind = _SAID[what, after]
        self._set(after, by)
        if self._tell is not None:
            asked = self.asked if after is Holder.HUMAN else ""
            self._tell(ControlMoved(kind=kind, by=by, detail=asked))

    def _set(self, holder: Holder, by: str = "") -> None:
        if self.human_may_act and holder is not Holder.HUMAN:
            self._human_until = monotonic()
        self.holder = holder
        self.by = "" if holder is Holder.AUTOMATION else by
        self._changed.set()
        self._watch()
        for listener in tuple(self._listeners):
            listener()

    # The guard

    async def _apply(self, *, strict: bool = False) -> None:
        if not self.guards:
            return
        for number, session in enumerate(tuple(self._sessions)):
            wanted = self._ignores(number)
            if self._sessions.get(session, wanted) is wanted:
                continue
            order = once_attached(partial(self._order, session, number))
            if strict:
                await order  # within the step's time: input that is dropped is worse than late
                continue
            with contextlib.suppress(PlaywrightError):
                await within(_ANSWER_S, order)

    def _ignores(self, number: int) -> bool:
        # Steps act on the tab's own page, which is the first.
        return not (self._open or self.human_may_act or (self._acting and number == 0))

    async def _order(self, session: CDPSession, number: int) -> None:
        self._sessions[session], ignored = None, self._ignores(number)
        await session.send("Input.setIgnoreInputEvents", {"ignore": ignored})
        if session in self._sessions:
            self._sessions[session] = ignored


def _nothing() -> None: ...
