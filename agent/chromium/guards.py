"""Listeners every page has from its first moment: none of what they catch may stop a job.

Without them a dialog blocks its page, and in a headed browser a file chooser or a print preview
opens a window that nobody will ever close.
"""

import contextlib
from typing import Protocol

from playwright.async_api import BrowserContext, Dialog, Download, FileChooser, Page
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


def guard_page(page: Page, guarded: Guarded) -> None:
    """Answer dialogs, file choosers and downloads of a page, each with a notice; count its errors.

    `alert`, `confirm` and `prompt` are dismissed; leaving a page (`beforeunload`) is accepted;
    no file is chosen; downloads are cancelled.
    """
    note = guarded.note
    errors, characters, since = 0, 0, 0.0

    def on_error(error: PlaywrightError) -> None:
        nonlocal errors, characters, since
        now = monotonic()
        if now - since > 1:
            errors, characters, since = 0, 0, now
        errors += 1
        characters += len(error.message) + len(error.stack or "")
        if errors > FLOOD_ERRORS or characters > FLOOD_CHARACTERS:
            guarded.flooded()

    async def on_dialog(dialog: Dialog) -> None:
        note("dialog", f"{dialog.type}: {dialog.message}")
        with contextlib.suppress(PlaywrightError):
            if dialog.type == "beforeunload":
                await dialog.accept()
            else:
                await dialog.dismiss()

    async def on_download(download: Download) -> None:
        note("download_cancelled", download.suggested_filename)
        with contextlib.suppress(PlaywrightError):
            await download.cancel()

    def on_file_chooser(_: FileChooser) -> None:
        # That somebody listens is what keeps the window from opening.
        note("file_chooser_cancelled", page.url)

    page.on("pageerror", on_error)
    page.on("dialog", on_dialog)
    page.on("download", on_download)
    page.on("filechooser", on_file_chooser)
