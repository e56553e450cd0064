"""Handing in a file as an agent does."""

from farm.stores.records import Attempt
from tests.api.stack import Stack


async def upload(stack: Stack, attempt: Attempt, name: str, content: bytes) -> None:
    token = f"{attempt.token.store_epoch}.{attempt.token.counter}"
    url = f"{stack.url}/v1/attempts/{attempt.attempt_id}/artifacts/{name}"
    async with stack.http.put(
        url, data=content, headers=stack.as_agent(**{"X-Tabfarm-Token": token})
    ) as response:
        assert response.status < 300, await response.text()
