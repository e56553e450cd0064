"""How coordinators that share a ledger know of each other's changes."""

from collections.abc import Callable

from farm.api.auth import TokenBook
from farm.core.model import Namespace
from farm.main.jobs import Jobs
from farm.manager.queues import DeclaredQueues


def in_step(jobs: Jobs, queues: DeclaredQueues, tokens: TokenBook) -> Callable[[Namespace], None]:
    """Have what each coordinator keeps of the ledger known anew when another has changed it.

    Returns what is to be called with a namespace whose placement or task queues have changed here.
    """

    def look_anew(namespace: Namespace) -> None:
        jobs.manager.placement_changed(namespace)
        queues.changed(namespace)
        jobs.dispatcher.look_anew()

    neighbours = jobs.neighbours
    if neighbours is None:
        return look_anew
    neighbours.changed, neighbours.revoked = look_anew, tokens.forget
    tokens.tell_revoked = neighbours.tell_revoked

    def changed(namespace: Namespace) -> None:
        look_anew(namespace)
        neighbours.tell_changed(namespace)

    return changed
