"""With which token each agent has come: whoever holds it speaks for the agent."""

from farm.core.model import ClientId
from farm.stores.ports.sharing import SharedLedger


class AgentTokens:
    """The tokens that agents were let in with.

    Args:
        shared: Remembers them for all coordinators, where there are several.
    """

    def __init__(self, shared: SharedLedger | None = None) -> None:
        self._shared = shared
        self._here: dict[ClientId, str] = {}

    async def note(self, client_id: ClientId, token_id: str) -> None:
        """Remember with which token an agent has been let in."""
        if self._shared is not None:
            await self._shared.note_agent(client_id, token_id)
        self._here[client_id] = token_id

    def owns(self, token_id: str, client_id: ClientId) -> bool:
        """Tell whether the agent connected, or last connected, with this token."""
        return self._here.get(client_id) == token_id

    async def may_act(self, token_id: str, client_id: ClientId) -> bool:
        """Tell whether the agent last connected, here or elsewhere, with this token."""
        if self._shared is None:
            return self.owns(token_id, client_id)
        return await self._shared.token_of_agent(client_id) == token_id
