"""Where the parties of a storm are: all on loopback, or each at the end of cables of its own.

There packets can vanish, with nobody told of it. Such places are network namespaces without names:
when the storm and all that it has started have ended, however they did, nothing is left of them.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count

_LOOPBACK = "127.0.0.1"
_CLONE_NEWNET = 0x40000000
_MIDDLE = 1
_kernel = ctypes.CDLL(None, use_errno=True)


class Segment(IntEnum):
    """What a network carries."""

    FRONT = 1
    """Between agents, those who ask, and coordinators."""
    BACK = 2
    """Between coordinators and what they share."""
    WORLD = 3
    """Between agents and sites."""


class ImpossibleError(Exception):
    """Why there are no namespaces here."""


class Namespace:
    """A network of this process's own, in which there is nothing yet."""

    def __init__(self) -> None:
        with _returning():
            _done(_kernel.unshare(_CLONE_NEWNET))
            self._file = _current()

    @property
    def path(self) -> str:
        return f"/proc/{os.getpid()}/fd/{self._file}"

    @contextmanager
    def inside(self) -> Iterator[None]:
        """In the block this thread is in it, and what it starts is, too."""
        with _returning():
            _enter(self._file)
            yield

    def ip(self, *commands: str) -> None:
        """Have its devices changed. Raises ImpossibleError."""
        with self.inside():
            done = subprocess.run(
                ["ip", "-batch", "-"], input="\n".join(commands), capture_output=True, text=True
            )
        if done.returncode:
            raise ImpossibleError(f"ip: {done.stderr.strip()}")

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plug:
    """Where a place is plugged in to a segment."""

    middle: Namespace
    port: str
    segment: Segment
    address: str

    def pull(self) -> None:
        """Let packets vanish, both ways; both ends stay up."""
        self.middle.ip(f"link set {self.port} nomaster")

    def push(self) -> None:
        self.middle.ip(f"link set {self.port} master {self.segment.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a party runs."""

    plugs: Mapping[Segment, Plug] = field(default_factory=dict)
    namespace: Namespace | None = None

    def address(self, segment: Segment) -> str:
        """Where it listens for those who come by this segment."""
        plug = self.plugs.get(segment)
        return _LOOPBACK if plug is None else plug.address

    def inside(self) -> AbstractContextManager[None]:
        """What is started in the block is at this place."""
        return nullcontext() if self.namespace is None else self.namespace.inside()


class Loopback:
    """All are in one place, and no packet vanishes."""

    def middle(self, segment: Segment) -> str:
        """Where whoever runs the storm listens, and all the cables begin."""
        return _LOOPBACK

    def place(self, *segments: Segment) -> Place:
        """Make a place on these segments."""
        return Place()


class Apart(Loopback):
    """Each in a namespace of its own, plugged in to bridges in the middle."""

    def __init__(self, middle: Namespace, stack: ExitStack) -> None:
        self._middle = middle
        self._stack = stack
        self._numbers = count(_MIDDLE + 1)

    def middle(self, segment: Segment) -> str:
        return _address(segment, _MIDDLE)

    def place(self, *segments: Segment) -> Place:
        number, namespace = next(self._numbers), self._made()
        namespace.ip("link set lo up")
        return Place(
            plugs={segment: self._plugged(namespace, segment, number) for segment in segments},
            namespace=namespace,
        )

    def _made(self) -> Namespace:
        namespace = Namespace()
        self._stack.callback(namespace.close)
        return namespace

    def _plugged(self, namespace: Namespace, segment: Segment, number: int) -> Plug:
        port, device, address = f"p{segment}-{number}", f"eth{segment}", _address(segment, number)
        self._middle.ip(
            f"link add {port} type veth peer name {device} address {_mac(segment, number)}"
            f" netns {namespace.path}",
            f"link set {port} up master {segment.name}",
            f"neigh add {address} lladdr {_mac(segment, number)} dev {segment.name} nud permanent",
        )
        # Whom they know they don't ask for: what is sent while nobody hears it is not refused.
        namespace.ip(
            f"address add {address}/24 dev {device}",
            f"link set {device} up",
            f"neigh add {_address(segment, _MIDDLE)} lladdr {_mac(segment, _MIDDLE)} dev {device}"
            " nud permanent",
        )
        return Plug(middle=self._middle, port=port, segment=segment, address=address)


@contextmanager
def apart() -> Iterator[Apart]:
    """Be in the middle of a network of namespaces for as long as the block lasts.

    Raises:
        ImpossibleError: If none can be made here.
    """
    with ExitStack() as stack:
        try:
            middle = Namespace()
            stack.callback(middle.close)
            middle.ip("link set lo up", *(line for segment in Segment for line in _bridge(segment)))
        except OSError as error:
            raise ImpossibleError(f"no network namespaces: {error.strerror}") from error
        stack.enter_context(middle.inside())
        yield Apart(middle, stack)


def _bridge(segment: Segment) -> list[str]:
    return [
        f"link add {segment.name} address {_mac(segment, _MIDDLE)} type bridge",
        f"address add {_address(segment, _MIDDLE)}/24 dev {segment.name}",
        f"link set {segment.name} up",
    ]


def _address(segment: Segment, number: int) -> str:
    return f"10.77.{segment}.{number}"


def _mac(segment: Segment, number: int) -> str:
    return f"02:00:00:00:{segment:02x}:{number:02x}"


@contextmanager
def _returning() -> Iterator[None]:
    before = _current()
    try:
        yield
    finally:
        _enter(before)
        os.close(before)


def _current() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _enter(namespace: int) -> None:
    _done(_kernel.setns(namespace, _CLONE_NEWNET))


def _done(answer: int) -> None:
    if answer:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
