"""Files that pages hand out and that they are given, with a real page and real sizes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.chromium.discovery import Found
from farm.protocol.failures import Reason
from tests.agent.chromium.conftest import Site
from tests.agent.chromium.journal import goto
from tests.agent.chromium.rig import Rig, reason

pytestmark = pytest.mark.browser

LARGE = 60_000_000
FORM = """<form><input type=file id=f multiple><input type=file id=one><button id=b></button></form>
<p id=said></p><script>f.onchange = async () => {
  let whole = 0;
  for (const file of f.files) {
    const reader = file.stream().getReader();
    for (let part; !(part = await reader.read()).done;) whole += part.value.length;
  }
  said.textContent = [...f.files].map(file => file.name + ':' + file.size).join() + '=' + whole;
}</script>"""


@pytest.fixture
async def rig(headless_browser: Found) -> AsyncIterator[Rig]:
    async with Rig() as one:
        await one.window()
        yield one


def handing(size: int, *, name: str = "report.csv", whole: bool = True) -> Any:
    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(
            headers={
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Length": str(size if whole else size + 1),
            }
        )
        await stream.prepare(request)
        for _ in range(size // 1_000_000):
            await stream.write(b"x" * 1_000_000)
        await stream.write(b"x" * (size % 1_000_000))
        if not whole and request.transport is not None:
            await asyncio.sleep(0.1)  # what has been written is to arrive before the end does
            request.transport.abort()
        return stream

    return answer


@pytest.fixture
def shop(site: Site) -> Site:
    site.pages["/"] = (
        "<a id=a href=/report>x</a> <a id=b href=/report target=_blank>x</a>"
        "<a id=large href=/large>x</a><a id=broken href=/broken>x</a><a id=no href='#'>x</a>"
        "<a id=two onclick='for (const x of [large, a]) { x.download = \"\"; x.click() }'>x</a>"
        "<a id=opened onclick=\"window.open('/report')\">x</a>"
    )
    site.pages["/later"] = "<script>setTimeout(() => location = '/report', 300)</script>"
    site.pages["/report"] = handing(1_000)
    site.pages["/odd"] = handing(10, name="../../.ssh/authorized_keys")
    site.pages["/large"] = handing(LARGE)
    site.pages["/broken"] = handing(500_000, whole=False)
    site.pages["/form"] = FORM
    return site


@pytest.mark.parametrize(
    ("where", "step", "name"),
    [
        ("/", {"selector": "#a"}, "report.csv"),
        ("/", {"selector": "#b"}, "report.csv"),
        ("/", {"selector": "#opened"}, "report.csv"),
        ("/", {"selector": "#a", "name": "mine.csv"}, "mine.csv"),
        ("/", {"url": "/report"}, "report.csv"),
        ("/", {"url": "/odd"}, "_.._.ssh_authorized_keys"),
        ("/later", {}, "report.csv"),
    ],
    ids=["click", "popup", "opened", "named", "url", "odd-name", "by-itself"],
)
async def test_a_file_is_kept_however_it_comes(
    rig: Rig, shop: Site, where: str, step: dict[str, Any], name: str
) -> None:
    outcome = await rig.run(
        goto(shop.url + where), {"type": "download", **step}, egress={"allow": [shop.allow]}
    )
    assert outcome.outcome == "succeeded", outcome.failure
    assert rig.journal.sizes == {name: 10 if "odd" in step.get("url", "") else 1_000}
    assert left_in(rig) == []


async def test_a_large_file_is_kept_whole_and_its_copy_here_deleted(rig: Rig, shop: Site) -> None:
    outcome = await rig.run(
        goto(shop.url), {"type": "download", "selector": "#large"}, egress={"allow": [shop.allow]}
    )
    assert outcome.outcome == "succeeded", outcome.failure
    assert rig.journal.sizes == {"report.csv": LARGE}
    assert left_in(rig) == []


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"selector": "#large", "max_bytes": 2_000_000}, Reason.ARTIFACT_TOO_LARGE),
        ({"selector": "#broken"}, Reason.DOWNLOAD_FAILED),
        ({"selector": "#no", "timeout": 2_000}, Reason.DOWNLOAD_FAILED),
        ({"url": "/nowhere", "timeout": 4_000}, Reason.DOWNLOAD_FAILED),
        ({"url": "file:///etc/passwd"}, Reason.EGRESS_DENIED),
    ],
    ids=["too-large", "breaks-off", "no-file", "a-page", "local-file"],
)
async def test_a_file_that_is_not_kept_whole_is_not_kept_at_all(
    rig: Rig, shop: Site, step: dict[str, Any], why: Reason
) -> None:
    outcome = await rig.run(
        goto(shop.url), {"type": "download", **step}, egress={"allow": [shop.allow]}
    )
    assert reason(outcome) is why, outcome.failure
    assert "report.csv" not in rig.journal.files
    assert left_in(rig) == []


async def test_of_two_files_the_one_that_nobody_waits_for_is_cancelled(
    rig: Rig, shop: Site
) -> None:
    outcome = await rig.run_until(
        lambda: rig.journal.notices("download_cancelled"),
        goto(shop.url),
        {"type": "download", "selector": "#two"},
        egress={"allow": [shop.allow]},
    )
    assert outcome.outcome == "succeeded", outcome.failure
    assert len(rig.journal.sizes) == 1
    assert rig.journal.notices("download_cancelled") == ["report.csv"]


async def test_a_page_is_given_files_of_any_size_which_are_gone_afterwards(
    rig: Rig, shop: Site
) -> None:
    rig.journal.store = {"file_1/a.bin": LARGE, "job_2/b.txt": 3}
    outcome = await rig.run(
        goto(shop.url + "/form"),
        {"type": "upload", "selector": "#f", "files": ["file_1/a.bin", "job_2/b.txt"]},
        {"type": "assert", "text": f"a.bin:{LARGE},b.txt:3={LARGE + 3}"},
        egress={"allow": [shop.allow]},
    )
    assert outcome.outcome == "succeeded", outcome.failure
    assert left_in(rig) == []


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"selector": "#b", "files": ["file_1/a.bin"]}, Reason.VALUE_INVALID),
        ({"selector": "#one", "files": ["file_1/a.bin", "file_1/a.bin"]}, Reason.VALUE_INVALID),
        ({"selector": "#f", "files": ["file_2/none"]}, Reason.VALUE_INVALID),
        ({"selector": "#f", "files": ["file_1/a.bin"], "max_bytes": 9}, Reason.ARTIFACT_TOO_LARGE),
        ({"selector": "#no", "files": ["file_1/a.bin"]}, Reason.SELECTOR_NOT_FOUND),
    ],
    ids=["no-file-field", "too-many", "no-such-file", "too-large", "no-field"],
)
async def test_what_can_not_be_given_fails_by_name(
    rig: Rig, shop: Site, step: dict[str, Any], why: Reason
) -> None:
    rig.journal.store = {"file_1/a.bin": 10}
    outcome = await rig.run(
        goto(shop.url + "/form"),
        {"type": "upload", "timeout": 1_000, **step},
        egress={"allow": [shop.allow]},
    )
    assert reason(outcome) is why, outcome.failure
    assert left_in(rig) == []


def left_in(rig: Rig) -> list[Path]:
    """Return the files of attempts that are still on the disk."""
    assert rig.browser._life is not None
    folder = rig.browser._life.place
    downloads = [f for f in folder.glob("playwright-artifacts-*/*") if f.is_file()]
    return [*downloads, *folder.glob("files-*")]
