"""What a coordinator does for the others: sends their commands, and hands the answers back."""

from collections import OrderedDict
from dataclasses import dataclass

from farm.core.model import ClientId, Namespace
from farm.errors import ClientAbsentError
from farm.manager.carrier import Carrier
from farm.manager.evidence import Answer
from farm.manager.letters import Order, Reply, Signal, Word
from farm.protocol import messages as wire
from farm.stores.ports.routes import CoordinatorId, Routes

_FORWARDED = 10_000
"""So many commands of others are remembered, the latest; the answers to older ones go to all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forwarded:
    sender: CoordinatorId
    client_id: ClientId
    namespace: Namespace | None


class Forwarding:
    """The commands of others that agents of this coordinator's have in hand.

    Its methods raise StoreUnavailableError if a letter can't be posted.
    """

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._forwarded: OrderedDict[str, _Forwarded] = OrderedDict()

    def forwards(self, command_id: str) -> bool:
        """Tell whether a command was sent for another coordinator and has not ended."""
        return command_id in self._forwarded

    async def pass_on(self, node: Carrier, client_id: ClientId, answer: Answer) -> bool:
        """Hand an answer to the coordinator that waits for it; False if none is known to.

        Where none is known all are asked: one may have begun to wait in an earlier life, or while
        the agent had its link elsewhere.
        """
        known = self._forwarded.get(answer.command_id)
        if known is None or known.client_id != client_id:
            letter = Reply(client_id=client_id, noted=False, answer=answer)
            await self._routes.post_others(letter.model_dump_json(exclude_none=True))
            return False
        if known.namespace is not None:
            await node.note(known.namespace, answer)
        letter = Reply(client_id=client_id, noted=True, answer=answer)
        posted = await self._routes.post(known.sender, letter.model_dump_json(exclude_none=True))
        if isinstance(answer, wire.Result) or answer.refused is not None:
            self._forwarded.pop(answer.command_id, None)
        return posted

    async def order(self, node: Carrier, order: Order) -> None:
        """Send another coordinator's command, and say whether it was sent."""
        command_id = order.command.command_id
        client_id, sender = ClientId(order.client_id), CoordinatorId(order.sender)
        namespace = None if order.namespace is None else Namespace(order.namespace)
        # Before it is sent: its answer may be quicker than we are.
        self._forwarded[command_id] = _Forwarded(
            sender=sender, client_id=client_id, namespace=namespace
        )
        if len(self._forwarded) > _FORWARDED:
            self._forwarded.popitem(last=False)
        try:
            link = await node.deliver(client_id, order.command, namespace)
            word = Word(command_id=command_id, link=link)
        except ClientAbsentError as error:
            self._forwarded.pop(command_id, None)
            word = Word(command_id=command_id, absent=error.detail)
        await self._routes.post(sender, word.model_dump_json(exclude_none=True))

    async def signal(self, node: Carrier, signal: Signal) -> None:
        """Send another coordinator's message, and say whether it was sent."""
        try:
            link = await node.tell_here(ClientId(signal.client_id), signal.message)
            word = Word(command_id=signal.signal_id, link=link)
        except ClientAbsentError as error:
            word = Word(command_id=signal.signal_id, absent=error.detail)
        sender = CoordinatorId(signal.sender)
        await self._routes.post(sender, word.model_dump_json(exclude_none=True))
