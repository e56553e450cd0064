"""Which queued jobs may have the saved identity they name, and what their windows are to be.

The lease itself is the running attempt, and the ledger starts none that would break one. Here it is
seen beforehand, so that no tab is taken for nothing, and the oldest job goes first.
"""

from dataclasses import dataclass

from pydantic import ValidationError

from farm.core.model import Namespace
from farm.errors import NotFoundError
from farm.jobs.files import JobSpec, browser_options
from farm.jobs.ports import Waiting
from farm.protocol.plan import BrowserOptions
from farm.stores.identity_records import Mode
from farm.stores.ports.identities import IdentityStore
from farm.stores.records import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The use of an identity that a job is to make, or makes."""

    job_id: str
    namespace: Namespace
    name: str
    mode: Mode

    def excludes(self, other: "Claim") -> bool:
        """Tell whether the two may not be at once. A clone excludes nothing."""
        if (self.namespace, self.name) != (other.namespace, other.name):
            return False
        modes = {self.mode, other.mode}
        return Mode.EXCLUSIVE in modes and Mode.CLONE not in modes


class Leases:
    """What the jobs that are being placed are to have."""

    def __init__(self, store: IdentityStore) -> None:
        self._store = store
        self._taken: dict[str, Claim] = {}
        """By job: placed, and perhaps not yet in the ledger."""
        self._ahead: list[Claim] = []
        """Of older jobs that were refused in this turn: nobody goes before them."""

    def begin_turn(self) -> None:
        """Look at the queue anew, from its oldest job."""
        self._ahead.clear()

    async def take(self, job: Job, spec: JobSpec) -> BrowserOptions | Waiting:
        """Claim the identity of a job, until `give_back`; return its window's options, or why not.

        A job without one has its own options, and need not be given back.
        """
        if spec.identity is None:
            return browser_options(spec)
        name = spec.identity.name
        claim = Claim(
            job_id=job.job_id, namespace=job.namespace, name=name, mode=Mode(spec.identity.mode)
        )
        try:
            saved = await self._store.identity(job.namespace, name)
            options = browser_options(spec, saved.options)
        except NotFoundError:
            return Waiting(
                reason="identity_missing",
                remedy="save an identity of this name, or cancel the job",
                detail=f"there is no identity {name}",
            )
        except ValidationError as error:
            return Waiting(
                reason="identity_unfit",
                remedy="change the identity's options, or cancel the job",
                detail=f"the options of {name} and the job's: {error.errors()[0]['msg']}",
            )
        if (holder := await self._holder(claim)) is not None:
            self._ahead.append(claim)
            return Waiting(
                reason="identity_in_use",
                remedy="wait until that job has ended, or ask for a clone",
                detail=f"job {holder} has the identity {name}, or is to have it first",
            )
        self._taken[job.job_id] = claim
        return options

    def give_back(self, job_id: str) -> None:
        """The job has ended, or was not placed."""
        self._taken.pop(job_id, None)

    async def _holder(self, claim: Claim) -> str | None:
        uses = await self._store.users(claim.namespace, claim.name)
        running = [
            Claim(job_id=u.job_id, namespace=claim.namespace, name=claim.name, mode=u.mode)
            for u in uses
        ]
        others = (*running, *self._taken.values(), *self._ahead)
        return next(
            (o.job_id for o in others if o.job_id != claim.job_id and o.excludes(claim)), None
        )
