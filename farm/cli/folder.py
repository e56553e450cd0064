"""The output folder of a job: `items.jsonl`, `items.csv`, `job.json` and `artifacts/`."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from farm.cli import output
from farm.cli.exits import ExitCode
from farm.cli.running import CommandError
from farm.protocol.resources import ArtifactView, JobDetail
from farm.sdk import FarmClient

_PAUSE_FACTOR = 10.0
_OURS = ("items.jsonl", "items.csv", "job.json")


def check(folder: Path, *, force: bool) -> None:
    """Refuse a folder that has something in it, unless forced; make it where there is none.

    Raises:
        CommandError: With `USAGE`.
    """
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is not a folder", ExitCode.USAGE)
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise CommandError(
            f"{folder} is not empty; use another folder, or --force to write over it",
            ExitCode.USAGE,
        )
    # Now, and not when the job has run: nowhere to put what it produced is a wrong command line.
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{folder} can't be made: {error.strerror}", ExitCode.USAGE) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{folder} can't be written to", ExitCode.USAGE)


def prepare(folder: Path) -> None:
    """Remove what an earlier run left in the folder; anything else stays."""
    if (folder / "job.json").is_file():
        shutil.rmtree(folder / "artifacts", ignore_errors=True)
        for name in _OURS:
            (folder / name).unlink(missing_ok=True)


class ResultFolder:
    """Keeps a folder like the job it belongs to. Every file is whole at any moment."""

    def __init__(self, folder: Path, client: FarmClient) -> None:
        self._folder = folder
        self._client = client
        self._items_of: tuple[int, ...] = ()
        self._artifacts: set[str] = set()
        self._not_before = 0.0

    async def update(self, job: JobDetail) -> None:
        """Write what is new, but spend no more than a small part of the time on it."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        counts = tuple(attempt.item_count for attempt in job.history)
        if counts != self._items_of and began >= self._not_before:
            await self._write_items(job.id)
            self._items_of = counts
            self._not_before = loop.time() + (loop.time() - began) * _PAUSE_FACTOR
        if job.artifact_count > len(self._artifacts):
            await self._fetch_artifacts(job.id)
        await self._write_job(job)

    async def complete(self, job: JobDetail) -> None:
        """Write everything there is, the CSV too."""
        await self._write_items(job.id)
        await _replace(self._folder / "items.csv", self._client.items_csv(job.id))
        await self._fetch_artifacts(job.id, last=True)
        await self._write_job(job)

    async def _write_items(self, job_id: str) -> None:
        async def encoded() -> AsyncIterator[bytes]:
            async for item in self._client.items(job_id):
                yield (output.to_json(item) + "\n").encode()

        await _replace(self._folder / "items.jsonl", encoded())

    async def _write_job(self, job: JobDetail) -> None:
        async def encoded() -> AsyncIterator[bytes]:
            yield (output.to_json(output.of_models(job), indent=2) + "\n").encode()

        await _replace(self._folder / "job.json", encoded())

    async def _fetch_artifacts(self, job_id: str, *, last: bool = False) -> None:
        for artifact in await self._client.artifacts(job_id):
            if last and artifact.state == "failed":
                output.say(missing_because(artifact))
            if artifact.state == "ready" and artifact.name not in self._artifacts:
                await fetch(self._client, job_id, artifact.name, self._folder / "artifacts")
                self._artifacts.add(artifact.name)


def missing_because(artifact: ArtifactView) -> str:
    """Say why a file that is listed can't be had."""
    why = f": {output.plain(artifact.detail)}" if artifact.detail else ""
    return f"{output.plain(artifact.name)} is {artifact.state}{why}"


async def fetch(client: FarmClient, job_id: str, name: str, folder: Path) -> Path:
    """Download one artifact into a folder and return where it is.

    Raises:
        CommandError: If the farm gave it a name that would lead out of the folder.
    """
    if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise CommandError(f"the farm names an artifact {output.plain(name)!r}; not written")
    path = folder / name
    await _replace(path, client.artifact(job_id, name))
    return path


async def _replace(path: Path, chunks: AsyncIterator[bytes]) -> None:
    """Write a file beside its place and move it there when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.parent / f".{path.name}.{os.getpid()}"
    try:
        with new.open("wb") as file:
            async for chunk in chunks:
                file.write(chunk)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
