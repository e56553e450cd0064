"""A page as a flow has it: the tree that a browser would have before any script has run."""

import re
from dataclasses import dataclass
from email.message import Message
from html import escape

import turbohtml
from turbohtml import Document, Element

from agent.console import markup, urls
from agent.steps.failed import StepFailed, clean
from farm.protocol.failures import Reason

_HTML = frozenset({"text/html"})
_PLAIN = re.compile(r"text/|application/(?:[\w.-]+\+)?json$|application/javascript$")
_MARKUP = re.compile(rb"\s*<(?:!doctype html|html|head|body|script|iframe|h1|div|font|table|a|style"
                     rb"|title|b|br|p|!--)[\s>]", re.IGNORECASE)  # fmt: skip
_DECLARED = 'meta[charset], meta[http-equiv="content-type" i][content*="charset" i]'
_SPACES = " \t\n\f\r"
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What was read last."""

    url: str
    document: Document
    status: int | None = None

    @property
    def title(self) -> str:
        """The document's title, its white space collapsed as browsers do."""
        found = self.document.select_one("title")
        text = "" if found is None else found.text
        return " ".join(part for part in re.split(f"[{_SPACES}]+", text) if part)

    @property
    def base(self) -> str:
        """What relative addresses are relative to."""
        element = self.document.select_one("base[href]")
        said = None if element is None else attribute(element, "href")
        return self.url if said is None else urls.join(self.url, said) or self.url

    @property
    def source(self) -> str:
        """The whole tree as markup."""
        return markup.whole(self.document)


def blank() -> Page:
    """Return the page there is before the first."""
    return Page(url=urls.BLANK, document=turbohtml.parse("", scripting=True))


def read(url: str, content: bytes, content_type: str, status: int | None) -> Page:
    """Return the page that a body is.

    HTML by its encoding (a byte order mark, then what the server says, then the document itself);
    text and JSON as browsers show them, in a `<pre>`.

    Raises:
        StepFailed: `needs_browser` for XML, which browsers show as the tree it is;
            `navigation_failed` for what is to be downloaded.
    """
    kind, charset = _kind(content_type, content)
    if kind in _HTML:
        return Page(url=url, document=_parse(content, charset), status=status)
    if kind.endswith(("/xml", "+xml")):
        raise StepFailed(Reason.NEEDS_BROWSER, clean(f"{url} is {kind}: a flow reads HTML"))
    if _PLAIN.match(kind):
        return Page(url=url, document=_shown(content, charset, kind), status=status)
    raise StepFailed(
        Reason.NAVIGATION_FAILED, clean(f"{url} is a file to download, not a page to open: {kind}")
    )


def text_of(content: bytes, content_type: str) -> str:
    """Return a body as text."""
    return content.decode(_kind(content_type, content)[1] or "utf-8", "replace")


def attribute(element: Element, name: str) -> str | None:
    """Return an attribute as it is written; None where there is none."""
    value = element.attrs.get(name)
    if value is None:
        # An attribute without a value has the empty one.
        return "" if name in element.attrs else None
    return " ".join(value) if isinstance(value, list) else str(value)


def _kind(content_type: str, content: bytes) -> tuple[str, str | None]:
    """Return the media type, told from the content where the server says none, and the charset."""
    said = Message()
    said["Content-Type"] = content_type
    charset = said.get_param("charset")
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("", "unknown/unknown", "application/unknown", "*/*"):
        kind = _sniffed(content)
    return kind, _known(str(charset)) if charset else None


def _sniffed(content: bytes) -> str:
    if _MARKUP.match(content[:1445]):
        return "text/html"
    binary = any(byte < 9 or 14 <= byte < 27 for byte in content[:1445])
    return "application/octet-stream" if binary else "text/plain"


def _known(charset: str) -> str | None:
    try:
        turbohtml.parse(b"", encoding=charset.strip("\"' "))
    except LookupError:
        return None
    return charset.strip("\"' ")


def _parse(content: bytes, charset: str | None) -> Document:
    document = turbohtml.parse(content, encoding=charset, scripting=True, positions=False)
    if charset is not None or content.startswith(_BOMS) or document.select_one(_DECLARED):
        return document
    # Nothing says which encoding it is; browsers do not take it for UTF-8 then.
    return turbohtml.parse(content, encoding="windows-1252", scripting=True, positions=False)


def _shown(content: bytes, charset: str | None, kind: str) -> Document:
    """Return the document in which a browser shows a text."""
    is_json = kind.endswith("json")
    encoding = charset or ("utf-8" if is_json else "windows-1252")
    # Decoded by the same rules as HTML, but not parsed.
    raw = turbohtml.parse(b"<plaintext>" + content, encoding=encoding).select_one("plaintext")
    said = escape("" if raw is None else raw.text, quote=False)
    style = "" if is_json else ' style="word-wrap: break-word; white-space: pre-wrap;"'
    head = '<meta name="color-scheme" content="light dark">'
    if is_json:
        head += '<meta charset="utf-8">'
    # The parser drops the first line break of a <pre>, so it gets one to drop.
    body = f"<pre{style}>\n{said}</pre>"
    if is_json:
        body += '<div class="json-formatter-container"></div>'
    markup = f"<html><head>{head}</head><body>{body}</body></html>"
    return turbohtml.parse(markup, scripting=True, positions=False)
