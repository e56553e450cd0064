"""Proxies in this process that demand a username and a password, and remember who went where."""

import asyncio
import base64
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

USERNAME, PASSWORD = "ann-user", "pr0xy-passw0rd"
_END = b"\r\n\r\n"


@dataclass(slots=True, kw_only=True)
class Proxying:
    """One proxy, which resolves names by a table of its own."""

    names: dict[str, str] = field(default_factory=dict)
    scheme: str = "http"
    port: int = 0
    places: list[str] = field(default_factory=list)
    """`host:port` of each request that was let through, as it was asked for."""
    heads: list[bytes] = field(default_factory=list)
    refused: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def route(self, **changes: Any) -> dict[str, Any]:
        """What an agent is lent to use it."""
        told = {"username": USERNAME, "password": PASSWORD}
        return {"server": f"{self.scheme}://localhost:{self.port}", "credentials": told} | changes

    async def open(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.places.append(f"{host}:{port}")
        reader, writer = await asyncio.open_connection(self.names.get(host, host), port)
        self.writers.append(writer)
        return reader, writer


async def _by_http(
    proxy: Proxying, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    pair = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode())
    while True:
        head = await reader.readuntil(_END)
        proxy.heads.append(head)
        if b"Proxy-Authorization: Basic " + pair not in head:
            proxy.refused += 1
            writer.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n"
                b'Proxy-Authenticate: Basic realm="x"\r\nConnection: close\r\n\r\n'
            )
            return
        method, target, _ = head.split(b" ", 2)
        if method == b"CONNECT":
            host, _, port = target.decode().rpartition(":")
            try:
                there = await proxy.open(host.strip("[]"), int(port))
            except OSError:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                return
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await _join(reader, writer, *there)
            return
        place, _, path = target.removeprefix(b"http://").partition(b"/")
        host, _, port = place.decode().partition(":")
        up_reader, up_writer = await proxy.open(host, int(port or 80))
        kept = head.split(b"\r\n", 1)[1].replace(b"Proxy-Authorization", b"X-Told")
        up_writer.write(method + b" /" + path + b" HTTP/1.1\r\nConnection: close\r\n" + kept)
        while data := await up_reader.read(65536):
            writer.write(data)
        up_writer.close()
        return


async def _by_socks(
    proxy: Proxying, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    _, count = await reader.readexactly(2)
    methods = await reader.readexactly(count)
    if 2 not in methods:
        proxy.refused += 1
        writer.write(b"\x05\xff")
        return
    writer.write(b"\x05\x02")
    await reader.readexactly(1)
    told = [await _text(reader), await _text(reader)]
    if told != [USERNAME.encode(), PASSWORD.encode()]:
        proxy.refused += 1
        writer.write(b"\x01\x01")
        return
    writer.write(b"\x01\x00")
    kind = (await reader.readexactly(4))[3]
    if kind == 1:
        host = ".".join(map(str, await reader.readexactly(4)))
    else:
        host = (await _text(reader)).decode()
    (port,) = struct.unpack(">H", await reader.readexactly(2))
    try:
        there = await proxy.open(host, port)
    except OSError:
        writer.write(b"\x05\x05\x00\x01" + bytes(6))
        return
    writer.write(b"\x05\x00\x00\x01" + bytes(6))
    await _join(reader, writer, *there)


async def _text(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly((await reader.readexactly(1))[0])


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_pour(reader, up_writer))
        group.create_task(_pour(up_reader, writer))


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxying(
    scheme: str = "http", *, names: dict[str, str] | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Proxying]:
    """Run a proxy on a free loopback port: `http`, `https` or `socks5`."""
    proxy = Proxying(names=names or {}, scheme=scheme)
    speak = _by_socks if scheme == "socks5" else _by_http

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        proxy.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await speak(proxy, reader, writer)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for writer in proxy.writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # for them to be told
