"""Listeners every page has from its first moment: none of what they catch may stop a job.

Without them a dialog blocks its page, and in a headed browser a file chooser or a print preview
opens a window that nobody will ever close.
"""

import contextlib
from collections.abc import Callable

from playwright.async_api import BrowserContext, Dialog, Download, FileChooser, Page
from playwright.async_api import Error as PlaywrightError

Note = Callable[[str, str], None]
"""Takes a notice's code and detail."""

_NO_PRINT = "window.print = () => {};"


async def guard_headed(context: BrowserContext) -> None:
    """Make printing do nothing in every page of a context; without a head it does nothing anyway.

    A script in every new document has its price, so it is there only where it is needed.
    """
    await context.add_init_script(_NO_PRINT)


def guard_page(page: Page, note: Note) -> None:
    """Answer dialogs, file choosers and downloads of a page, each with a notice.

    `alert`, `confirm` and `prompt` are dismissed; leaving a page (`beforeunload`) is accepted;
    no file is chosen; downloads are cancelled.
    """

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

    page.on("dialog", on_dialog)
    page.on("download", on_download)
    page.on("filechooser", on_file_chooser)
