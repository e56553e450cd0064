"""An S3-compatible store of the tests' own, in a process of its own, which keeps nothing."""

import contextlib
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

_SCRIPT = """
import signal
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
signal.pause()
"""


@dataclass(frozen=True)
class Server:
    """Anybody's requests are taken, unless `check_keys` says otherwise."""

    process: "subprocess.Popen[str]"
    endpoint: str
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def environment(self) -> dict[str, str]:
        """What whoever uses it has to be told."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }

    def new(self) -> str:
        """Make a bucket, and return the URL of a folder in it."""
        name = f"bucket-{next(self._numbers)}"
        self._ask("PUT", name)
        return f"s3://{name}/some/where"

    def keys(self, url: str) -> list[str]:
        """Return what is in a bucket, wherever in it."""
        return re.findall("<Key>(.*?)</Key>", self._ask("GET", f"{url.split('/')[2]}?list-type=2"))

    def uploads(self, url: str) -> int:
        """Return how many uploads of parts have been begun there and not ended."""
        return self._ask("GET", f"{url.split('/')[2]}?uploads").count("<Upload>")

    def check_keys(self) -> None:
        """Take no requests from now on, for nobody has a key."""
        self._ask("POST", "moto-api/reset-auth", b"0")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def _ask(self, method: str, path: str, data: bytes | None = None) -> str:
        request = urllib.request.Request(
            f"{self.endpoint}/{path}", data, {"Content-Type": "text/plain"}, method=method
        )
        with urllib.request.urlopen(request) as answer:
            return str(answer.read().decode())


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Run a server while in the context."""
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Server(process, f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.kill()
