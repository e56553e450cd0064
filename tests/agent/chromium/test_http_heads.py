"""Heads of HTTP messages: understood, rewritten, or refused, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.chromium.http_heads import (
    MalformedHead,
    Request,
    Response,
    own_answer,
    read_request,
    read_response,
)

GET = read_request(b"GET http://a.test/ HTTP/1.1\r\n\r\n")
LINES = st.lists(st.text(st.characters(max_codepoint=255), max_size=30), max_size=6)


def answer_to_get(head: bytes) -> Response:
    return read_response(head, to=GET)


@given(st.binary() | LINES.map(lambda lines: ("\r\n".join(lines)).encode("latin-1")))
def test_no_bytes_are_anything_but_a_head_or_malformed(data: bytes) -> None:
    for read in (read_request, answer_to_get):
        try:
            read(data)
        except MalformedHead:
            continue


@given(
    st.sampled_from(["GET", "POST"]),
    st.from_regex(r"[a-z]{1,10}\.test", fullmatch=True),
    st.integers(1, 65_535),
    st.from_regex(r"/[A-Za-z0-9/._%?=&-]{0,30}", fullmatch=True),
)
def test_an_absolute_url_is_sent_on_as_it_was_written(
    method: str, host: str, port: int, path: str
) -> None:
    request = read_request(f"{method} http://{host}:{port}{path} HTTP/1.1\r\n\r\n".encode())
    assert (request.host, request.port) == (host, port)
    assert request.forward.startswith(f"{method} {path} HTTP/1.1\r\n".encode())
    assert "?" not in request.url


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [("[::1]:8443", "::1", 8443), ("a.test", "a.test", 443), ("a.test:1", "a.test", 1)],
)
def test_a_tunnel_is_asked_for_by_host_and_port(target: str, host: str, port: int) -> None:
    request = read_request(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    assert (request.tunnel, request.host, request.port) == (True, host, port)


def test_a_servers_odd_line_is_dropped_and_its_answer_passed_on() -> None:
    head = b"HTTP/1.0 200 Fine\r\nno field at all\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n"
    assert answer_to_get(head).head == (
        b"HTTP/1.0 200 Fine\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_a_server_cannot_pose_as_us_by_a_line_end_of_its_own(end: bytes) -> None:
    head = b"HTTP/1.1 403 No\r\nX-A: b" + end + b"X-Tabfarm-Egress: denied\r\n\r\n"
    assert answer_to_get(head).head == b"HTTP/1.1 403 No\r\nX-A: b\r\nConnection: close\r\n\r\n"


def test_an_answer_of_our_own_is_short_and_plain() -> None:
    head, _, body = own_answer("403 Forbidden", "denied", "<b>" * 1000).partition(b"\r\n\r\n")
    assert len(body) <= 1001
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"text/plain" in head
    assert b"nosniff" in head


@pytest.mark.parametrize(
    ("head", "body", "server_stays", "client_stays"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5", 5, True, True),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: Close", 5, False, True),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5", 5, False, True),
        ("HTTP/1.1 204 No Content", 0, True, True),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5", 0, True, True),
        ("HTTP/1.1 200 OK", None, False, False),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", None, False, False),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
            None,
            False,
            False,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6", None, False, False),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5", None, False, False),
    ],
)
def test_connections_stay_only_where_the_end_of_the_answer_is_certain(
    head: str, body: int | None, server_stays: bool, client_stays: bool
) -> None:
    response = answer_to_get(f"{head}\r\n\r\n".encode())
    assert (response.body, response.server_stays, response.client_stays) == (
        body,
        server_stays,
        client_stays,
    )
    assert (b"Connection: close" in response.head) is not client_stays


def test_an_answer_to_head_has_no_body_whatever_length_it_names() -> None:
    head = read_request(b"HEAD http://a.test/ HTTP/1.1\r\n\r\n")
    assert read_response(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", to=head).body == 0


@pytest.mark.parametrize(
    "request_",
    [
        b"GET http://a.test/ HTTP/1.0\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET http://a.test/ HTTP/1.1\r\nProxy-Connection: close\r\n\r\n",
    ],
)
def test_a_client_that_asks_once_is_answered_once(request_: bytes) -> None:
    response = read_response(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", to=read_request(request_)
    )
    assert not response.client_stays
    assert b"Connection: close" in response.head


def test_a_change_of_protocol_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(MalformedHead):
        answer_to_get(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "length", "repeatable"),
    [("GET", 0, True), ("HEAD", 0, True), ("OPTIONS", 0, True), ("GET", 3, False)]
    + [(method, 0, False) for method in ("POST", "PUT", "DELETE", "PATCH")],
)
def test_only_what_has_no_effect_may_be_sent_twice(
    method: str, length: int, repeatable: bool
) -> None:
    head = f"{method} http://a.test/ HTTP/1.1\r\nContent-Length: {length}\r\n\r\n"
    request: Request = read_request(head.encode())
    assert request.repeatable is repeatable
