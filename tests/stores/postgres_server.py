"""A PostgreSQL of the tests' own: on a private socket, in a folder that is deleted after it."""

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "postgres"
"""Whom it runs as where the tests are run by root, whom it refuses."""
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",  # what is killed here is processes, not machines
    "full_page_writes": "off",
    "max_connections": "60",
    "log_min_messages": "fatal",
}


class NoServerError(Exception):
    """There is no server to start."""


def programs() -> Path:
    """Find the folder of the server's programs."""
    on_path = [Path(found).parent] if (found := shutil.which("postgres")) else []
    for folder in [*sorted(_DEBIAN.glob("*/bin"), reverse=True), *on_path]:
        if all((folder / name).exists() for name in ("postgres", "initdb", "pg_ctl", "psql")):
            return folder
    raise NoServerError("install postgresql")


@contextlib.contextmanager
def running() -> Iterator["Server"]:
    """Run a server while in the context."""
    bin_folder, user = programs(), _user()
    with tempfile.TemporaryDirectory(prefix="tabfarm-pg-", dir="/tmp") as name:
        folder = Path(name)
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        server = Server(bin_folder, folder, user)
        try:
            server.make()
            server.start()
            yield server
        finally:
            server.kill()


class Server:
    """One that can be killed, and started again over the same data."""

    def __init__(self, bin_folder: Path, folder: Path, user: pwd.struct_passwd | None) -> None:
        self._bin = bin_folder
        self._folder = folder
        self._user = user

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@/{database}?host={self._folder}"

    def make(self) -> None:
        initdb = [str(self._bin / "initdb"), "-D", str(self._folder / "data"), "-U", _USER]
        self._run([*initdb, "-A", "trust", "-N", "-E", "UTF8", "--locale", "C"])

    def start(self) -> None:
        settings = {**_SETTINGS, "unix_socket_directories": str(self._folder)}
        command = [str(self._bin / "pg_ctl"), "-D", str(self._folder / "data"), "-w", "-s"]
        # Of one that was killed; where nobody reaps it, its number still looks alive.
        for lock in (self._lock, self._folder / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run([*command, "-o", options, "-l", str(self._folder / "log"), "start"])

    def kill(self) -> None:
        """End all its processes at once."""
        ends = []
        for one in self._pids():
            with contextlib.suppress(ProcessLookupError):  # a session that has just ended
                ends.append(os.pidfd_open(one))
        for end in ends:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(end, signal.SIGKILL)
        for end in ends:
            select.select([end], [], [], 10)
            os.close(end)
        # Its number may be another's from now on.
        self._lock.unlink(missing_ok=True)

    @property
    def folder(self) -> Path:
        """Where its socket is."""
        return self._folder

    def signal(self, number: signal.Signals) -> None:
        """Stop all its processes, or let them go on."""
        for one in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, number)

    @property
    def _lock(self) -> Path:
        return self._folder / "data" / "postmaster.pid"

    def _pids(self) -> list[int]:
        """Return its processes, the first of them first; none where it does not run."""
        try:
            pid = int(self._lock.read_text().split()[0])
            return [pid, *_children(pid)]
        except (FileNotFoundError, ProcessLookupError):
            return []

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement on its own, and return what it says."""
        psql = [str(self._bin / "psql"), "-h", str(self._folder), "-U", _USER, "-d", database]
        return self._run([*psql, "-X", "-q", "-A", "-t", "-c", statement])

    def definitions(self, database: str) -> set[str]:
        """Return what a database is made of, in whatever order, but for Alembic's table."""
        dump = [str(self._bin / "pg_dump"), "-h", str(self._folder), "-U", _USER, "-s", "-O"]
        made = self._run([*dump, "-T", "alembic_version", database])
        return {line.strip(" ,") for line in made.splitlines() if not line.startswith(("--", "\\"))}

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            cwd=self._folder,
            user=self._user and self._user.pw_uid,
            group=self._user and self._user.pw_gid,
        )
        return done.stdout.strip()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_USER)
    except KeyError:
        raise NoServerError(f"there is no user {_USER} to run it as: install postgresql") from None
