"""A verification: nine points at once, under one clock, and nothing left of it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack

import aiohttp
import structlog

from farm.core.job_states import AT_REST, JobState
from farm.core.model import ClientId
from farm.errors import ConflictError, FarmError
from farm.protocol.resources import PointOutcome, PointView, VerifyEnd
from farm.stores.records import Job
from farm.verify.client import Dial
from farm.verify.outcomes import RefutedError, Seen, UnprovenError
from farm.verify.points import POINTS, Point
from farm.verify.stage import VERIFY, Farm, Stage

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Tell = Callable[[PointView], Awaitable[None]]
LendToken = Callable[[], AbstractContextManager[str]]
"""Gives a token that lets agents of the namespace `VERIFY` in, for as long as the block lasts."""

_PROOF_S = 40.0
_END_S = 10.0
"""With the time to clear the way they stay under the minute in which a verification is over."""
_LOOK_S, _LOOKS = 0.05, 100
_JOBS = 500


class Verifier:
    """Verifies the farm it is part of, one verification at a time.

    Args:
        farm: What is verified.
        lend_token: Lets the probe clients in.
        points: What is proven.
        proof_s: What is not settled within so many seconds is not proven.
    """

    def __init__(
        self,
        farm: Farm,
        lend_token: LendToken,
        *,
        points: Sequence[Point] = POINTS,
        proof_s: float = _PROOF_S,
    ) -> None:
        self._farm = farm
        self._lend_token = lend_token
        self._points = points
        self._proof_s = proof_s
        self._busy = False

    async def begin(self, url: str, host: str) -> "Verification":
        """Begin, with probe clients that dial `url` under the name `host`; `end` it in any case.

        Raises:
            ConflictError: If another one runs, here or on another coordinator.
            StoreUnavailableError: If a store can't be reached.
        """
        if self._busy:
            raise ConflictError("another verification is running")
        self._busy = True
        try:
            await self._clear_the_way()
        except BaseException:
            self._busy = False
            raise
        return Verification(
            farm=self._farm,
            lend_token=self._lend_token,
            points=self._points,
            proof_s=self._proof_s,
            url=url,
            host=host,
            over=self._over,
        )

    def _over(self) -> None:
        self._busy = False

    async def _clear_the_way(self) -> None:
        """Take away what one that was killed has left."""
        snapshot = await self._farm.registry.snapshot(now=self._farm.clock())
        for client in snapshot.clients:
            if VERIFY not in client.namespaces:
                continue
            if client.link is not None:
                raise ConflictError("another verification is running, or has just been killed")
            await self._farm.agent_is_gone(client.client_id, "its verification is over")
        await _forget_jobs(self._farm)


class Verification:
    """One run. `run` proves, `end` takes everything away again."""

    def __init__(
        self,
        *,
        farm: Farm,
        lend_token: LendToken,
        points: Sequence[Point],
        proof_s: float,
        url: str,
        host: str,
        over: Callable[[], None],
    ) -> None:
        self._farm = farm
        self._lend_token = lend_token
        self._points = points
        self._proof_s = proof_s
        self._url = url
        self._host = host
        self._over = over
        self._client_ids: Sequence[ClientId] = ()
        self._started_at = asyncio.get_running_loop().time()

    async def run(self, tell: Tell) -> None:
        """Prove all points at once, and tell each as it is settled."""
        with ExitStack() as lent:
            secret = lent.enter_context(self._lend_token())
            headers = {"Authorization": f"Bearer {secret}", "Host": self._host}
            async with aiohttp.ClientSession() as session:
                stage = Stage(self._farm, Dial(session=session, url=self._url, headers=headers))

                async def prove_all() -> None:
                    async with asyncio.TaskGroup() as group:
                        for point in self._points:
                            group.create_task(
                                self._settle(stage, point, tell), name=f"point {point.number}"
                            )

                try:
                    await stage.run(prove_all)
                finally:
                    self._client_ids = stage.client_ids

    async def _settle(self, stage: Stage, point: Point, tell: Tell) -> None:
        loop = asyncio.get_running_loop()
        began, seen = loop.time(), Seen()
        outcome, reason = await self._outcome(point, stage, seen)
        log.info("verify.point", point=point.number, outcome=outcome, reason=reason)
        await tell(
            PointView(
                number=point.number,
                claim=point.claim,
                outcome=outcome,
                reason=reason,
                evidence=tuple(seen.lines),
                seconds=round(loop.time() - began, 3),
            )
        )

    async def _outcome(
        self, point: Point, stage: Stage, seen: Seen
    ) -> tuple[PointOutcome, str | None]:
        outcome: PointOutcome = "pass"
        reason: str | None = None
        try:
            async with asyncio.timeout_at(self._started_at + self._proof_s):
                await point.prove(stage, seen)
        except* UnprovenError as group:
            outcome, reason = "not_proven", _first(group)
        except* TimeoutError:
            outcome, reason = "not_proven", f"it was not settled within {self._proof_s:g} s"
        except* FarmError as group:
            outcome, reason = "not_proven", f"the farm refused: {_first(group)}"
        except* ConnectionError as group:
            outcome, reason = "not_proven", f"a probe client lost its link: {_first(group)}"
        except* RefutedError as group:
            outcome, reason = "fail", _first(group)
        return outcome, reason

    async def end(self) -> VerifyEnd:
        """Take away what was made, and say what could not be."""
        left: Sequence[str] = ("the end did not come in time",)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    left = await self._take_away()
        except FarmError as error:
            left = (error.detail,)
        finally:
            self._over()
        seconds = asyncio.get_running_loop().time() - self._started_at
        log.info("verify.ended", left_behind=left, seconds=round(seconds, 3))
        return VerifyEnd(left_behind=tuple(left), seconds=round(seconds, 3))

    async def _take_away(self) -> Sequence[str]:
        farm = self._farm
        # Cancelled first, lest what is lost with its agent be tried again.
        for job in await _jobs(farm):
            if job.state not in AT_REST:
                with contextlib.suppress(ConflictError):
                    await farm.jobs.cancel(VERIFY, job.job_id)
        for client_id in self._client_ids:
            await farm.agent_is_gone(client_id, "the verification is over")
        await _forget_jobs(farm)
        await farm.app_node.forget_evidence(VERIFY)
        snapshot = await farm.registry.snapshot(now=farm.clock())
        return [
            *(f"agent {c.client_id}" for c in snapshot.clients if VERIFY in c.namespaces),
            *(f"job {job.job_id}, {job.state}" for job in await _jobs(farm)),
        ]


def _first(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error)


async def _jobs(farm: Farm) -> Sequence[Job]:
    return await farm.ledger.jobs(VERIFY, state=None, before=None, limit=_JOBS)


async def _forget_jobs(farm: Farm) -> None:
    """Bring the jobs of verifications to rest, as far as they come to it, and forget them."""
    for _ in range(_LOOKS):
        if all(job.state in AT_REST for job in await _settled(farm)):
            break
        await asyncio.sleep(_LOOK_S)
    await farm.ledger.forget_jobs(VERIFY)


async def _settled(farm: Farm) -> Sequence[Job]:
    for job in await _jobs(farm):
        with contextlib.suppress(ConflictError):
            if job.state is JobState.UNCERTAIN:
                await farm.jobs.resolve(VERIFY, job.job_id, "failed")
            elif job.state is JobState.QUEUED:
                await farm.jobs.cancel(VERIFY, job.job_id)
    return await _jobs(farm)
