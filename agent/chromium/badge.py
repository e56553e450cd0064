"""A few words in front of a window's title, for people who watch a headed browser.

They are written into `document.title` from an isolated world, and again after each navigation.
Scripts of the page can therefore see them there; the steps of a job that read the page do not,
because the badge is taken off while one of them runs.
"""

import contextlib
import json

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from agent.chromium.shielding import within

_WORLD = "tabfarm"
_PATIENCE_S = 2.0
_SCRIPT = """(text => {
  if (window !== window.top) return;
  const badge = globalThis.__badge ??= { prefix: '', timer: 0 };
  const strip = () => {
    if (badge.prefix && document.title.startsWith(badge.prefix))
      document.title = document.title.slice(badge.prefix.length);
  };
  const apply = () => {
    if (badge.prefix && !document.title.startsWith(badge.prefix))
      document.title = badge.prefix + document.title;
  };
  strip();
  badge.prefix = text ? text + ' \\u2016 ' : '';
  clearInterval(badge.timer);
  if (text) { apply(); badge.timer = setInterval(apply, 500); }
})(%s)"""


class Badge:
    """The badge of one tab. Failing to show it fails nothing."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._text = ""
        self._hidden = False
        self._script: str | None = None

    async def show(self, text: str) -> None:
        """Show a text from now on; an empty one shows nothing."""
        self._text = text
        if not self._hidden:
            await self._apply(text)

    async def hide(self, hidden: bool) -> None:
        """Take the badge off while the page is read, or put it back."""
        if self._hidden != hidden:
            self._hidden = hidden
            if self._text:
                await self._apply("" if hidden else self._text)

    async def _apply(self, text: str) -> None:
        with contextlib.suppress(PlaywrightError):
            await within(_PATIENCE_S, self._write(_SCRIPT % json.dumps(text)))

    async def _write(self, source: str) -> None:
        if self._script is None:
            await self._session.send("Page.enable")
        else:
            await self._session.send(
                "Page.removeScriptToEvaluateOnNewDocument", {"identifier": self._script}
            )
        added = await self._session.send(
            "Page.addScriptToEvaluateOnNewDocument", {"source": source, "worldName": _WORLD}
        )
        self._script = added["identifier"]
        tree = await self._session.send("Page.getFrameTree")
        world = await self._session.send(
            "Page.createIsolatedWorld",
            {"frameId": tree["frameTree"]["frame"]["id"], "worldName": _WORLD},
        )
        await self._session.send(
            "Runtime.evaluate",
            {"expression": source, "contextId": world["executionContextId"]},
        )
