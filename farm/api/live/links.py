"""Links that let a browser look at a tab for a while, without any token of the farm in it.

A link is signed and written down nowhere: it opens one context, or the wall of one namespace, in
one mode, and nothing once its time is over. Deleting the key in the data directory, and starting
anew, ends them all.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from farm.clock import Clock
from farm.core.model import Instant, Namespace
from farm.protocol.live import Mode

_MAX_LENGTH = 2_048
_PREFIX = "lv1"
COOKIES: Mapping[bool, str] = {False: "tabfarm_live", True: "tabfarm_wall"}
"""By whether the link is for the wall: both may be there at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What somebody may look at."""

    namespace: Namespace
    context: str | None
    """None is every tab of the namespace."""
    mode: Mode
    name: str
    """What others call the viewer."""
    expires_at: Instant | None = None
    """None does not end by itself."""

    def opens(self, context: str) -> bool:
        """Tell whether it is for this context, too."""
        return self.context is None or self.context == context


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    i: str
    n: str
    c: str | None
    m: Literal["view", "control"]
    w: str
    e: float


class LiveLinks:
    """Makes links and reads them."""

    def __init__(self, key: bytes, clock: Clock) -> None:
        self._key = key
        self._clock = clock

    def mint(
        self,
        *,
        namespace: Namespace,
        context: str | None,
        mode: Mode,
        name: str,
        expires_at: Instant,
    ) -> tuple[Grant, str]:
        """Make a link; return what it grants, and the secret part of its URL."""
        unique = secrets.token_hex(3)
        payload = _Payload(i=unique, n=namespace, c=context, m=mode, w=name, e=expires_at)
        said = _encoded(payload.model_dump_json().encode())
        return _grant(payload), f"{_PREFIX}.{said}.{_encoded(self._sign(said))}"

    def read(self, secret: str) -> Grant | None:
        """Return what a link grants now; None if it is none of ours, or its time is over."""
        prefix, _, rest = secret.partition(".")
        said, _, signature = rest.partition(".")
        if prefix != _PREFIX or len(secret) > _MAX_LENGTH:
            return None
        try:
            if not hmac.compare_digest(_decoded(signature), self._sign(said)):
                return None
            payload = _Payload.model_validate_json(_decoded(said))
        except (binascii.Error, UnicodeError, ValidationError):
            return None
        return _grant(payload) if self._clock() < payload.e else None

    def _sign(self, said: str) -> bytes:
        return hmac.digest(self._key, f"{_PREFIX}.{said}".encode(), hashlib.sha256)


def _grant(payload: _Payload) -> Grant:
    return Grant(
        namespace=Namespace(payload.n),
        context=payload.c,
        mode=payload.m,
        name=f"{payload.w}-{payload.i}",
        expires_at=Instant(payload.e),
    )


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    padding = "=" * (-len(text) % 4)
    return base64.b64decode(text.encode("ascii") + padding.encode(), altchars=b"-_", validate=True)
