"""The heads of HTTP/1 messages as the forwarder reads and rewrites them. Pure."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from agent.egress.policy import split_authority

MARK = "X-Tabfarm-Egress"
"""Set on the forwarder's own answers, and on no other: it is taken out of what servers say."""

HEAD_LIMIT = 256 * 1024
HEAD_END = b"\r\n\r\n"

_LINE_END = re.compile(r"\r\n|\r|\n")
_STATUS = re.compile(rb"HTTP/1\.\d (\d{3})(?!\d)")
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "te", "trailer"})
_CONNECTION = frozenset({"connection", "proxy-connection"})
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})
_BODILESS = frozenset({204, 304})


class MalformedHead(Exception):  # noqa: N818 - an outcome of reading what a stranger sent
    """What was read is no head the forwarder handles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request's head. `tunnel` is CONNECT; then `forward` is empty."""

    tunnel: bool
    host: str
    port: int
    url: str
    """For people: without query and fragment, or `host:port` of a tunnel."""
    forward: bytes = b""
    """The head to send on, in origin form."""
    authority: bytes = b""
    """Host and port as they were written, for the absolute form."""
    body: int | None = 0
    """Length of the body in bytes; None is chunked."""
    method: str = "CONNECT"
    persistent: bool = False
    """Whether the client would ask more on the same connection."""

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again where nobody knows if it arrived: it has no effect."""
        return self.method in _REPEATABLE and self.body == 0

    def through(self, authorization: str | None) -> bytes:
        """Return the head to send to a proxy: in absolute form, with what the proxy is told."""
        method, _, rest = self.forward.partition(b" ")
        told = b"" if authorization is None else _authorization(authorization)
        line, end, fields = rest.partition(b"\r\n")
        return b"%s http://%s%s%s%s%s" % (method, self.authority, line, end, told, fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A response's head."""

    head: bytes
    """As the client is to get it."""
    status: int = 200
    interim: bool = False
    """Another head follows (1xx)."""
    body: int | None = 0
    """Length of the body in bytes; None is up to the end of the connection."""
    server_stays: bool = False
    """Whether the server takes another request on this connection."""
    client_stays: bool = False
    """Whether the client may ask more on its own."""


def read_request(head: bytes) -> Request:
    """Understand a request's head as a proxy gets it: CONNECT, or an absolute `http:` URL.

    Raises:
        MalformedHead: If it is anything else.
    """
    line, fields = _split(head)
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise MalformedHead("not an HTTP/1 request")
    method, target, version = parts
    try:
        if method == "CONNECT":
            host, port = split_authority(target, default_port=443)
            return Request(tunnel=True, host=host, port=port or 443, url=target[:300])
        return _absolute(method, target, fields, persistent=version != "HTTP/1.0")
    except ValueError as error:
        raise MalformedHead(str(error)) from error


def _absolute(
    method: str, target: str, fields: list[tuple[str, str]], *, persistent: bool
) -> Request:
    url = urlsplit(target)
    if url.scheme.lower() != "http":
        raise MalformedHead("only absolute http URLs are forwarded")
    authority = url.netloc.rpartition("@")[2]
    host, port = split_authority(authority, default_port=80)
    path = (url.path or "/") + (f"?{url.query}" if "?" in target else "")
    named = _named_by_connection(fields)
    dropped = named | _HOP_BY_HOP | {"host", "upgrade"}
    kept = [
        (name, value)
        for name, value in fields
        if (lower := name.lower()) not in dropped and not lower.startswith("proxy-")
    ]
    return Request(
        tunnel=False,
        host=host,
        port=port or 80,
        url=f"http://{authority}{url.path or '/'}"[:300],
        forward=_join(f"{method} {path} HTTP/1.1", [("Host", authority), *kept]),
        authority=authority.encode("latin-1"),
        body=_body_length(fields),
        method=method,
        persistent=persistent and "close" not in named,
    )


def read_response(head: bytes, *, to: Request) -> Response:
    """Understand the head of a response to a request, and rewrite it for the client.

    Interim answers (1xx) keep their head.

    Raises:
        MalformedHead: If it is no HTTP/1 response, or one that nobody asked for.
    """
    line, fields = _split(head, lenient=True)
    version, _, rest = line.partition(" ")
    status = rest[:3]
    if not version.startswith("HTTP/1.") or not (status.isascii() and status.isdigit()):
        raise MalformedHead("the server did not answer in HTTP/1")
    code = int(status)
    if code == 101:
        raise MalformedHead("the server changed to a protocol nobody asked for")
    if 100 <= code < 200:
        return Response(head=head, status=code, interim=True)
    bodiless = to.method == "HEAD" or code in _BODILESS
    body = 0 if bodiless else _response_length(fields)
    named = _named_by_connection(fields)
    client_stays = to.persistent and body is not None
    dropped = named | _HOP_BY_HOP | {MARK.lower(), "proxy-connection"}
    kept = [(name, value) for name, value in fields if name.lower() not in dropped]
    if not client_stays:
        kept.append(("Connection", "close"))
    return Response(
        head=_join(line, kept),
        status=code,
        body=body,
        server_stays=body is not None and version == "HTTP/1.1" and "close" not in named,
        client_stays=client_stays,
    )


def connect_head(request: Request, authorization: str | None) -> bytes:
    """Return the head that asks a proxy for a tunnel to where a request goes."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    place = f"{host}:{request.port}".encode("latin-1")
    told = b"" if authorization is None else _authorization(authorization)
    return b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (place, place, told)


def status_of(head: bytes) -> int:
    """Return the status of a response's head; 0 if it is none of HTTP/1."""
    match = _STATUS.match(head)
    return 0 if match is None else int(match[1])


def own_answer(status: str, mark: str, text: str) -> bytes:
    """Return a whole response of the forwarder's own."""
    body = text.encode()[:1000] + b"\n"
    fields = [
        (MARK, mark),
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
        ("Connection", "close"),
    ]
    return _join(f"HTTP/1.1 {status}", fields) + body


def _split(head: bytes, *, lenient: bool = False) -> tuple[str, list[tuple[str, str]]]:
    """Split a head into its first line and its fields; lenient drops fields that are none.

    A line ends where Chromium lets it end, so that nothing is a field to it and none to us.
    """
    text = head.decode("latin-1").removesuffix("\r\n\r\n")
    line, *rest = _LINE_END.split(text)
    fields = []
    for raw in rest:
        name, colon, value = raw.partition(":")
        if colon and name and name == name.strip():
            fields.append((name, value.strip()))
        elif not lenient:
            raise MalformedHead("a header field is malformed")
    return line, fields


def _join(line: str, fields: list[tuple[str, str]]) -> bytes:
    lines = [line, *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _authorization(value: str) -> bytes:
    return b"Proxy-Authorization: %s\r\n" % value.encode("latin-1")


def _named_by_connection(fields: list[tuple[str, str]]) -> frozenset[str]:
    values = [value for name, value in fields if name.lower() in _CONNECTION]
    return frozenset(token.strip().lower() for value in values for token in value.split(","))


def _response_length(fields: list[tuple[str, str]]) -> int | None:
    """Return the length of a response's body, None where only its end will tell."""
    try:
        has_one = any(name.lower() == "content-length" for name, _ in fields)
        return _body_length(fields) if has_one else None
    except MalformedHead:
        return None


def _body_length(fields: list[tuple[str, str]]) -> int | None:
    lengths = {value for name, value in fields if name.lower() == "content-length"}
    chunked = any(name.lower() == "transfer-encoding" for name, _ in fields)
    if (chunked and lengths) or len(lengths) > 1:
        raise MalformedHead("the length of the body is ambiguous")
    if chunked:
        return None
    text = lengths.pop() if lengths else "0"
    if not (text.isascii() and text.isdigit()):
        raise MalformedHead("the length of the body is no number")
    return int(text)
