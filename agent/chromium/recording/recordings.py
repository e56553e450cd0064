"""All recordings of one attempt: begun together, each bounded, each ended and handed in."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
from playwright.async_api import Error as PlaywrightError

from agent.chromium.recording.recorder import Recorder, RecordingFailed
from agent.chromium.shielding import to_the_end
from agent.ports import Evidence, StaleAssignment, UploadRefused
from agent.steps.failures import message_of
from farm.protocol.messages import Recorded
from farm.protocol.recordings import FILES, Recording

_log = structlog.get_logger(__name__)
START_S = 5.0
STOP_S = 10.0
STORE_S = 30.0
"""Together less than what the farm waits beyond the job's own time."""
HURRY_S = 4.0
"""How long all of it may take for an attempt that was cancelled."""
_LOOK_S = 0.5
_OVER = 2
"""One that has grown to so many times its bound between two looks is not kept."""

COMPANY = "another attempt began in the same window"


@dataclass(slots=True, kw_only=True)
class _Take:
    recorder: Recorder
    detail: str = ""
    """Why it ended early."""
    failed: str | None = None
    going: bool = False
    said: bool = False


class Recordings:
    """Runs once: `begin`, `watch` meanwhile, `end`; and `hurry` where any of them was cancelled."""

    def __init__(
        self,
        order: Recording,
        evidence: Evidence,
        recorders: Sequence[Recorder],
        *,
        alone: Callable[[], bool],
        clear: Callable[[], None],
    ) -> None:
        """Prepare.

        Args:
            order: What was asked for.
            evidence: Where they are handed in.
            recorders: What takes them.
            alone: Whether no other attempt runs in the window.
            clear: Deletes their files.
        """
        self._order = order
        self._evidence = evidence
        self._takes = [_Take(recorder=recorder) for recorder in recorders]
        self._alone = alone
        self._clear = clear
        self._company = asyncio.Event()

    def company(self) -> None:
        """Hear that another attempt begins in the window."""
        self._company.set()

    async def begin(self) -> None:
        """Begin all of them; one that can't begin has failed."""
        async with asyncio.TaskGroup() as group:
            for take in self._takes:
                group.create_task(self._begin(take), name=f"record.{take.recorder.kind}")

    async def _begin(self, take: _Take) -> None:
        if take.recorder.wants_window and not self._alone():
            take.failed = "another attempt runs in the same window"
            return
        take.going = True
        take.failed = await _tried(take.recorder.start(), START_S, "it could not begin in time")

    async def watch(self) -> None:
        """Stop each at its bound, or when it is not alone any more; until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_LOOK_S):
                    await self._company.wait()
            except TimeoutError:
                pass
            for take in self._takes:
                await self._look(take)
            if self._company.is_set():
                await asyncio.sleep(_LOOK_S)

    async def _look(self, take: _Take) -> None:
        if not take.going or take.failed is not None or take.detail:
            return
        if take.recorder.wants_window and self._company.is_set():
            take.detail = f"it ends early: {COMPANY}"
        elif await take.recorder.size() >= self._order.max_bytes:
            take.detail = f"it ends early: it had grown to {self._order.max_bytes} bytes"
        else:
            return
        # Nobody looks any more when the attempt is over: what is cut off half way is no file.
        await to_the_end(self._stop(take))

    @staticmethod
    async def _stop(take: _Take) -> None:
        take.failed = await _tried(take.recorder.stop(), STOP_S, "it could not be ended in time")

    async def end(self, *, failed: bool) -> None:
        """End all of them and hand them in, in bounded time; `failed` tells how the attempt ended.

        Raises:
            CancelledError: If cancelled; `hurry` is to be called then.
        """
        await self._end(failed=failed)
        await self._clear_up()

    async def hurry(self) -> None:
        """Do the same for an attempt that was cancelled: quickly, or not at all."""
        try:
            async with asyncio.timeout(HURRY_S):
                await self._end(failed=True)
        except TimeoutError:
            for take in self._takes:
                await self._say(take, "failed", "there was no time for it")
        await self._clear_up()

    async def _end(self, *, failed: bool) -> None:
        keep = failed or self._order.keep == "always"
        async with asyncio.TaskGroup() as group:
            for take in self._takes:
                work = self._hand_in(take) if keep else self._discard(take)
                group.create_task(work, name=f"recorded.{take.recorder.kind}")

    async def _clear_up(self) -> None:
        await asyncio.to_thread(self._clear)

    async def _discard(self, take: _Take) -> None:
        if take.going:
            await _tried(take.recorder.stop(), STOP_S, "")
        await self._say(take, "discarded", "")

    async def _hand_in(self, take: _Take) -> None:
        await self._look(take)
        if take.going and take.failed is None:
            take.failed = await _tried(
                self._stored(take.recorder), STOP_S + STORE_S, "it could not be stored in time"
            )
        elif take.going:
            await _tried(take.recorder.stop(), STOP_S, "")
        if take.failed is None:
            await self._say(take, "ready", take.detail)
        else:
            await self._say(take, "failed", take.failed)

    async def _stored(self, recorder: Recorder) -> None:
        async with asyncio.timeout(STOP_S):
            await recorder.stop()
            path = await recorder.keep()
        size = await asyncio.to_thread(_size, path)
        if size > _OVER * self._order.max_bytes:
            raise RecordingFailed(f"it has grown too fast, to {size} bytes")
        name, media_type = FILES[recorder.kind]
        await self._evidence.upload(name, path, media_type, recording=recorder.kind)

    async def _say(self, take: _Take, state: str, detail: str) -> None:
        if take.said:
            return
        take.said = True
        said = {"recording": take.recorder.kind, "state": state, "detail": detail[:2000]}
        await self._evidence.note(Recorded.model_validate(said))


def _size(path: Path) -> int:
    return path.stat().st_size


async def _tried(work: Coroutine[None, None, None], seconds: float, late: str) -> str | None:
    """Await what may fail as a recording may; return why it did, in words."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return late
    except PlaywrightError as error:
        return message_of(error)
    except (RecordingFailed, UploadRefused) as failed:
        return str(failed)
    except StaleAssignment:
        return "the attempt has ended for the farm"
    except Exception as error:  # noqa: BLE001 - what becomes of a recording fails no job
        _log.exception("recording.broken")
        return f"{type(error).__name__}: {error}"
    return None
