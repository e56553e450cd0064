"""The evidence of commands, and how their delivery fares. Changes nothing."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from farm.api.answers import answer
from farm.api.deps import deps_of, namespace_of
from farm.api.routes import Access, Answer, Route
from farm.api.views import maybe_moment, moment
from farm.core.commands import Answers, ClientDelivery, CommandEvidence
from farm.core.model import ClientId, Instant
from farm.protocol.evidence import AgentDelivery, CommandView, DeliveryView, EvidenceView

_LATELY_S = 3_600.0


async def get_command(request: web.Request) -> web.Response:
    """Answer the five questions of one command of the namespace, with what is known of it."""
    command_id = request.match_info["command_id"]
    found = await deps_of(request).app_node.answers(namespace_of(request), command_id)
    return answer(_evidence_view(command_id, found))


async def get_delivery(request: web.Request) -> web.Response:
    """Return how the delivery of the namespace's commands fares, by agent."""
    deps, namespace = deps_of(request), namespace_of(request)
    now = deps.clock()
    failed_since = Instant(now - _LATELY_S)
    counted = await deps.app_node.deliveries(namespace, failed_since=failed_since)
    snapshot = await deps.registry.snapshot(now=now)
    linked = {
        c.client_id: c.link is not None for c in snapshot.clients if namespace in c.namespaces
    }
    return answer(
        DeliveryView(
            failed_since=moment(failed_since),
            items=tuple(
                _agent_delivery(one, linked, counted) for one in sorted(linked.keys() | counted)
            ),
        )
    )


def _agent_delivery(
    client_id: ClientId,
    linked: Mapping[ClientId, bool],
    counted: Mapping[ClientId, ClientDelivery],
) -> AgentDelivery:
    found = counted.get(client_id, ClientDelivery())
    return AgentDelivery(
        client_id=client_id,
        linked=linked.get(client_id, False),
        admitted=found.admitted,
        in_flight=found.in_flight,
        unacknowledged=found.unacknowledged,
        oldest_at=maybe_moment(found.oldest_at),
        failures=dict(found.failures),
    )


def _evidence_view(command_id: str, found: Answers) -> EvidenceView:
    # The models are the words of the answers; what they do not have can't be answered.
    return EvidenceView.model_validate(
        {
            "command_id": command_id,
            "send_attempted": found.send_attempted,
            "acknowledged": found.acknowledged,
            "result_retained": found.result_retained,
            "effect_can_be_established": found.effect_can_be_established,
            "repeat_is_safe": found.repeat_is_safe,
            "command": None if found.evidence is None else _command_view(found.evidence),
        }
    )


def _command_view(evidence: CommandEvidence) -> CommandView:
    declared, payload = evidence.declared, evidence.payload
    text = None if payload is None else payload.text
    said: dict[str, Any] | None = None if text is None else json.loads(text)
    return CommandView(
        client_id=evidence.client_id,
        context_id=evidence.context_id,
        kind=evidence.kind,
        state=evidence.state.value,
        effect=None if declared.effect is None else declared.effect.value,
        reconcilable=declared.reconcilable,
        admitted_at=moment(evidence.admitted_at),
        send_attempted_at=maybe_moment(evidence.send_attempted_at),
        acknowledged_at=maybe_moment(evidence.acknowledged_at),
        settled_at=maybe_moment(evidence.settled_at),
        reason=evidence.reason,
        payload=said,
        payload_size=None if payload is None else payload.size,
        payload_cut=payload is not None and text is None,
    )


ROUTES = (
    Route(
        method="GET",
        path="/v1/commands/{command_id}",
        handler=get_command,
        summary="Show the evidence of a command",
        access=Access.ADMIN,
        answers=(Answer(model=EvidenceView),),
    ),
    Route(
        method="GET",
        path="/v1/delivery",
        handler=get_delivery,
        summary="Show how the delivery of commands fares",
        access=Access.ADMIN,
        answers=(Answer(model=DeliveryView),),
    ),
)
