"""Listeners every page has from its first moment: none of what they catch may stop a job.

Without them a dialog blocks its page, and in a headed browser a file chooser or a print preview
opens a window that nobody will ever close.
"""

import contextlib
from typing import Protocol

from playwright.async_api import BrowserContext, Dialog, FileChooser, Page
from playwright.async_api import Error as PlaywrightError

from agent.clock import monotonic

FLOOD_ERRORS = 1_000
FLOOD_CHARACTERS = 2_000_000
"""More errors of its scripts within a second than that, or longer ones, are a flood: the driver
would drown in them, and with it every other page of the browser."""


class Guarded(Protocol):
    """Whose page it is."""

    def note(self, code: str, detail: str) -> None:
        """Keep a notice."""
        ...

    def flooded(self) -> None:
        """Take note that the page floods us, and is to be stopped."""
        ...


_NO_PRINT = "window.print = () => {};"


async def guard_headed(context: BrowserContext) -> None:
    """Make printing do nothing in every page of a context; without a head it does nothing anyway.

    A script in every new document has its price, so it is there only where it is needed.
    """
    await context.add_init_script(_NO_PRINT)


class _ErrorCount:
    """What the scripts of a page have raised in the present second."""

    def __init__(self, guarded: Guarded) -> None:
        self._guarded = guarded
        self._errors, self._characters, self._since = 0, 0, 0.0

    def add(self, error: PlaywrightError) -> None:
        """Count one more."""
        now = monotonic()
        if now - self._since > 1:
            self._errors, self._characters, self._since = 0, 0, now
        self._errors += 1
        self._characters += len(error.message) + len(error.stack or "")
        if self._errors > FLOOD_ERRORS or self._characters > FLOOD_CHARACTERS:
            self._guarded.flooded()


def guard_page(page: Page, guarded: Guarded) -> None:
    """Answer dialogs and file choosers of a page, each with a notice; count its errors.

    `alert`, `confirm` and `prompt` are dismissed; leaving a page (`beforeunload`) is accepted;
    no file is chosen.
    """
    note = guarded.note

    async def on_dialog(dialog: Dialog) -> None:
        note("dialog", f"{dialog.type}: {dialog.message}")
        with contextlib.suppress(PlaywrightError):
            if dialog.type == "beforeunload":
                await dialog.accept()
            else:
                await dialog.dismiss()

    def on_file_chooser(_: FileChooser) -> None:
        # That somebody listens is what keeps the window from opening.
        note("file_chooser_cancelled", page.url)

    page.on("pageerror", _ErrorCount(guarded).add)
    page.on("dialog", on_dialog)
    page.on("filechooser", on_file_chooser)
