"""A headed browser of a whole module, pages that are hard to cover, and what is seen of them."""

import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from PIL import Image
from playwright.async_api import CDPSession, Page

from agent.chromium.overlays import TabOverlay
from agent.ports import Outcome
from farm.protocol.plan import BrowserOptions
from farm.protocol.recordings import RecordingKind
from overlay import COLOURS, WORLD, State
from tests.agent.chromium.conftest import Handler, Site
from tests.agent.chromium.journal import Journal, goto, plan
from tests.agent.chromium.rig import Rig


class Files(Journal):
    """Evidence that keeps the files, too."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[str, bytes] = {}

    async def upload(
        self,
        name: str,
        content: bytes | Path,
        media_type: str,
        *,
        recording: RecordingKind | None = None,
    ) -> str:
        assert isinstance(content, bytes)
        self.contents[name] = content
        return name


class Screen:
    """One worker tab of a headed browser, and a site it may go to."""

    def __init__(self, rig: Rig, site: Site, context_id: str) -> None:
        self.rig = rig
        self.site = site
        self.context_id = context_id

    @classmethod
    async def open(cls, rig: Rig, site: Site, context_id: str, **options: Any) -> "Screen":
        """A window; its tab has been to the site once, so that it may go there again."""
        await rig.browser.open_window(f"w-{context_id}", context_id, BrowserOptions(**options))
        screen = cls(rig, site, context_id)
        assert (await screen.run(goto(site.url))).outcome == "succeeded"
        return screen

    @property
    def page(self) -> Page:
        return self.rig.page(f"w-{self.context_id}", self.context_id)

    @property
    def overlay(self) -> TabOverlay:
        """What draws it."""
        shown = self.rig.browser._windows[f"w-{self.context_id}"].tabs[self.context_id].overlay
        assert shown is not None
        return shown

    async def run(self, *steps: dict[str, Any], journal: Journal | None = None) -> Outcome:
        made = plan(*steps, egress={"allow": [self.site.allow]})
        return await self.rig.browser.run(self.context_id, made, journal or Journal())

    async def until(self, true: Callable[[], Awaitable[object]]) -> None:
        """Ask until it is so."""
        for _ in range(200):
            if await true():
                return
            await self.page.wait_for_timeout(25)
        raise AssertionError(f"it never was so: {true}")

    async def framed(self, state: State = State.IDLE) -> bool:
        """Whether all four sides of the page show the frame."""
        return await sides(self.page, state) == 4

    async def looking(self) -> "Looking":
        """A look through the closed shadow root."""
        return Looking(await self.page.context.new_cdp_session(self.page))


async def sides(page: Page, state: State = State.IDLE) -> int:
    """How many sides of the page show the frame in the state's colour."""
    picture = Image.open(io.BytesIO(await page.screenshot(timeout=8000))).convert("RGB")
    width, height = picture.size
    middles = [
        (1, height // 2),
        (width - 2, height // 2),
        (width // 2, 1),
        (width // 2, height - 2),
    ]
    wanted = bytes.fromhex(COLOURS[state][1:])
    found = [picture.getpixel(middle) for middle in middles]
    return sum(
        all(abs(a - b) < 12 for a, b in zip(pixel, wanted, strict=True))
        for pixel in found
        if isinstance(pixel, tuple)
    )


class Looking:
    """What the debugger sees of the overlay's inside."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session

    async def texts(self) -> list[str]:
        """Every text in it, in order; none while it is not in the page."""
        host = await self._host()
        nodes = [] if host is None else walk(host)
        return [node["nodeValue"] for node in nodes if node["nodeType"] == 3]

    async def attributes(self, attribute: str, value: str) -> dict[str, str]:
        """The attributes of the element that has one of such a value."""
        return attributes(await self._node(attribute, value))

    async def box(self, attribute: str, value: str) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of an element."""
        node = await self._node(attribute, value)
        model = await self._session.send(
            "DOM.getBoxModel", {"backendNodeId": node["backendNodeId"]}
        )
        quad = model["model"]["border"]
        return quad[0], quad[1], quad[4], quad[5]

    async def centre(self, attribute: str, value: str) -> tuple[float, float]:
        left, top, right, bottom = await self.box(attribute, value)
        return (left + right) / 2, (top + bottom) / 2

    async def possess(self) -> None:
        """Have later documents say what the test says, as if their process were taken over."""
        await self._session.send("Page.enable")
        source = (
            "globalThis.__tabfarm.listen = () => new Promise((say) => { globalThis.say = say })"
        )
        script = {"source": source, "worldName": WORLD}
        await self._session.send("Page.addScriptToEvaluateOnNewDocument", script)

    async def say(self, message: str) -> bool:
        """Say something in place of the overlay; tell whether anybody listened."""
        frame = (await self._session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
        place = {"frameId": frame, "worldName": WORLD}
        world = (await self._session.send("Page.createIsolatedWorld", place))["executionContextId"]
        act = f"const {{say}} = globalThis; delete globalThis.say; say?.({json.dumps(message)})"
        order = {"expression": f"(() => {{ {act}; return !!say }})()"}
        answer = await self._session.send("Runtime.evaluate", order | {"contextId": world})
        return bool(answer["result"]["value"])

    async def style(self, attribute: str, value: str, name: str) -> str:
        """A computed style of the first child of an element."""
        node = await self._node(attribute, value)
        await self._session.send("DOM.enable")
        await self._session.send("CSS.enable")
        pushed = await self._session.send(
            "DOM.pushNodesByBackendIdsToFrontend",
            {"backendNodeIds": [node["children"][0]["backendNodeId"]]},
        )
        styles = await self._session.send(
            "CSS.getComputedStyleForNode", {"nodeId": pushed["nodeIds"][0]}
        )
        return str(next(s["value"] for s in styles["computedStyle"] if s["name"] == name))

    async def _node(self, attribute: str, value: str) -> dict[str, Any]:
        host = await self._host()
        assert host is not None
        return next(n for n in walk(host) if attributes(n).get(attribute) == value)

    async def _host(self) -> dict[str, Any] | None:
        tree = await self._session.send("DOM.getDocument", {"depth": -1, "pierce": True})
        hosts = [n for n in walk(tree["root"]) if n["nodeName"].lower().startswith("tabfarm-")]
        assert len(hosts) <= 1
        return hosts[0] if hosts else None


def walk(node: dict[str, Any]) -> Any:
    """A node and everything in it, shadow roots and frames included."""
    yield node
    inside = [*node.get("shadowRoots", ()), *node.get("children", ())]
    if "contentDocument" in node:
        inside.append(node["contentDocument"])
    for child in inside:
        yield from walk(child)


def attributes(node: dict[str, Any]) -> dict[str, str]:
    """What an element has."""
    flat = node.get("attributes", ())
    return dict(zip(flat[::2], flat[1::2], strict=True))


def served(body: str | bytes, kind: str = "text/html", **headers: str) -> Handler:
    """A page of a media type, with headers."""
    content = body.encode() if isinstance(body, str) else body
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=content, content_type=kind, headers=named)

    return answer


def _png() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (50, 50), "green").save(content, "PNG")
    return content.getvalue()


_XHTML = "http://www.w3.org/1999/xhtml"
_CSP = (
    "default-src 'none'; script-src 'none'; style-src 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj"
    b" 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj"
    b" 3 0 obj<</Type/Page/MediaBox[0 0 300 300]/Parent 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n"
)
_SOON = "onload = () => setTimeout(() => { %s; document.title = 'ready' }, 100)"
_DIALOG = (
    "<dialog id=d style='width:100vw;height:100vh;max-width:none;max-height:none;border:0;"
    "padding:0;background:#fff'>modal</dialog>"
)
_POPOVER = "<div id=p popover style='width:100vw;height:100vh;border:0'>p</div>"
_FRAMES = (
    "<iframe src=/plain width=300 height=200></iframe>"
    "<iframe srcdoc='<p>inside' width=300 height=200></iframe>"
    "<iframe src=about:blank width=300 height=200></iframe>"
)


def _scripted(script: str) -> Handler:
    return served(f"<!doctype html><body><h1>x</h1><script>{_SOON % script}</script>")


def _meddling(act: str, body: str = "<h1>x</h1>") -> Handler:
    """A page that does something as soon as the overlay, `it`, is there."""
    once = f"if (it) {{ clearInterval(timer); {act}; document.title = 'ready' }}"
    look = f"const it = document.documentElement.children[2]; {once}"
    script = f"const timer = setInterval(() => {{ {look} }}, 5)"
    return served(f"<!doctype html><body>{body}<script>{script}</script>")


KINDS: dict[str, Handler] = {
    "plain": served("<!doctype html><title>plain</title><h1>Plain</h1>"),
    "dark": served("<!doctype html><meta name=color-scheme content=dark><body bgcolor=black>"),
    "strict-csp": served("<h1>csp</h1>", Content_Security_Policy=_CSP),
    "csp-sandbox": served("<h1>sandbox</h1>", Content_Security_Policy=f"{_CSP}; sandbox"),
    "frames": served(f"<!doctype html>{_FRAMES}"),
    "json": served(json.dumps({"a": 1}), "application/json"),
    "xml": served("<?xml version='1.0'?><a><b>1</b></a>", "text/xml"),
    "xhtml": served(
        f"<html xmlns='{_XHTML}'><body><p>x</p></body></html>", "application/xhtml+xml"
    ),
    "svg": served(
        "<svg xmlns='http://www.w3.org/2000/svg' width='300' height='300'>"
        "<rect width='100' height='100' fill='blue'/></svg>",
        "image/svg+xml",
    ),
    "text": served("plain text", "text/plain"),
    "image": served(_png(), "image/png"),
    "pdf": served(_PDF, "application/pdf"),
    "hostile-css": served(
        "<!doctype html><style>html > *, body * { display: none !important; opacity: 0 !important;"
        " visibility: hidden !important; transform: scale(0) !important; clip-path: circle(0)"
        " !important; transition: all 9999s !important; content-visibility: hidden !important }"
        " [popover] { filter: opacity(0) !important; position: static !important }"
        " html { opacity: 0; filter: blur(9px) }</style><h1>x</h1>"
    ),
    "backdrop": served("<!doctype html><style>*::backdrop { background: red !important }</style>x"),
}
SCRIPTED: dict[str, Handler] = {
    "document-write": _scripted(
        "document.open(); document.write('<title>ready</title><h1>written</h1>'); document.close()"
    ),
    "new-html": _scripted(
        "const h = document.createElement('html'); h.innerHTML ="
        " '<head><title>n</title></head><body>new'; document.documentElement.replaceWith(h)"
    ),
    "new-body": _scripted(
        "document.body.replaceWith(document.createElement('body'));"
        " setInterval(() => { document.body.innerHTML = '<h1>' + Math.random() }, 50)"
    ),
    "everything-removed": _scripted(
        "document.replaceChildren();"
        + (
            "const h = document.createElement('html'); document.append(h); h.innerHTML ="
            " '<head></head><body>again'"
        )
    ),
    "dialog": _meddling("document.querySelector('dialog').showModal()", _DIALOG),
    "popover": _meddling("document.querySelector('#p').showPopover()", _POPOVER),
    "hides-it": _meddling("it.hidePopover()"),
    "makes-it-no-popover": _meddling("it.removeAttribute('popover')"),
    "moves-it": _meddling("document.body.append(it)"),
}
REMOVER = """<!doctype html><script>
var removed = 0, began = performance.now(), took = 0;
const remove = () => {
  for (const node of [...document.documentElement.children])
    if (node.localName.startsWith('tabfarm-')) {
      node.remove(); removed += 1; took = performance.now() - began;
    }
};
new MutationObserver(remove).observe(document, {childList: true, subtree: true});
setInterval(remove, 5);
</script><h1>Hostile</h1>"""
