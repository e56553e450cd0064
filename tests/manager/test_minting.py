"""What is minted for agents is minted for those that are in, whoever lets them in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farm.core.admission import Claim, Enrolment, Refusal, RefusedFor
from farm.core.model import Capacity, Client, ClientId, ClientType, Instant, Namespace, link_of
from farm.manager.admission import Knock, Registration, Registrations
from farm.manager.namespaces import NamespaceBook
from farm.stores.ledger import SqliteDatabase, SqlNamespaces
from farm.stores.memory import MemoryRegistry

NOW = Instant(1_000.0)
NAMES = tuple(Namespace(f"n{number}") for number in range(8))
BEARER = Enrolment(token_id="tok", namespaces=frozenset(NAMES))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    database = SqliteDatabase(tmp_path / "farm.db")
    await database.open()
    yield database
    await database.close()


def knock(coordinator: str, namespace: Namespace) -> Knock:
    """An agent of one name; each namespace is another instance's."""
    client = Client(
        client_id=ClientId("agent"),
        client_type=ClientType.BROWSER,
        link=link_of(coordinator, namespace),
        epoch=0,
        instance=namespace,
        namespaces=(namespace,),
        metadata={},
        capacity=Capacity(max_concurrency=3, max_windows=4),
        seen_at=NOW,
    )
    return Knock(
        claim=Claim(
            client_id=client.client_id,
            namespaces=client.namespaces,
            protocol=1,
            task_queue="default",
            node=None,
        ),
        client=client,
        epoch_name="browser-1",
        highest_token=None,
        transport="websocket",
    )


async def test_of_two_coordinators_agents_with_one_name_only_the_one_that_is_in_has_minted(
    database: SqliteDatabase,
) -> None:
    registry = MemoryRegistry(store_epoch=1, presence_window_s=10.0)
    told: list[Namespace] = []
    books = [
        NamespaceBook(
            SqlNamespaces(database),
            lambda: NOW,
            minting="open",
            tell=lambda _, namespace, __: told.append(namespace),
        )
        for _ in range(2)
    ]
    doors = [Registrations(registry, lambda: NOW, gate=book) for book in books]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(doors[n % 2].register(knock(f"farm-{n % 2}", name), BEARER))
            for n, name in enumerate(NAMES)
        ]
    ends = [task.result() for task in tasks]
    (entered,) = [one for one in ends if isinstance(one, Registration)]
    refused = [one for one in ends if isinstance(one, Refusal)]
    assert {one.reason for one in refused} == {RefusedFor.CLIENT_ID_IN_USE}
    assert len(refused) == len(NAMES) - 1
    assert tuple(record.name for record in await books[0].all()) == entered.client.namespaces
    assert tuple(told) == entered.client.namespaces
