"""What an agent at the door asks for, and what its token lets it have."""

from collections.abc import Sequence

from farm.api import convert
from farm.api.link_deps import LinkDeps
from farm.api.request_state import Principal
from farm.core.admission import Enrolment, Refusal, RefusedFor
from farm.core.model import ClientId, LinkId
from farm.manager.admission import Knock
from farm.protocol import messages as wire
from farm.protocol.recordings import RECORDS, RECORDS_VIDEO


def knock(
    deps: LinkDeps,
    hello: wire.Hello,
    running: Sequence[wire.Running],
    *,
    link: LinkId,
    transport: str,
) -> Knock:
    """Turn a `hello` into what `Registrations` judges; `running` is what this farm's agents run."""

    async def kept_out() -> Refusal | None:
        sharing = deps.sharing
        if sharing is None or not await sharing.keeps_out(ClientId(hello.client_id), running):
            return None
        detail = "it runs a job of another coordinator's"
        return Refusal(reason=RefusedFor.RUNS_ELSEWHERE, detail=detail)

    return Knock(
        claim=convert.claim(hello),
        client=convert.client(hello, link, deps.clock()),
        epoch_name=hello.epoch,
        highest_token=convert.token(hello.highest_token),
        transport=transport,
        kept_out=kept_out,
    )


def enrolment(bearer: Principal) -> Enrolment:
    """Return what the token of an agent allows it."""
    return Enrolment(
        token_id=bearer.token_id,
        namespaces=bearer.namespaces,
        bounds=bearer.bounds,
        own_metadata=frozenset({RECORDS, RECORDS_VIDEO}),
    )
