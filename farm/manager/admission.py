"""The one way in for agents, whatever they dial by, and the record of each that is in."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import prometheus_client

from farm.clock import Clock
from farm.core.admission import Claim, Enrolment, Refusal, RefusedFor, reject
from farm.core.model import Client, ClientId, LinkId, Namespace, Token
from farm.core.pools import Exclusion
from farm.core.reservation import Denial
from farm.manager.refusals import AdmissionAudit, Tell
from farm.protocol import messages as wire
from farm.stores.ports.cluster_events import EventKind
from farm.stores.ports.connections import ConnectionRegistry

SPOKEN = range(1, wire.PROTOCOL + 1)
DISCONNECT = "disconnect"


class NamespaceGate(Protocol):
    """Lets agents serve namespaces, or makes these."""

    async def missing(
        self, namespaces: tuple[Namespace, ...], node: str | None
    ) -> tuple[Namespace, ...] | Refusal:
        """Return which of them are to be minted for an agent, or why it may not serve them all."""
        ...

    async def mint(self, namespaces: tuple[Namespace, ...], node: str | None) -> Refusal | None:
        """Decide again, and mint what is missing; a refusal has minted nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """An agent at the door."""

    claim: Claim
    client: Client
    """As it is to be registered, on its link."""
    epoch_name: str
    highest_token: Token | None
    transport: str
    kept_out: Callable[[], Awaitable[Refusal | None]] | None = None
    """What else may keep it out, asked when its namespaces are known to be its own."""


class Registrations:
    """Lets agents in. The order is fixed, and what is refused leaves nothing behind.

    Policy, then every namespace, then whether it is kept out elsewhere, then the gate with the
    placement of each namespace, then the registry. Namespaces are minted last, for an agent that
    is in; where that fails, it is not in any more.

    Args:
        registry: Where agents are registered.
        clock: The time.
        gate: Mints namespaces and holds their placement; without one neither is done.
        tell: Hears of those who come and go.
        metrics: Where refusals are counted.
        probation: An agent is not chosen until it has answered on its link; wants a `Prober`.
    """

    def __init__(
        self,
        registry: ConnectionRegistry,
        clock: Clock,
        *,
        gate: NamespaceGate | None = None,
        tell: Tell = lambda *_: None,
        metrics: prometheus_client.CollectorRegistry | None = None,
        probation: bool = False,
    ) -> None:
        self._refusals = prometheus_client.Counter(
            "farm_admission_refusals",
            "Agents that were not let in, each time they dialled, by reason.",
            ["reason"],
            registry=prometheus_client.CollectorRegistry() if metrics is None else metrics,
        )
        self._registry = registry
        self._clock = clock
        self._gate = gate
        self._tell = tell
        self.audit = AdmissionAudit(tell, clock)
        self._current: dict[ClientId, Registration] = {}
        self._kept_out = Exclusion.OPENING_PROBATION if probation else None

    def verdict(self, client_id: ClientId, exclusion: Exclusion | None) -> None:
        """Tell that an agent that is linked here is kept out for now, or is not any more."""
        registration = self._current.get(client_id)
        if registration is not None:
            self._say(
                EventKind.VERDICT_CHANGED,
                registration,
                exclusion=None if exclusion is None else exclusion.value,
            )

    def connected(self) -> Mapping[Namespace, int]:
        """Count the agents that are linked here, by namespace."""
        return Counter(name for one in self._current.values() for name in one.client.namespaces)

    async def register(self, knock: Knock, enrolment: Enrolment) -> "Registration | Refusal":
        """Let an agent in, or say why not.

        Raises:
            StoreUnavailableError: If a store can't be asked; it is not in then.
        """
        admitted = await self._admit(knock, enrolment)
        if isinstance(admitted, Refusal):
            self._refusals.labels(admitted.reason.value).inc()
            self.audit.refused(knock.claim, enrolment, admitted)
            return admitted
        self.audit.admitted(enrolment)
        return self._enter(Registration(self, admitted, knock.transport))

    async def _admit(self, knock: Knock, enrolment: Enrolment) -> Client | Refusal:
        claim = knock.claim
        refusal = reject(claim, enrolment, SPOKEN)
        if refusal is None and knock.kept_out is not None:
            refusal = await knock.kept_out()
        if refusal is not None:
            return refusal
        if self._gate is None:
            return await self._insert(knock)
        missing = await self._gate.missing(claim.namespaces, claim.node)
        if isinstance(missing, Refusal):
            return missing
        registered = await self._insert(knock)
        if isinstance(registered, Refusal) or not missing:
            return registered
        return await self._mint(self._gate, claim, registered)

    async def _insert(self, knock: Knock) -> Client | Refusal:
        registered = await self._registry.register(
            replace(knock.client, excluded=self._kept_out),
            epoch_name=knock.epoch_name,
            highest_token=knock.highest_token,
            now=self._clock(),
        )
        if isinstance(registered, Denial):
            name = knock.claim.client_id
            detail = f"another agent of the name {name!r} is connected: set AGENT_CLIENT_ID"
            return Refusal(reason=RefusedFor.CLIENT_ID_IN_USE, detail=detail)
        return registered

    async def _mint(self, gate: NamespaceGate, claim: Claim, client: Client) -> Client | Refusal:
        """Mint for an agent that is registered, or take it off again."""
        stays = False
        try:
            refusal = await gate.mint(claim.namespaces, claim.node)
            stays = refusal is None
        finally:
            if not stays:
                await self._take_off(client)
        return refusal or client

    async def _take_off(self, client: Client) -> None:
        if client.link is not None:
            await self._registry.unlink(client.client_id, client.link, now=self._clock())
        if not client.assignments:
            await self._registry.remove(client.client_id, epoch=client.epoch)

    def _enter(self, registration: "Registration") -> "Registration":
        before = self._current.get(registration.client.client_id)
        if before is None or before.place != registration.place:
            if before is not None:
                self._leave(before, DISCONNECT)
            self._say("agent_connected", registration)
        self._current[registration.client.client_id] = registration
        return registration

    async def end(self, registration: "Registration", reason: str) -> bool:
        """See `Registration.end`."""
        client, told = registration.client, True
        try:
            known = client.link is not None and await self._registry.unlink(
                client.client_id, client.link, now=self._clock()
            )
            # Who took it off the register has said why; that its link then ends is no news.
            told = known or reason != DISCONNECT
        finally:
            self._leave(registration, reason, told=told)
        return known

    def _leave(self, registration: "Registration", reason: str, *, told: bool = True) -> None:
        client_id = registration.client.client_id
        current = self._current.get(client_id)
        if current is not None and current.place == registration.place:
            del self._current[client_id]
            if told:
                self._say("agent_disconnected", current, reason=reason)

    def _say(self, kind: str, registration: "Registration", **more: str | None) -> None:
        client = registration.client
        said = {
            "client_id": client.client_id,
            "transport": registration.transport,
            "node": client.node,
            "deployment": client.deployment,
            **more,
        }
        for namespace in client.namespaces:
            self._tell(kind, namespace, said)


class Registration:
    """One agent on one link, from when it was let in."""

    def __init__(self, registrations: Registrations, client: Client, transport: str) -> None:
        self._registrations = registrations
        self.client = client
        """As stored."""
        self.transport = transport

    @property
    def place(self) -> tuple[LinkId | None, tuple[Namespace, ...]]:
        """Where it is counted."""
        return self.client.link, self.client.namespaces

    async def end(self, reason: str = DISCONNECT) -> bool:
        """Take note that the link has ended; again is no error, and counted and told once.

        False if the agent is on another link by now, or it was known.

        Raises:
            StoreUnavailableError: If the registry can't be told; it has been counted and told.
        """
        return await self._registrations.end(self, reason)
