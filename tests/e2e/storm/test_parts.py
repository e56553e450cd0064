"""What a storm is made of: its schedule, its cables, its network, and its verdict."""

import asyncio
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from farm.protocol.resources import AgentView, JobDetail
from tests.cable import Cable
from tests.e2e.storm.network import ImpossibleError, Place, Segment, apart
from tests.e2e.storm.schedule import Blow, kind_of, schedule
from tests.e2e.storm.targets import Target
from tests.e2e.storm.verdict import flaws, impossible, left_over
from tests.patience import PATIENCE_S
from tests.simulated.site import Done

EVERY = list(Blow)


def test_the_same_seed_makes_the_same_storm_and_another_one_another() -> None:
    def made(seed: int) -> list[str]:
        found = schedule(seed, {"a": EVERY, "b": EVERY}, jobs=60, every=1, longest_s=5)
        return [str(strike) for strike in found]

    assert made(1) == made(1) != made(2)


def test_all_that_can_be_done_to_each_kind_is_done_once_before_anything_again() -> None:
    targets = {"a-1": EVERY, "a-2": EVERY, "b": [Blow.CUT, Blow.KILL]}
    strikes = schedule(4, targets, jobs=200, every=2, longest_s=1)
    cards = len(EVERY) + 2
    first = Counter((kind_of(strike.target), strike.blow) for strike in strikes[:cards])
    assert first == Counter([("b", Blow.CUT), ("b", Blow.KILL), *(("a", blow) for blow in EVERY)])
    assert {strike.target for strike in strikes} == set(targets)
    assert [strike.after for strike in strikes] == sorted(strike.after for strike in strikes)


async def test_who_ends_a_storm_waits_for_what_is_just_being_started() -> None:
    class Slow:
        begun, may_end = threading.Event(), threading.Event()
        runs = False

        def start(self) -> None:
            self.begun.set()
            assert self.may_end.wait(10)
            self.runs = True

        def kill(self) -> None:
            self.runs = False

        def signal(self, number: signal.Signals) -> None:
            raise AssertionError(number)

    server = Slow()
    restoring = asyncio.create_task(Target(server=server).restore(Blow.KILL))
    assert await asyncio.to_thread(server.begun.wait, 10)
    restoring.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not restoring.done()
    server.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await restoring
    assert server.runs


def test_only_what_can_be_done_to_something_is_done_to_it() -> None:
    assert Target().blows == []
    assert Target(cables=[Cable(("127.0.0.1", 1))]).blows == [Blow.CUT, Blow.STALL, Blow.LOSE]


async def test_a_cable_carries_stalls_and_is_cut() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, Cable(server.sockets[0].getsockname()[:2]).laid() as cable:
        async with connected(cable) as (reader, writer):
            writer.write(b"one")
            assert await reader.read(100) == b"one"
            cable.stall()
            writer.write(b"two")
            answer = asyncio.create_task(reader.read(100))
            await asyncio.sleep(0)
            assert not answer.done()
            cable.mend()
            assert await answer == b"two"
            cable.cut()
            assert await ends(reader)
        async with connected(cable) as (reader, _):
            assert await ends(reader)
        cable.mend()
        async with connected(cable) as (reader, writer):
            writer.write(b"three")
            assert await reader.read(100) == b"three"
            cable.lose()
            writer.write(b"four")
            async with connected(cable) as (reader_of_new, writer_of_new):
                writer_of_new.write(b"five")
                assert await reader_of_new.read(100) == b"five"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await reader.read(100)


def test_who_is_unplugged_is_not_heard_and_not_refused_and_nothing_is_left_of_it() -> None:
    before = Path("/proc/thread-self/ns/net").readlink()
    try:
        with apart() as network:
            place = network.place(Segment.FRONT)
            plug = place.plugs[Segment.FRONT]
            with socket.create_server((network.middle(Segment.FRONT), 0)) as server:
                assert reaches(place, server)
                plug.pull()
                assert not reaches(place, server, within_s=0.5)
                plug.push()
                assert reaches(place, server)
    except ImpossibleError as why:
        pytest.skip(str(why))
    finally:
        assert Path("/proc/thread-self/ns/net").readlink() == before


def reaches(place: Place, server: socket.socket, within_s: float = 10.0) -> bool:
    """Whether a connection comes to be; raises where it is refused, or there is no way."""
    with place.inside(), socket.socket() as dialling:
        dialling.settimeout(within_s)
        try:
            dialling.connect(server.getsockname())
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def connected(
    cable: Cable,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", cable.port)
    yield reader, writer
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


async def ends(reader: asyncio.StreamReader) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        with suppress(OSError):
            return await reader.read(1) == b""
        return True


NOW = "2026-01-01T00:00:00Z"


def a_job(**changes: Any) -> JobDetail:
    return JobDetail.model_validate(
        {
            "id": "j1",
            "name": "once-1",
            "namespace": "default",
            "state": "succeeded",
            "at_rest": True,
            "attempts": 1,
            "max_attempts": 2,
            "created_at": NOW,
            "item_count": 0,
            "artifact_count": 0,
            **changes,
        }
    )


def an_effect(**changes: Any) -> dict[str, Any]:
    told = {"id": "s1.0", "attempt_id": "a1", "effect": "once", "observed": False, "begun_at": NOW}
    return {**told, **changes}


def an_agent(used_slots: int) -> AgentView:
    return AgentView.model_validate(
        {
            "client_id": "a",
            "client_type": "browser",
            "present": True,
            "draining": False,
            "epoch": 1,
            "namespaces": ["default"],
            "metadata": {},
            "capacity": {
                "max_concurrency": 2,
                "max_windows": 2,
                "max_tabs_per_window": 1,
                "max_flows": 0,
            },
            "used_slots": used_slots,
            "windows": 0,
            "contexts": 0,
            "seen_at": NOW,
        }
    )


ONE = Done(job="j1", step=1, attempt="a1")


def test_what_is_as_it_must_be_has_no_flaw() -> None:
    assert flaws([a_job()], 1, [ONE], [an_agent(0)]) == []
    doubtful = a_job(state="uncertain", effects=[an_effect()])
    assert flaws([doubtful], 1, [ONE], []) == []
    often = a_job(name="often-1")
    assert flaws([often], 1, [ONE, ONE], []) == []


@pytest.mark.parametrize(
    ("job", "done"),
    [
        (a_job(), [ONE, ONE]),
        (a_job(), []),
        (a_job(state="running"), [ONE]),
        (a_job(state="queued"), []),
        (a_job(state="uncertain"), [ONE]),
        (a_job(state="uncertain", effects=[an_effect(done_at=NOW)]), [ONE]),
        (a_job(state="uncertain", effects=[an_effect(effect="idempotent")]), [ONE]),
    ],
)
def test_what_is_not_as_it_must_be_is_a_flaw(job: JobDetail, done: list[Done]) -> None:
    assert len(flaws([job], 1, done, [])) == 1


def test_a_job_that_is_gone_and_a_slot_that_is_lost_are_flaws() -> None:
    assert len(flaws([], 1, [], [])) == 1
    assert len(flaws([], 0, [], [an_agent(1)])) == 1


def test_what_still_runs_of_a_storm_is_named(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], env={"TMPDIR": str(tmp_path / "tmp")}) as one:
        try:
            assert left_over([tmp_path]) == ["sleep 60"]
        finally:
            one.kill()
    assert left_over([tmp_path]) == []


def test_negative_and_impossible_counts_are_named() -> None:
    fine = "# HELP farm_jobs of -1\nfarm_jobs 0\n"
    assert impossible([an_agent(0), an_agent(2)], fine) == []
    assert len(impossible([an_agent(-1), an_agent(3)], "farm_jobs -1\n")) == 3
