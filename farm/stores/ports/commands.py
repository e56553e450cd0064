"""The port of the evidence of commands."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from farm.core.commands import ClientDelivery, CommandEvidence, Mark, Retention
from farm.core.model import ClientId, Instant, Namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """No evidence of the command is retained."""

    expired: bool
    """It is known to have been there. Where False it never was, or was admitted before `since`."""
    since: Instant
    """Of every command admitted later than this it is known at least whether there was one."""


class CommandLog(Protocol):
    """What is known of each command, as long as `retention` says.

    Each method is one atomic step, so that of two who would send a command and withdraw it, one
    does.
    """

    @property
    def retention(self) -> Retention:
        """What is retained."""
        ...

    async def admit(self, evidence: CommandEvidence) -> bool:
        """Begin with a command that is admitted; False if the namespace has used its id before.

        Lets go of what is beyond the retention, at the time it was admitted.
        """
        ...

    async def mark(self, namespace: Namespace, command_id: str, mark: Mark) -> bool:
        """Note one step; False, changing nothing, if it can't follow or nothing is retained."""
        ...

    async def find(
        self, namespace: Namespace, command_id: str, *, now: Instant
    ) -> CommandEvidence | Forgotten:
        """Return what is known of a command."""
        ...

    async def deliveries(
        self, namespace: Namespace, *, now: Instant, failed_since: Instant
    ) -> Mapping[ClientId, ClientDelivery]:
        """Count what is retained, by agent; an agent with nothing to count may be missing."""
        ...

    async def forget(self, namespace: Namespace, *, now: Instant) -> None:
        """Let go of all that is known of a namespace's commands, their ids included."""
        ...
