"""The evidence of commands inside one process."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.core.commands import (
    ClientDelivery,
    CommandEvidence,
    Mark,
    Retention,
    deliveries,
    marked,
)
from farm.core.model import ClientId, Instant, Namespace
from farm.stores.ports.commands import Forgotten


@dataclass(slots=True)
class _Kept:
    """What is kept of one namespace, both in the order in which it was admitted."""

    since: Instant
    records: OrderedDict[str, CommandEvidence] = field(default_factory=OrderedDict)
    expired: OrderedDict[str, Instant] = field(default_factory=OrderedDict)


class MemoryCommandLog:
    """The `CommandLog` port.

    Args:
        since: Now: of what was before nothing is known.
        retention: What is retained of each namespace.
    """

    def __init__(self, *, since: Instant, retention: Retention | None = None) -> None:
        self.retention = retention or Retention()
        self._since = since
        self._namespaces: dict[Namespace, _Kept] = {}

    async def admit(self, evidence: CommandEvidence) -> bool:
        """See `CommandLog.admit`."""
        kept = self._namespaces.get(evidence.namespace)
        if kept is None:
            kept = self._namespaces[evidence.namespace] = _Kept(self._since)
        if evidence.command_id in kept.records or evidence.command_id in kept.expired:
            return False
        kept.records[evidence.command_id] = evidence
        self._let_go(kept, evidence.admitted_at)
        return True

    def _let_go(self, kept: _Kept, now: Instant) -> None:
        records = kept.records
        while len(records) > self.retention.keep or self._is_over(
            next(iter(records.values())), now
        ):
            command_id, evidence = records.popitem(last=False)
            kept.expired[command_id] = evidence.admitted_at
        while len(kept.expired) > self.retention.keep_ids:
            _, kept.since = kept.expired.popitem(last=False)

    def _is_over(self, evidence: CommandEvidence, now: Instant) -> bool:
        return evidence.admitted_at <= now - self.retention.keep_s

    async def mark(self, namespace: Namespace, command_id: str, mark: Mark) -> bool:
        """See `CommandLog.mark`."""
        kept = self._namespaces.get(namespace)
        known = None if kept is None else kept.records.get(command_id)
        further = None if known is None else marked(known, mark)
        if kept is None or further is None:
            return False
        kept.records[command_id] = further
        return True

    async def find(
        self, namespace: Namespace, command_id: str, *, now: Instant
    ) -> CommandEvidence | Forgotten:
        """See `CommandLog.find`."""
        kept = self._namespaces.get(namespace)
        if kept is None:
            return Forgotten(expired=False, since=self._since)
        known = kept.records.get(command_id)
        if known is None:
            return Forgotten(expired=command_id in kept.expired, since=kept.since)
        return Forgotten(expired=True, since=kept.since) if self._is_over(known, now) else known

    async def deliveries(
        self, namespace: Namespace, *, now: Instant, failed_since: Instant
    ) -> Mapping[ClientId, ClientDelivery]:
        """See `CommandLog.deliveries`."""
        kept = self._namespaces.get(namespace)
        records = () if kept is None else kept.records.values()
        return deliveries(
            (one for one in records if not self._is_over(one, now)), failed_since=failed_since
        )

    async def forget(self, namespace: Namespace, *, now: Instant) -> None:
        """See `CommandLog.forget`."""
        if namespace in self._namespaces:
            self._namespaces[namespace] = _Kept(now)
