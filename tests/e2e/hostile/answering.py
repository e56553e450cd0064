"""Servers without manners: what is wrong is the answer, not what is on the page."""

from farm.protocol.failures import Reason
from tests.e2e.hostile.page import FINE, SLOW, Hostile

_FAILED = frozenset({Reason.NAVIGATION_FAILED})
_NEVER = frozenset({Reason.NAVIGATION_TIMEOUT, Reason.JOB_TIMEOUT})


def _site(name: str) -> tuple[dict[str, object], ...]:
    return ({"goto": f"SITE/{name}"}, {"extract": {"fields": {"t": "title"}}})


def _raw(name: str) -> tuple[dict[str, object], ...]:
    return ({"goto": f"RAW/{name}"}, {"extract": {"fields": {"t": "title"}}})


ANSWERING = (
    Hostile(name="never", steps=_site("never"), ends=_NEVER),
    Hostile(name="endless-body", steps=_site("endless-body"), ends=_NEVER),
    Hostile(name="endless-redirect", steps=_site("endless-redirect"), ends=_FAILED | _NEVER),
    Hostile(
        name="compressed-bomb",
        steps=_site("compressed-bomb"),
        ends=SLOW | {Reason.PAGE_CRASHED},
        heavy=True,
    ),
    Hostile(
        name="asks-for-password",
        steps=_site("asks-for-password"),
        ends=FINE | _FAILED | {Reason.HTTP_STATUS},
    ),
    Hostile(name="no-content", steps=_site("no-content"), ends=_FAILED),
    Hostile(name="endless-events", steps=_site("endless-events"), ends=_NEVER | FINE | _FAILED),
    Hostile(name="replaces-itself", steps=_site("replaces-itself"), ends=_NEVER | FINE | _FAILED),
    Hostile(
        name="a-file", steps=_site("endless-download"), ends=_FAILED, notice="download_cancelled"
    ),
    Hostile(name="drip", steps=_raw("drip"), ends=_NEVER),
    Hostile(name="huge-headers", steps=_raw("huge-headers"), ends=_FAILED),
    Hostile(name="endless-headers", steps=_raw("endless-headers"), ends=_FAILED | _NEVER),
    Hostile(name="endless-continue", steps=_raw("endless-continue"), ends=_FAILED | _NEVER),
    Hostile(name="garbage", steps=_raw("garbage"), ends=_FAILED),
    Hostile(name="breaks-off", steps=_raw("breaks-off"), ends=_FAILED | FINE | _NEVER),
    Hostile(name="wrong-length", steps=_raw("wrong-length"), ends=_FAILED | FINE | _NEVER),
    Hostile(name="split-answer", steps=_raw("split-answer"), ends=_FAILED | FINE),
    Hostile(name="false-certificate", steps=({"goto": "TLS/"},), ends=_FAILED),
)
