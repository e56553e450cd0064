"""Agents are asked over the links that are held here, and who does not answer is not chosen."""

import asyncio
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from farm.core.model import ClientId, Instant, LinkId
from farm.core.pools import Exclusion
from farm.core.reachability import LOST_AFTER, round_s
from farm.errors import ClientAbsentError, StoreUnavailableError
from farm.manager.delivery import AppNode
from farm.manager.probing import Prober
from farm.protocol import messages as wire
from farm.stores.memory import MemoryCommandLog, MemoryRegistry
from tests.stores.pool import LINK, T0, WINDOW_S, A, hello, registered, reported

B = ClientId("b")
LOST, PROBATION = Exclusion.REACHABILITY_LOST, Exclusion.OPENING_PROBATION


class FlakyRegistry(MemoryRegistry):
    """Can't be published to as long as it is told so."""

    away = False
    published = 0

    async def publish_exclusions(self, *args: object, **how: object) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailableError("the store is away")
        self.published += 1
        await super().publish_exclusions(*args, **how)  # type: ignore[arg-type]


@dataclass
class Desk:
    """A prober over a registry, a node, and the links that are attached to it."""

    registry: FlakyRegistry
    metrics: CollectorRegistry = field(default_factory=CollectorRegistry)
    now: float = T0
    ended: list[tuple[ClientId, LinkId]] = field(default_factory=list)
    sent: dict[ClientId, list[wire.ToAgent]] = field(default_factory=dict)
    full: set[ClientId] = field(default_factory=set)
    """Whose outbox takes nothing."""

    def __post_init__(self) -> None:
        self.told: list[tuple[ClientId, Exclusion | None]] = []
        self.prober = Prober(
            self.registry,
            self.clock,
            coordinator="one",
            window_s=WINDOW_S,
            metrics=self.metrics,
            end=lambda client_id, link: self.ended.append((client_id, link)),
            tell=lambda client_id, kind: self.told.append((client_id, kind)),
        )
        log = MemoryCommandLog(since=self.clock())
        self.node = AppNode(commands=log, watcher=self.prober, clock=self.clock)

    def clock(self) -> Instant:
        return Instant(self.now)

    async def connect(self, client_id: ClientId, link: LinkId = LINK) -> None:
        """Let an agent in, and attach its link."""
        comes = hello(client_id, link=link, excluded=PROBATION)
        client = await registered(self.registry, comes, now=self.clock())
        self.sent[client_id] = []

        async def send(message: wire.ToAgent) -> None:
            if client_id in self.full:
                raise ClientAbsentError("its outbox is full")
            self.sent[client_id].append(message)

        await self.node.attach(client_id, link, send)
        await reported(self.registry, "T1", client=client, link=link, now=self.clock())

    async def answer(self, client_id: ClientId, link: LinkId = LINK) -> None:
        """Answer the last question as an agent's runtime does."""
        ping = self.sent[client_id][-1]
        assert isinstance(ping, wire.Ping)
        await self.registry.heard(client_id, link, now=self.clock())
        await self.node.ponged(client_id, link, ping.nonce)

    async def proven(self, client_id: ClientId, link: LinkId = LINK) -> None:
        await self.connect(client_id, link)
        await self.answer(client_id, link)

    async def rounds(self, count: int, *, answering: tuple[ClientId, ...] = ()) -> None:
        for _ in range(count):
            self.now += round_s(WINDOW_S)
            await self.prober.round()
            for client_id in answering:
                await self.answer(client_id)

    async def excluded(self, client_id: ClientId) -> Exclusion | None:
        return (await self.registry.exclusions(now=self.clock())).get(client_id)

    def counted(self, outcome: str) -> float:
        return self.metrics.get_sample_value("farm_probes_total", {"outcome": outcome}) or 0.0


@pytest.fixture
async def desk() -> Desk:
    return Desk(FlakyRegistry(store_epoch=1, presence_window_s=WINDOW_S))


async def test_a_new_agent_is_asked_at_once_and_chosen_as_soon_as_it_has_answered(
    desk: Desk,
) -> None:
    await desk.connect(A)
    assert await desk.excluded(A) is PROBATION
    generation = desk.registry.generation()
    await desk.answer(A)  # no round has passed
    assert await desk.excluded(A) is None
    assert desk.registry.generation() > generation


async def test_who_ceases_to_answer_is_not_chosen_and_is_asked_on_and_one_answer_restores_it(
    desk: Desk,
) -> None:
    await desk.proven(A)
    await desk.rounds(LOST_AFTER, answering=())
    assert await desk.excluded(A) is None
    with capture_logs() as logs:
        await desk.rounds(30)
    assert await desk.excluded(A) is LOST
    assert [line["event"] for line in logs] == ["agent.unreachable"]
    assert len(desk.sent[A]) == 1 + LOST_AFTER + 30
    with capture_logs() as logs:
        await desk.answer(A)
    assert await desk.excluded(A) is None
    assert [(line["event"], line["client_id"]) for line in logs] == [("agent.reachable", A)]


async def test_what_is_found_of_an_agent_is_told_when_it_changes(desk: Desk) -> None:
    await desk.proven(A)
    await desk.rounds(30)
    await desk.answer(A)
    assert desk.told == [
        (A, Exclusion.OPENING_PROBATION),
        (A, None),
        (A, LOST),
        (A, None),
    ]


async def test_what_could_not_be_asked_does_not_count_against_the_agent_and_is_logged_as_ours(
    desk: Desk,
) -> None:
    await desk.proven(A)
    desk.full.add(A)
    with capture_logs() as logs:
        await desk.rounds(20)
    assert await desk.excluded(A) is None
    (line,) = logs
    assert (line["event"], line["reason"]) == ("probe.could_not_ask", "its outbox is full")
    assert desk.counted("could_not_ask") == 20
    assert desk.counted("not_answered") == 0
    desk.full.clear()
    with capture_logs() as logs:
        await desk.rounds(2, answering=(A,))
    assert [line["event"] for line in logs] == ["probe.asks_again"]


async def test_an_agent_whose_link_is_not_held_here_is_not_judged(desk: Desk) -> None:
    await registered(desk.registry, hello("b", link="elsewhere/1"))
    await desk.proven(A)
    await desk.rounds(9, answering=(A,))
    assert await desk.registry.exclusions(now=desk.clock()) == {}


async def test_who_has_departed_is_not_judged_and_not_excluded_any_more(desk: Desk) -> None:
    await desk.connect(A)
    await desk.rounds(9)
    assert await desk.excluded(A) is LOST
    await desk.node.detach(A, LINK)
    await desk.registry.unlink(A, LINK, now=desk.clock())
    assert await desk.excluded(A) is None
    await desk.rounds(9)
    assert await desk.registry.exclusions(now=desk.clock()) == {}


async def test_the_answer_on_an_earlier_link_proves_nothing_of_the_present_one(
    desk: Desk,
) -> None:
    await desk.proven(A)
    earlier = desk.sent[A][-1]
    assert isinstance(earlier, wire.Ping)
    await desk.connect(A, LinkId("link-2"))
    await desk.node.ponged(A, LINK, earlier.nonce)
    await desk.node.detach(A, LINK)
    assert await desk.excluded(A) is PROBATION
    await desk.answer(A, LinkId("link-2"))
    assert await desk.excluded(A) is None


@pytest.mark.parametrize("nonce", ["", "7", "probe-", "probe-x", "probe-99", "probe--1"])
async def test_what_is_no_answer_to_a_question_proves_nothing(desk: Desk, nonce: str) -> None:
    await desk.connect(A)
    await desk.node.ponged(A, LINK, nonce)
    assert await desk.excluded(A) is PROBATION


async def test_every_round_publishes_the_whole_set_and_wakes_who_waits(desk: Desk) -> None:
    await desk.proven(A)
    await desk.connect(B)
    for _ in range(8):
        generation = desk.registry.generation()
        await desk.rounds(1, answering=(A,))
        assert desk.registry.generation() > generation
    assert await desk.registry.exclusions(now=desk.clock()) == {B: LOST}


async def test_hundreds_that_are_back_at_once_are_published_in_few_steps(desk: Desk) -> None:
    agents = [ClientId(f"agent-{n}") for n in range(300)]
    for agent in agents:
        await desk.proven(agent)
    assert desk.registry.published == 0
    await desk.rounds(LOST_AFTER + 1)
    found = await desk.registry.exclusions(now=desk.clock())
    assert len(found) == 300
    assert set(found.values()) == {LOST}
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(desk.answer(agent))
    assert await desk.registry.exclusions(now=desk.clock()) == {}
    assert desk.registry.published < 30


async def test_an_agent_that_comes_again_is_kept_out_from_when_it_is_registered(
    desk: Desk,
) -> None:
    await desk.proven(A)
    await registered(desk.registry, hello(link="link-2", excluded=PROBATION), now=desk.clock())
    assert await desk.excluded(A) is PROBATION
    # Before its link is attached its former one proves nothing, nor does a round.
    await desk.rounds(1, answering=())
    await desk.node.ponged(A, LINK, "probe-0")
    assert await desk.excluded(A) is PROBATION


async def test_an_idle_agent_that_answers_outlives_ten_windows(desk: Desk) -> None:
    await desk.proven(A)
    await desk.rounds(10 * 4, answering=(A,))
    (client,) = (await desk.registry.snapshot(now=desk.clock())).clients
    assert desk.now - client.seen_at <= WINDOW_S  # though it has said nothing by itself
    assert client.excluded is None


async def test_a_link_whose_agent_was_given_up_is_ended(desk: Desk) -> None:
    await desk.proven(A)
    await desk.proven(B)
    await desk.prober.end_unregistered()
    assert desk.ended == []
    await desk.registry.remove(A, epoch=1)
    await registered(desk.registry, hello("b", link="elsewhere/1"), now=desk.clock())
    await desk.prober.end_unregistered()
    assert desk.ended == [(A, LINK), (B, LINK)]


async def test_while_the_store_is_away_the_agents_are_asked_and_it_is_published_later(
    desk: Desk,
) -> None:
    await desk.proven(A)
    desk.registry.away = True
    for _ in range(LOST_AFTER + 1):
        with pytest.raises(StoreUnavailableError):
            await desk.rounds(1)
    assert await desk.excluded(A) is None
    desk.registry.away = False
    await desk.rounds(1)
    assert await desk.excluded(A) is LOST


async def test_what_has_come_of_the_questions_is_counted_without_ids(desk: Desk) -> None:
    await desk.proven(A)
    await desk.connect(B)
    await desk.rounds(2, answering=(A,))
    assert desk.counted("answered") == 3
    assert desk.counted("not_answered") == 2
    labels = {name for m in desk.metrics.collect() for s in m.samples for name in s.labels}
    assert labels == {"outcome"}
