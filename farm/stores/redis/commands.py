"""The evidence of commands over one shard of a Redis."""

import json
from collections.abc import Mapping
from typing import Any

from farm.core.commands import (
    ClientDelivery,
    CommandEvidence,
    CommandState,
    Declared,
    Effect,
    Mark,
    Payload,
    Retention,
    before,
    deliveries,
)
from farm.core.model import ClientId, ContextId, Instant, Namespace
from farm.stores.ports.commands import Forgotten
from farm.stores.redis.records import token_from, token_text
from farm.stores.redis.shard import RedisShard

_TIMES = ("send_attempted_at", "acknowledged_at", "settled_at")


class RedisCommandLog:
    """The `CommandLog` port, for any number of coordinators.

    Args:
        shard: The registry whose Redis and store epoch it shares; to be open.
        retention: What is retained of each namespace; the same for all coordinators.
    """

    def __init__(self, shard: RedisShard, *, retention: Retention | None = None) -> None:
        self.retention = retention or Retention()
        self._shard = shard

    async def admit(self, evidence: CommandEvidence) -> bool:
        """See `CommandLog.admit`."""
        reply = await self._shard.run(
            "command_admit",
            evidence.namespace,
            evidence.command_id,
            _text(evidence),
            repr(evidence.admitted_at),
            self.retention.keep,
            repr(evidence.admitted_at - self.retention.keep_s),
            self.retention.keep_ids,
        )
        return bool(reply[0] == "ok")

    async def mark(self, namespace: Namespace, command_id: str, mark: Mark) -> bool:
        """See `CommandLog.mark`."""
        payload = mark.payload if mark.settles else None
        reply = await self._shard.run(
            "command_mark",
            namespace,
            command_id,
            f" {' '.join(before(mark.state))} ",
            json.dumps(_fields(mark), ensure_ascii=False),
            "" if payload is None or payload.text is None else payload.text,
        )
        return bool(reply[0] == "ok")

    async def find(
        self, namespace: Namespace, command_id: str, *, now: Instant
    ) -> CommandEvidence | Forgotten:
        """See `CommandLog.find`."""
        outcome, since, *found = await self._shard.run("command_find", namespace, command_id)
        forgotten = Forgotten(
            expired=outcome != "no", since=now if since is None else Instant(float(since))
        )
        if outcome != "ok":
            return forgotten
        evidence = _evidence(namespace, *found)
        return forgotten if self._is_over(evidence, now) else evidence

    async def deliveries(
        self, namespace: Namespace, *, now: Instant, failed_since: Instant
    ) -> Mapping[ClientId, ClientDelivery]:
        """See `CommandLog.deliveries`."""
        _, texts = await self._shard.run("command_all", namespace)
        known = (_evidence(namespace, text) for text in texts)
        return deliveries(
            (one for one in known if not self._is_over(one, now)), failed_since=failed_since
        )

    async def forget(self, namespace: Namespace, *, now: Instant) -> None:
        """See `CommandLog.forget`."""
        await self._shard.run("command_forget", namespace, repr(now))

    def _is_over(self, evidence: CommandEvidence, now: Instant) -> bool:
        return evidence.admitted_at <= now - self.retention.keep_s


# A field that is not known yet is not there, so that the script can tell.


def _text(evidence: CommandEvidence) -> str:
    declared = evidence.declared
    fields = {
        "command_id": evidence.command_id,
        "client_id": evidence.client_id,
        "kind": evidence.kind,
        "context_id": evidence.context_id,
        "token": None if evidence.token is None else token_text(evidence.token),
        "effect": declared.effect,
        "reconcilable": declared.reconcilable,
        "admitted_at": repr(evidence.admitted_at),
        "state": evidence.state,
    }
    return json.dumps({k: v for k, v in fields.items() if v is not None}, ensure_ascii=False)


def _fields(mark: Mark) -> dict[str, Any]:
    fields: dict[str, Any] = {"state": mark.state}
    if mark.state is CommandState.SEND_ATTEMPTED:
        fields["send_attempted_at"] = repr(mark.at)
    if mark.by_agent:
        fields["acknowledged_at"] = repr(mark.at)
    if not mark.settles:
        return fields
    fields["settled_at"] = repr(mark.at)
    if mark.reason is not None:
        fields["reason"] = mark.reason
    if mark.payload is not None:
        fields["payload_size"] = mark.payload.size
    return fields


def _evidence(namespace: Namespace, text: str, payload: str | None = None) -> CommandEvidence:
    one = json.loads(text)
    times = {name: Instant(float(one[name])) for name in _TIMES if name in one}
    return CommandEvidence(
        command_id=one["command_id"],
        namespace=namespace,
        client_id=ClientId(one["client_id"]),
        kind=one["kind"],
        admitted_at=Instant(float(one["admitted_at"])),
        context_id=ContextId(one["context_id"]) if "context_id" in one else None,
        token=token_from(one["token"]) if "token" in one else None,
        declared=Declared(
            effect=Effect(one["effect"]) if "effect" in one else None,
            reconcilable=one.get("reconcilable"),
        ),
        state=CommandState(one["state"]),
        reason=one.get("reason"),
        payload=Payload(text=payload, size=one["payload_size"]) if "payload_size" in one else None,
        **times,
    )
