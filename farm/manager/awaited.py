"""The commands that were sent, while somebody waits for what their agents say."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from farm.core.model import ClientId, LinkId, Namespace
from farm.errors import ClientAbsentError
from farm.manager.evidence import Answer
from farm.protocol import messages as wire
from farm.stores.ports.routes import CoordinatorId


@dataclass(slots=True, kw_only=True, eq=False)
class SentCommand:
    """A command on its way: `answer` is set by a refusal or by its result."""

    command_id: str
    client_id: ClientId
    namespace: Namespace | None
    """Whose evidence is written; None writes none."""
    link: LinkId | None
    """What it was sent on."""
    outlives_link: bool
    """The agent keeps its result over a lost link (P11), so the wait goes on."""
    here: bool = False
    """It is sent and answered over a link that is held here, or not at all."""
    through: CoordinatorId | None = None
    """The other coordinator that has sent it."""
    acknowledged: bool = False
    """The agent has taken it up."""
    answer: asyncio.Future[Answer] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def hear(self, answer: Answer) -> None:
        """Take what its agent says of it."""
        if isinstance(answer, wire.Ack) and answer.refused is None:
            self.acknowledged = True
        elif not self.answer.done():
            self.answer.set_result(answer)

    def fail(self) -> None:
        """Wait no longer, as what it was sent on is gone."""
        if not self.outlives_link and not self.answer.done():
            self.answer.set_exception(ClientAbsentError(f"agent {self.client_id} has gone"))


class Awaited:
    """What is waited for, by the command's id."""

    def __init__(self) -> None:
        self._sent: dict[str, SentCommand] = {}

    def add(self, sent: SentCommand) -> None:
        """Wait for a command, in place of one of the same id."""
        self._sent[sent.command_id] = sent

    def forget(self, sent: SentCommand) -> None:
        """Wait no longer."""
        if self._sent.get(sent.command_id) is sent:
            del self._sent[sent.command_id]
        if sent.answer.done() and not sent.answer.cancelled():
            sent.answer.exception()  # looked at, so that nobody is warned

    def get(self, command_id: str) -> SentCommand | None:
        """Return one that is waited for."""
        return self._sent.get(command_id)

    def of_client(self, client_id: ClientId) -> Sequence[SentCommand]:
        """Return what is waited for of one agent."""
        return [sent for sent in self._sent.values() if sent.client_id == client_id]

    def sent_through_others(self) -> Sequence[SentCommand]:
        """Return what is waited for that other coordinators have sent."""
        return [sent for sent in self._sent.values() if sent.through is not None]
