"""The ledger in an SQL database: jobs, attempts and their evidence, durable.

`SqlLedger` is the port's implementation; what it does in a transaction is in `jobs`, `attempts`,
`evidence`, `files` and `tokens`, as plain functions over a SQLAlchemy connection with
dialect-neutral statements. `SqlDeployments`, `SqlIdentities` and `SqlNamespaces` keep their things
beside it, `SqlBacklog` reads the queue as a whole, and `SqlRetention` deletes jobs. `sqlite` and
`postgres` decide how a transaction is run; the latter is imported by who needs it, with its driver.
"""

from farm.stores.ledger.backlog import SqlBacklog
from farm.stores.ledger.deployments import SqlDeployments
from farm.stores.ledger.ledger import SqlLedger
from farm.stores.ledger.lending import SqlIdentities
from farm.stores.ledger.namespaces import SqlNamespaces
from farm.stores.ledger.retention import SqlRetention
from farm.stores.ledger.sqlite import SqliteDatabase

__all__ = [
    "SqlBacklog",
    "SqlDeployments",
    "SqlIdentities",
    "SqlLedger",
    "SqlNamespaces",
    "SqlRetention",
    "SqliteDatabase",
]
