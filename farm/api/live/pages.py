"""The pages people see, each one file that loads nothing, and the policy that holds them to it."""

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

_FOLDER = Path(__file__).parent / "page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An HTML page and its Content-Security-Policy."""

    html: str
    policy: str

    def response(self) -> web.Response:
        """Return it."""
        return web.Response(
            text=self.html,
            content_type="text/html",
            headers={"Content-Security-Policy": self.policy},
        )


def load(name: str) -> Page:
    """Put a page together from its parts; nothing else may run in it."""
    style = _read("live.css")
    script = _read("stream.js") + _read(f"{name}.js")
    html = _read(f"{name}.html").replace("/*css*/", style).replace("/*js*/", script)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    return Page(html=html, policy=policy)


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
