"""A coordinator that is stopped in the middle of a transaction, and what it does when it goes on.

`python -m tests.stores.stopped URL LEASE_S HOW`. It says `stopping`, and stops itself when it has
begun job `j1`, or claimed it, and not committed that; or has begun it and said half of what comes
next, which the server takes for a session at work. When it goes on it says what has come of it, and
of beginning `j3`, in this life and in another.
"""

import asyncio
import os
import signal
import sys

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from farm.core.model import ClientId, ContextId, Token
from farm.errors import StoreUnavailableError
from farm.stores.ledger import attempts, claiming
from farm.stores.ledger.postgres import PostgresDatabase, Share
from tests.stores.ledger_rows import T0

BEGINS, CLAIMS, SAYS_HALF = "begins", "claims", "says-half"


def start_of(job_id: str) -> attempts.Start:
    return attempts.Start(
        job_id=job_id,
        attempt_id=f"of the stopped {job_id}",
        command_id="c",
        client_id=ClientId("agent-2"),
        epoch=1,
        context_id=ContextId("tab-2"),
        token=Token(store_epoch=2, counter=1),
    )


async def stopped(url: str, lease_s: float, how: str) -> None:
    database = PostgresDatabase(url, Share(name="stopped", lease_s=lease_s))
    await database.open()
    # A start may take long; from here on it has a lease as one that dispatches.
    await database.begin_again()

    def begins(connection: Connection, job_id: str) -> bool:
        return attempts.start(connection, start_of(job_id), T0, database.life) is not None

    def stops(connection: Connection) -> None:
        assert database.life is not None
        if how == CLAIMS:
            assert claiming.claim(connection, "j1", database.life)
        else:
            assert begins(connection, "j1")
        if how == SAYS_HALF:
            session = connection.connection.driver_connection
            assert session is not None
            await_only(session.prepare("SELECT 1"))
        print("stopping", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)

    try:
        await database.write(stops)
        print("written", flush=True)
    except StoreUnavailableError:
        print("refused", flush=True)
    try:
        await database.write(lambda connection: begins(connection, "j3"))
        print("it lives", flush=True)
    except StoreUnavailableError:
        print("its life is over", flush=True)
    await database.begin_again()
    print(await database.write(lambda connection: begins(connection, "j3")), flush=True)
    await database.close()


if __name__ == "__main__":
    asyncio.run(stopped(sys.argv[1], float(sys.argv[2]), sys.argv[3]))
