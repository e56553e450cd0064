"""Recordings that are ended and handed in, whatever is slow; without a browser."""

import asyncio
from pathlib import Path

import pytest

from agent.chromium.recording import recordings as bounds
from agent.chromium.recording.recorder import RecordingFailed
from agent.chromium.recording.recordings import Recordings
from farm.protocol.recordings import Recording, RecordingKind
from tests.agent.chromium.journal import Journal
from tests.patience import PATIENCE_S


class Growing:
    """It has always grown too large, and takes its time to end."""

    kind = RecordingKind.TRACE
    wants_window = False

    def __init__(self, folder: Path) -> None:
        self._path = folder / "trace.zip"
        self._whole = False
        self.ends = asyncio.Event()
        self.may_end = asyncio.Event()

    async def start(self) -> None:
        """See `Recorder`."""

    async def size(self) -> int:
        """See `Recorder`."""
        return 10_000

    async def stop(self) -> None:
        """See `Recorder`."""
        if not self.ends.is_set():
            self.ends.set()
            await self.may_end.wait()
            self._path.write_bytes(b"whole")
            self._whole = True

    async def keep(self) -> Path:
        """See `Recorder`."""
        if not self._whole:
            raise RecordingFailed("cut off half way")
        return self._path


async def test_what_ends_at_its_bound_as_the_attempt_does_is_not_cut_off(tmp_path: Path) -> None:
    recorder, journal = Growing(tmp_path), Journal()
    order = Recording(kinds=(RecordingKind.TRACE,), max_bytes=4096)
    recordings = Recordings(order, journal, [recorder], alone=lambda: True, clear=lambda: None)
    await recordings.begin()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        watch = group.create_task(recordings.watch())
        await recorder.ends.wait()
        watch.cancel()
        await asyncio.sleep(0)
        recorder.may_end.set()
    await recordings.end(failed=False)
    assert journal.ends() == {"trace": ("ready", "it ends early: it had grown to 4096 bytes")}


class Endless(Growing):
    """It neither begins nor ends."""

    def __init__(self, folder: Path, *, begins: bool) -> None:
        super().__init__(folder)
        self._begins = begins

    async def start(self) -> None:
        """See `Recorder`."""
        if not self._begins:
            await asyncio.Event().wait()

    async def size(self) -> int:
        """See `Recorder`."""
        return 0


@pytest.mark.parametrize(
    ("bound", "begins", "said"),
    [
        ("START_S", False, "it could not begin in time"),
        ("STOP_S", True, "it could not be stored in time"),
        ("HURRY_S", True, "there was no time for it"),
    ],
)
async def test_none_is_waited_for_longer_than_it_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, begins: bool, said: str
) -> None:
    monkeypatch.setattr(bounds, bound, 0.01)
    journal, recorder = Journal(), Endless(tmp_path, begins=begins)
    if not begins:
        recorder.may_end.set()
    order = Recording(kinds=(RecordingKind.TRACE,))
    recordings = Recordings(order, journal, [recorder], alone=lambda: True, clear=lambda: None)
    async with asyncio.timeout(PATIENCE_S):
        await recordings.begin()
        await (recordings.hurry() if bound == "HURRY_S" else recordings.end(failed=True))
    assert journal.ends() == {"trace": ("failed", said)}
