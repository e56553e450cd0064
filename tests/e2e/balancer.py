"""An haproxy before several farms: it passes on each connection, or each request, in turn."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.e2e.conftest import until
from tests.e2e.faults.house import free_port

Mode = Literal["tcp", "http"]
"""What is passed on in turn: connections, or the requests on them."""
_SETTINGS = """
global
    maxconn 2000
defaults
    mode {mode}
    balance roundrobin
    timeout connect 2s
    timeout client 90s
    timeout server 90s
    timeout tunnel 1h
    retries 3
    option redispatch 1
frontend farm
    bind 127.0.0.1:{port}
    default_backend coordinators
backend coordinators
    default-server check inter 200ms fall 1 rise 1
"""


@contextlib.contextmanager
def balancing(folder: Path, mode: Mode, ports: Sequence[int]) -> Iterator[str]:
    """Balance between these ports of this machine; give the URL. Skips, or fails in CI, without."""
    if (haproxy := shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")) is None:
        if os.environ.get("CI"):
            pytest.fail("install haproxy")
        pytest.skip("install haproxy")
    port = free_port()
    servers = (f"    server s{to} 127.0.0.1:{to}\n" for to in ports)
    settings = folder / f"{mode}.cfg"
    settings.write_text(_SETTINGS.format(mode=mode, port=port) + "".join(servers))
    with subprocess.Popen([haproxy, "-db", "-q", "-f", str(settings)]) as process:
        try:
            until(lambda: _listens(port) or process.poll() is not None, lambda: "no haproxy")
            assert process.poll() is None
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
