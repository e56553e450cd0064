"""What would ask a person, headed, where the asking is a window of the desktop's: nobody waits.

Each has its row in docs/hostile-pages.md. The page asks upon a click, as a page must to be heard at
all; then it has to answer as before, and its tab has to close at once.
"""

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web

from agent.chromium.discovery import Found
from agent.clock import monotonic
from agent.xvfb import Xvfb, XvfbUnavailable
from tests.agent.chromium.conftest import Site, serving
from tests.agent.chromium.journal import Journal, goto, script
from tests.agent.chromium.rig import Rig

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

ENDS_WITHIN_S = 20
ASKING = {
    "alert": "alert(1); confirm(2); prompt(3)",
    "print": "print()",
    "print-in-a-frame": "const f = document.createElement('iframe'); document.body.append(f);"
    "f.contentWindow.print()",
    "print-in-a-window": "const w = window.open('about:blank'); w.print()",
    "file-chooser": "const i = document.createElement('input'); i.type = 'file'; i.click()",
    "folder-chooser": "const i = document.createElement('input'); i.type = 'file';"
    "i.webkitdirectory = true; i.click()",
    "open-picker": "showOpenFilePicker?.().catch(() => 0)",
    "save-picker": "showSaveFilePicker?.().catch(() => 0)",
    "folder-picker": "showDirectoryPicker?.().catch(() => 0)",
    "colour": "const i = document.createElement('input'); i.type = 'color'; i.click()",
    "fullscreen": "document.documentElement.requestFullscreen()",
    "pointer-lock": "document.body.requestPointerLock()",
    "notifications": "Notification.requestPermission()",
    "geolocation": "navigator.geolocation.getCurrentPosition(() => 0)",
    "camera": "navigator.mediaDevices.getUserMedia({audio: true, video: true}).catch(() => 0)",
    "screen": "navigator.mediaDevices.getDisplayMedia().catch(() => 0)",
    "clipboard": "navigator.clipboard.readText().catch(() => 0)",
    "midi": "navigator.requestMIDIAccess({sysex: true}).catch(() => 0)",
    "usb": "navigator.usb?.requestDevice({filters: []}).catch(() => 0)",
    "bluetooth": "navigator.bluetooth?.requestDevice({acceptAllDevices: true}).catch(() => 0)",
    "serial": "navigator.serial?.requestPort().catch(() => 0)",
    "hid": "navigator.hid?.requestDevice({filters: []}).catch(() => 0)",
    "mail": "location = 'mailto:somebody@example.org'",
    "other-program": "location = 'some-program://run'",
    "handler": "navigator.registerProtocolHandler('web+farm', '/?%s')",
    "passkey": "navigator.credentials.get({publicKey: {challenge: new Uint8Array(9)}})"
    ".catch(() => 0)",
    "payment": "new PaymentRequest([{supportedMethods: 'https://example.org/pay'}],"
    " {total: {label: 'x', amount: {currency: 'EUR', value: '1'}}}).show().catch(() => 0)",
    "beforeunload": "onbeforeunload = e => { e.preventDefault(); return 'stay' };"
    "location = '/other'",
    "password": "location = '/password'",
    "password-of-a-part": "const i = new Image(); i.src = '/password'; document.body.append(i)",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def headed(full_browser: Found) -> AsyncIterator[Rig]:
    screen = Xvfb()
    try:
        display = await screen.start(os.environ)
    except XvfbUnavailable as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))
    async with Rig(headless=False, env={**os.environ, "DISPLAY": display}) as rig:
        yield rig
    await screen.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asking() -> AsyncIterator[Site]:
    async def password(request: web.Request) -> web.Response:
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    async with serving() as site:
        site.pages["/password"] = password
        site.pages["/other"] = "<h1>Other</h1>"
        yield site


@pytest.mark.parametrize("what", ASKING)
async def test_what_asks_a_person_keeps_no_slot(headed: Rig, asking: Site, what: str) -> None:
    button = "<button id=go onclick='go()'>x</button>"
    asking.pages["/"] = f"{button}<script>function go() {{\n{ASKING[what]}\n}}</script>"
    headed.journal = Journal()
    page = await headed.window()
    local = asking.url.replace("127.0.0.1", "localhost")  # where the powerful features are
    began = monotonic()
    outcome = await headed.run(
        goto(local),
        {"type": "click", "selector": "#go", "effect": "none"},
        {"type": "wait", "ms": 200},
        script("document.title", effect="none", timeout=8_000),
        {"type": "screenshot", "timeout": 8_000},
        egress={"allow": [f"localhost:{asking.port}"]},
    )
    await headed.browser.close_window("w")
    assert outcome.outcome == "succeeded", outcome.failure
    assert monotonic() - began < ENDS_WITHIN_S
    assert page.is_closed()
    assert headed.browser.escalations.total() == 0


async def test_the_browser_that_was_asked_all_of_it_still_opens_windows(headed: Rig) -> None:
    assert headed.browser._windows == {}
    await headed.browser.probe()
