"""The task queues there are: those listed for the whole farm, and those of deployments."""

from collections.abc import Collection

from farm.clock import Clock, system_clock
from farm.core.census import Declaration, Declared
from farm.core.model import Namespace
from farm.core.pools import queue_of
from farm.manager.kept import Kept
from farm.protocol.nearest import nearest
from farm.stores.ports.deployments import Deployments


class DeclaredQueues:
    """The `QueueCatalogue` of all that declares any.

    What would be refused is looked up anew, so that nothing is refused by what was known before;
    and while deployments can't be read nothing is.

    Args:
        listed: Declared in every namespace.
        deployments: Declare what they serve, each in its namespace; None where there are none.
        unchecked: Namespaces in which any will do.
        clock: The time.
    """

    def __init__(
        self,
        listed: Collection[str] = (),
        deployments: Deployments | None = None,
        *,
        unchecked: Collection[Namespace] = (),
        clock: Clock = system_clock,
    ) -> None:
        self._listed = frozenset(listed)
        self._deployments = deployments
        self._unchecked = unchecked
        self._served = Kept(self._read, clock, what="deployments")

    async def look_up(self, namespace: Namespace, task_queue: str) -> Declared:
        """See `QueueCatalogue.look_up`."""
        if namespace in self._unchecked:
            return Declared()
        served = await self._served.of(namespace)
        found = self._among(served or frozenset(), task_queue)
        if found.declaration is Declaration.UNDECLARED and self._deployments is not None:
            served = await self._served.afresh(namespace)
            found = Declared() if served is None else self._among(served, task_queue)
        return found

    def changed(self, namespace: Namespace) -> None:
        """Look anew, with the next question, what the deployments of a namespace serve."""
        self._served.changed(namespace)

    async def _read(self, namespace: Namespace) -> frozenset[str]:
        if self._deployments is None:
            return frozenset()
        found = await self._deployments.deployments(namespace)
        return frozenset(queue for one in found for queue in one.queues)

    def _among(self, served: frozenset[str], task_queue: str) -> Declared:
        name, names = queue_of(task_queue), self._listed | served
        if not names:
            return Declared()
        if name in names:
            return Declared(declaration=Declaration.DECLARED)
        return Declared(declaration=Declaration.UNDECLARED, near=nearest(name, sorted(names)))
