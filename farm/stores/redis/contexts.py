"""What agents have, and which task holds which of it."""

from collections.abc import Sequence
from itertools import chain

from farm.core.model import (
    Assignment,
    ClientId,
    Context,
    ContextId,
    Instant,
    LinkId,
    Namespace,
    Request,
    Snapshot,
    Token,
    Window,
)
from farm.core.placement import Fill
from farm.core.reservation import Denial
from farm.stores.redis import records
from farm.stores.redis.reports import report_parts
from farm.stores.redis.shard import RedisShard

# How many assignments one script ends at most, so that Redis is not kept from others for long.
_EXPIRED_AT_ONCE = 500


class RedisContexts(RedisShard):
    """The ports `ContextRegistry`, `FirstFit`, `ClientRelease` and `TurnKeeper`."""

    async def snapshot(self, *, now: Instant) -> Snapshot:
        """See `ContextRegistry.snapshot`.

        One round trip, which carries in full only the clients that changed since the last one
        here. Where 200 have, one more each 200, and then each client is read at one moment, but
        not all at the same.
        """
        clients, departed = await self._read(now)
        return Snapshot(
            taken_at=now, clients=clients, presence_window_s=self._window_s, departed=departed
        )

    async def report(
        self,
        client_id: ClientId,
        link: LinkId,
        *,
        epoch: int,
        number: int,
        windows: Sequence[Window],
        contexts: Sequence[Context],
        now: Instant,
    ) -> tuple[Assignment, ...] | Denial:
        """See `ContextRegistry.report`."""
        parts = report_parts(windows, contexts)
        outcome, *gone = await self.run(
            "report",
            client_id,
            link,
            epoch,
            number,
            repr(now),
            *map(len, parts),
            *chain.from_iterable(parts),
        )
        if outcome != "ok":
            return Denial(outcome)
        return tuple(map(records.assignment_from, gone[0]))

    async def assign(
        self,
        request: Request,
        client_id: ClientId,
        context_id: ContextId,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | Denial:
        """See `ContextRegistry.assign`."""
        reply = await self.run(
            "assign",
            client_id,
            context_id,
            records.request_text(request),
            repr(now),
            repr(self._window_s),
            repr(now + timeout_s),
        )
        return records.assigned(reply, request, client_id, context_id, now=now, timeout_s=timeout_s)

    async def assign_first(
        self, request: Request, *, now: Instant, timeout_s: float
    ) -> Assignment | None:
        """See `FirstFit.assign_first`. One round trip."""
        near, placement = request.affinity_client_id, request.placement
        outcome, *taken = await self.run(
            "assign_first",
            records.request_text(request),
            repr(now),
            repr(self._window_s),
            repr(now + timeout_s),
            Fill.SPREAD if placement is None else placement.fill,
            *(() if near is None else (near,)),
        )
        if outcome != "ok":
            return None
        client_id, context_id, epoch, token = taken
        return records.assignment(
            request, client_id, context_id, epoch, token, now=now, timeout_s=timeout_s
        )

    async def restore(self, assignment: Assignment) -> bool:
        """See `ContextRegistry.restore`."""
        context = Context(context_id=assignment.context_id)
        record = records.context_text(context, records.place(None, ""))
        reply = await self.run("restore", records.assignment_text(assignment), record)
        return bool(reply[0] == "ok")

    async def renew(
        self,
        client_id: ClientId,
        context_id: ContextId,
        token: Token,
        *,
        now: Instant,
        timeout_s: float,
    ) -> Assignment | None:
        """See `ContextRegistry.renew`."""
        outcome, *renewed = await self.run(
            "renew",
            client_id,
            context_id,
            records.token_text(token),
            repr(now),
            repr(now + timeout_s),
        )
        return records.assignment_from(renewed[0]) if outcome == "ok" else None

    async def holds(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """See `ContextRegistry.holds`."""
        reply = await self.run("holds", client_id, context_id, records.token_text(token))
        return bool(reply[0] == "ok")

    async def release(self, client_id: ClientId, context_id: ContextId, token: Token) -> bool:
        """See `ContextRegistry.release`."""
        reply = await self.run("release", client_id, context_id, records.token_text(token))
        return bool(reply[0] == "ok")

    async def release_expired(self, *, now: Instant) -> tuple[Assignment, ...]:
        """See `ContextRegistry.release_expired`; more than 500 are ended in several steps.

        Given back are, too, reservations that this coordinator could not give back before.
        """
        unwanted = self._unwanted.all()
        await self.run("give_back_expired", repr(now), *unwanted)
        self._unwanted.given_back(unwanted)
        ended: list[Assignment] = []
        while True:
            _, texts = await self.run("release_expired", repr(now), _EXPIRED_AT_ONCE)
            ended += map(records.assignment_from, texts)
            if len(texts) < _EXPIRED_AT_ONCE:
                return tuple(ended)

    async def release_client(
        self, namespace: Namespace, client_id: ClientId, *, link: LinkId | None
    ) -> tuple[Assignment, ...]:
        """See `ClientRelease.release_client`."""
        _, ended = await self.run(
            "release_client", client_id, namespace, *(() if link is None else (link,))
        )
        return tuple(map(records.assignment_from, ended))

    async def next_turn(self, namespace: Namespace) -> int:
        """See `TurnKeeper.next_turn`."""
        _, turn = await self.run("next_turn", namespace)
        return int(turn)
