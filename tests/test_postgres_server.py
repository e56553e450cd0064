"""The server of the tests' own leaves nothing behind."""

import subprocess

import psutil
import pytest

from tests.e2e.faults.house import living
from tests.stores import postgres_server


def test_all_are_ended_though_one_of_them_has_just_ended_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = subprocess.Popen(["true"])
    session.wait()
    listed = postgres_server._children
    monkeypatch.setattr(postgres_server, "_children", lambda pid: [session.pid, *listed(pid)])
    with postgres_server.running() as server:
        (first,) = server._pids()[:1]
        there = {psutil.Process(first), *psutil.Process(first).children(recursive=True)}
        assert len(there) > 1
        server.kill()
        assert living(there) == []
