"""A PostgreSQL of the tests' own: on a private socket, in a folder that is deleted after it."""

import contextlib
import os
import pwd
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
    if found := shutil.which("postgres"):
        return Path(found).parent
    for folder in sorted(_DEBIAN.glob("*/bin"), reverse=True):
        if (folder / "postgres").exists():
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
        initdb = [bin_folder / "initdb", "-D", folder / "data", "-U", _USER, "-A", "trust", "-N"]
        subprocess.run(
            [*initdb, "-E", "UTF8", "--locale", "C"],
            check=True,
            capture_output=True,
            cwd=folder,
            user=user and user.pw_uid,
            group=user and user.pw_gid,
        )
        server = Server(bin_folder, folder, user)
        try:
            server.start()
            yield server
        finally:
            server.kill()


class Server:
    """One that can be killed, and started again over the same data."""

    def __init__(
        self, bin_folder: Path, folder: Path, user: pwd.struct_passwd | None
    ) -> None:
        self._bin = bin_folder
        self._folder = folder
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@/{database}?host={self._folder}"

    def start(self) -> None:
        settings = {**_SETTINGS, "unix_socket_directories": str(self._folder)}
        command = [str(self._bin / "pg_ctl"), "-D", str(self._folder / "data"), "-w", "-s"]
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run([*command, "-o", options, "-l", str(self._folder / "log"), "start"])

    def kill(self) -> None:
        """End all its processes at once."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pid = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
            group = [pid, *_children(pid)]
            for one in group:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement on its own, and return what it says."""
        psql = [str(self._bin / "psql"), "-h", str(self._folder), "-U", _USER, "-d", database]
        return self._run([*psql, "-X", "-q", "-A", "-t", "-c", statement])

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
