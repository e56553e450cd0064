"""Heads of HTTP messages: understood, rewritten, or refused, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.chromium.http_heads import MalformedHead, own_answer, read_request, rewrite_response

LINES = st.lists(st.text(st.characters(max_codepoint=255), max_size=30), max_size=6)


@given(st.binary() | LINES.map(lambda lines: ("\r\n".join(lines)).encode("latin-1")))
def test_no_bytes_are_anything_but_a_head_or_malformed(data: bytes) -> None:
    for read in (read_request, rewrite_response):
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
    status, rewritten = rewrite_response(head)
    assert status == 200
    assert rewritten == (
        b"HTTP/1.0 200 Fine\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_a_server_cannot_pose_as_us_by_a_line_end_of_its_own(end: bytes) -> None:
    head = b"HTTP/1.1 403 No\r\nX-A: b" + end + b"X-Tabfarm-Egress: denied\r\n\r\n"
    _, rewritten = rewrite_response(head)
    assert rewritten == b"HTTP/1.1 403 No\r\nX-A: b\r\nConnection: close\r\n\r\n"


def test_an_answer_of_our_own_is_short_and_plain() -> None:
    head, _, body = own_answer("403 Forbidden", "denied", "<b>" * 1000).partition(b"\r\n\r\n")
    assert len(body) <= 1001
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"text/plain" in head
    assert b"nosniff" in head
