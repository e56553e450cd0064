"""Brings a database's schema up to date, or says why it can't."""

from sqlalchemy import Connection, inspect, text

from farm.errors import StoreUnavailableError

HEAD = "0011"
"""The revision this version of the farm works with."""


def schema_version(connection: Connection) -> str | None:
    """Return the revision a database is at, or None for an empty one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(
        text("SELECT version_num FROM alembic_version")
    ).scalar_one_or_none()
    return found


def bring_up_to_date(connection: Connection) -> None:
    """Run every revision the database has not had, in the transaction that is open.

    Raises:
        StoreUnavailableError: If the database was made by a newer version of the farm.
    """
    found = schema_version(connection)
    if found == HEAD:
        return
    # Importing Alembic takes longer than opening a database that needs nothing of it.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "farm.stores.ledger:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StoreUnavailableError(
            f"the ledger has schema {found}, which this version of the farm does not know"
            f" (it knows up to {HEAD}): start it with the version that made it, or a later one",
            found=found,
            known=HEAD,
        )
    command.upgrade(config, "head")
