"""Agents as child processes: started, watched, started again, and ended for certain."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import structlog

from farm.cli.running import CommandError

AGENT_COMMAND = (sys.executable, "-m", "agent.cli", "run")
_STDERR = 2
_USAGE = 2
"""What an agent ends with that can't read its settings: it won't the next time either."""
_STABLE_S = 30.0
_BACKOFF_MAX_S = 10.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Employer(Protocol):
    """The coordinator, as far as the children's keeper needs it."""

    @property
    def url(self) -> str:
        """Where agents dial in."""
        ...

    async def mint_agent_token(self, name: str) -> str:
        """Make a token of scope agent."""
        ...

    async def agent_ended(self, client_id: str) -> None:
        """Take note that the process of an agent no longer exists."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """How the agents are started."""

    prefix: str = ""
    """Before the agents' names, where agents of other farms would have the same."""
    headed: bool = False
    slow_mo_ms: int = 0
    keep_open: bool = False
    """Leave a headed window open when its job has ended, until the agent ends."""
    command: tuple[str, ...] = AGENT_COMMAND
    log_dir: Path | None = None
    """What an agent said since its last start is in a file here; None lets it speak on stderr."""
    slots: int | None = None
    """How many jobs each may run at once, unless AGENT_SLOTS says; None leaves it to the agent."""
    give_up_after: int | None = None
    """End with `AgentsUnusableError` when one agent fails this often in a row; None never does, but
    for one that can't read its settings."""
    backoff_s: float = 0.5
    """The wait before the first new start; doubled for each further one in a row."""


class AgentsUnusableError(CommandError):
    """An agent can't be kept running; the text has the last it said."""


@dataclass(slots=True)
class _Child:
    process: asyncio.subprocess.Process
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """How many agents of which kind."""

    browsers: int = 0
    consoles: int = 0

    def named(self) -> dict[str, str]:
        """Return the names of all, with their kinds as `AGENT_TYPE` says them."""
        browsers = {f"agent-{number}": "browser" for number in range(1, self.browsers + 1)}
        return browsers | {f"console-{number}": "console" for number in range(1, self.consoles + 1)}


class Children:
    """Keeps agents `agent-1` … and `console-1` … running for as long as `run` runs."""

    def __init__(self, employer: Employer, options: AgentOptions) -> None:
        self._employer = employer
        self._options = options
        self._running: dict[str, _Child] = {}
        self._stopping = asyncio.Event()

    @property
    def pids(self) -> Mapping[str, int]:
        """The processes that run now, by client_id."""
        return {name: child.process.pid for name, child in self._running.items()}

    async def run(self, staff: Staff) -> None:
        """Keep so many agents running until `stop`; if cancelled, kill them first.

        Raises:
            ExceptionGroup: Of `AgentsUnusableError`, where an agent can't read its settings, or the
                options say when to give up.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for plain, kind in staff.named().items():
                    name = f"{self._options.prefix}{plain}"
                    group.create_task(self._keep(name, kind), name=f"keep {name}")
        finally:
            self.kill()

    async def stop(self, grace_s: float) -> None:
        """Ask all agents to end, and kill those that still run after `grace_s`."""
        self._stopping.set()
        for child in self._running.values():
            _signal(child, signal.SIGTERM)
        try:
            async with asyncio.timeout(grace_s):
                for child in list(self._running.values()):
                    await child.ended.wait()
        except TimeoutError:
            log.warning("agent.killed", agents=sorted(self._running))
            self.kill()

    def kill(self) -> None:
        """Kill whatever still runs, at once, with everything in its process group."""
        self._stopping.set()
        for child in self._running.values():
            _signal(child, signal.SIGKILL)

    async def _keep(self, name: str, kind: str) -> None:
        token = await self._employer.mint_agent_token(name)
        loop = asyncio.get_running_loop()
        failures = 0
        while not self._stopping.is_set():
            began = loop.time()
            code = await self._live(name, kind, token)
            if self._stopping.is_set():
                return
            failures = 1 if loop.time() - began > _STABLE_S else failures + 1
            log.warning("agent.ended", agent=name, code=code, failures=failures)
            if code == _USAGE or failures == self._options.give_up_after:
                raise AgentsUnusableError(self._last_words(name) or f"{name} ended with {code}")
            pause = min(self._options.backoff_s * 2 ** (failures - 1), _BACKOFF_MAX_S)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _live(self, name: str, kind: str, token: str) -> int:
        """Start one agent and return its exit code when it has ended."""
        child = _Child(await self._spawn(name, kind, token))
        self._running[name] = child
        log.info("agent.started", agent=name, pid=child.process.pid)
        if self._stopping.is_set():
            # It came too late for `stop` to see it, and has nothing to lose yet.
            _signal(child, signal.SIGKILL)
        try:
            return await child.process.wait()
        finally:
            if child.process.returncode is None:
                _signal(child, signal.SIGKILL)
                await child.process.wait()
            del self._running[name]
            child.ended.set()
            await self._employer.agent_ended(name)

    async def _spawn(self, name: str, kind: str, token: str) -> asyncio.subprocess.Process:
        """Start a process that can read its token from a pipe, and from nowhere else.

        It gets a process group of its own: a Ctrl-C in the terminal is ours to pass on.
        """
        reading, writing = os.pipe()
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(token.encode())
            with self._open_log(name) as speaking:
                return await asyncio.create_subprocess_exec(
                    *self._options.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=speaking or _STDERR,
                    stderr=speaking,
                    pass_fds=(reading,),
                    env=self._environment(name, kind, reading),
                    start_new_session=True,
                )
        finally:
            os.close(reading)

    def _environment(self, name: str, kind: str, token_fd: int) -> dict[str, str]:
        """Our own environment without what belongs to the farm, its secrets above all."""
        ours = os.environ  # noqa: TID251 - handed on, not read as settings
        # Where files are kept in a bucket its credentials are the farm's alone.
        farms = ("FARM_", "AGENT_TOKEN", *(("AWS_",) if "FARM_ARTIFACTS__URL" in ours else ()))
        inherited = {key: value for key, value in ours.items() if not key.startswith(farms)}
        told = {
            "AGENT_HEADED": "1" if self._options.headed else None,
            "AGENT_SLOW_MO_MS": str(self._options.slow_mo_ms or "") or None,
            "AGENT_KEEP_OPEN": "1" if self._options.keep_open else None,
        }
        # Flows share the cores by themselves: they mostly wait.
        if self._options.slots is not None and kind == "browser":
            inherited.setdefault("AGENT_SLOTS", str(self._options.slots))
        return {
            **inherited,
            "FARM_URL": self._employer.url,
            "AGENT_CLIENT_ID": name,
            "AGENT_TYPE": kind,
            "AGENT_TOKEN_FD": str(token_fd),
            "AGENT_EXIT_WITH_PARENT": "1",
            # By the time of SIGTERM the farm has drained already.
            "AGENT_DRAIN_S": "0",
            **{key: value for key, value in told.items() if value is not None},
        }

    def _open_log(self, name: str) -> contextlib.AbstractContextManager[IO[bytes] | None]:
        if self._options.log_dir is None:
            return contextlib.nullcontext()
        self._options.log_dir.mkdir(parents=True, exist_ok=True)
        return (self._options.log_dir / f"{name}.log").open("wb")

    def _last_words(self, name: str) -> str:
        if self._options.log_dir is None:
            return ""
        lines = (self._options.log_dir / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-5:])


def _signal(child: _Child, number: signal.Signals) -> None:
    """Signal a child: SIGKILL goes to its whole process group, anything else to it alone."""
    if child.process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        if number is signal.SIGKILL:
            os.killpg(child.process.pid, number)
        else:
            child.process.send_signal(number)
