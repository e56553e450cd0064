"""The history of the schema leads to the schema."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from farm.errors import StoreUnavailableError
from farm.stores.ledger import SqliteDatabase, SqlLedger, migrate, schema
from farm.stores.ledger.postgres import PostgresDatabase
from tests.stores.conftest import Databases


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A database that was opened once."""
    path = tmp_path / "farm.db"
    ledger = SqlLedger(SqliteDatabase(path))
    await ledger.open()
    await ledger.close()
    return path


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def definitions(path: Path) -> set[tuple[str, ...]]:
    """What SQLite was told to make, whatever the order of the parts of each statement."""
    found = rows(path, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    made = (" ".join(str(sql).split()) for (sql,) in found if "alembic_version" not in str(sql))
    return {tuple(sorted(part.strip(" )") for part in sql.split(","))) for sql in made}


async def test_the_migrated_schema_is_the_declared_one(path: Path) -> None:
    engine = create_engine(make_url(f"sqlite:///{path}"))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


async def test_the_migrated_schema_has_the_very_definitions_of_the_declared_one(
    path: Path, tmp_path: Path
) -> None:
    """Also what Alembic does not compare: partial indices, tables without row numbers."""
    declared = tmp_path / "declared.db"
    engine = create_engine(make_url(f"sqlite:///{declared}"))
    schema.metadata.create_all(engine)
    engine.dispose()
    assert definitions(path) == definitions(declared)


def test_the_farm_works_with_the_last_revision_and_there_is_one_line_of_them() -> None:
    config = Config()
    config.set_main_option("script_location", "farm.stores.ledger:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [migrate.HEAD]


async def test_opening_again_migrates_nothing_and_keeps_everything(path: Path) -> None:
    before = definitions(path)
    ledger = SqlLedger(SqliteDatabase(path))
    assert await ledger.open() == 2
    await ledger.close()
    assert definitions(path) == before


async def test_a_database_of_a_newer_version_is_refused_by_name_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    ledger = SqlLedger(SqliteDatabase(path))
    with pytest.raises(StoreUnavailableError, match=r"schema 9999.*knows up to"):
        await ledger.open()
    assert rows(path, "SELECT version_num FROM alembic_version") == [("9999",)]
    assert rows(path, "SELECT value FROM meta WHERE name = 'store_epoch'") == [(1,)]


async def test_a_migration_that_fails_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All revisions are one transaction, so a start that is killed half-way can be repeated."""
    path = tmp_path / "farm.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE tokens (mine TEXT)")
    ledger = SqlLedger(SqliteDatabase(path))
    with pytest.raises(StoreUnavailableError, match="tokens already exists"):
        await ledger.open()
    tables = rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    assert tables == [("tokens",)]


async def test_on_postgres_the_migrated_schema_is_the_declared_one(postgres: Databases) -> None:
    url = postgres.new()
    ledger = SqlLedger(PostgresDatabase(url))
    await ledger.open()
    await ledger.close()
    postgres.server.sql("CREATE DATABASE declared")
    engine = create_async_engine(driven(postgres.server.url("declared")))
    async with engine.begin() as connection:
        await connection.run_sync(schema.metadata.create_all)
    await engine.dispose()
    migrated = create_async_engine(driven(url))
    async with migrated.connect() as connection:
        assert await connection.run_sync(differences) == []
    await migrated.dispose()
    name = str(make_url(url).database)
    assert postgres.server.definitions(name) == postgres.server.definitions("declared")


def driven(url: str) -> URL:
    return make_url(url).set(drivername="postgresql+asyncpg")


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, schema.metadata))
