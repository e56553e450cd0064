"""What people and attempts do with saved identities. Secrets are opened here, and only here."""

import json
from collections.abc import Mapping
from typing import Any

import structlog

from farm.clock import Clock
from farm.core.model import Namespace, Token
from farm.errors import NotFoundError, StaleAssignmentError, TooLargeError, UnreadableError
from farm.protocol.identities import (
    Credentials,
    IdentityPut,
    Lent,
    Proxy,
    ProxyRoute,
    StorageState,
)
from farm.stores.identity_records import (
    Borrowed,
    Change,
    SavedIdentity,
    Sealed,
    SealedState,
    of_identity,
    of_job,
)
from farm.stores.ports.identities import IdentityStore, Sealer

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class IdentityBook:
    """The identities of all namespaces. A name means something in its namespace only (P16)."""

    def __init__(
        self, store: IdentityStore, sealer: Sealer, clock: Clock, *, max_bytes: int
    ) -> None:
        self.store = store
        self._sealer = sealer
        self._clock = clock
        self.max_bytes = max_bytes
        """The largest state that is kept."""

    async def put(
        self, namespace: Namespace, name: str, wanted: IdentityPut
    ) -> tuple[SavedIdentity, bool]:
        """Make an identity, or change what `wanted` says of it; return it, and whether it is new.

        Raises:
            ConflictError: If a job has it for itself.
            TooLargeError: If its state is.
        """
        given = wanted.model_fields_set
        change = Change(
            options=_options(wanted) if "options" in given else None,
            proxy=self._proxy(namespace, name, wanted.proxy) if "proxy" in given else None,
            state=(self._state(namespace, name, wanted.state),) if "state" in given else None,
        )
        identity, new = await self.store.change(namespace, name, change, now=self._clock())
        log.info("identity.changed", identity=name, namespace=namespace, version=identity.version)
        return identity, new

    async def delete(self, namespace: Namespace, name: str) -> None:
        """Forget an identity. Raises NotFoundError, or ConflictError while a job has it."""
        await self.store.delete(namespace, name)
        log.info("identity.deleted", identity=name, namespace=namespace)

    def seal_for_job(self, job_id: str, proxy: Proxy | None) -> bytes | None:
        """Seal what a job's own proxy is told."""
        if proxy is None or (credentials := proxy.credentials) is None:
            return None
        return self._sealer.seal(_bytes_of(credentials), bound_to=of_job(job_id))

    async def lend(self, attempt_id: str, token: Token) -> Lent:
        """Return what a running attempt has of the farm, in the clear.

        Raises:
            StaleAssignmentError: If it runs no more, has another token, or has nothing.
            NotFoundError: If the identity is no more.
            UnreadableError: If the farm does not have its key.
        """
        held = await self.store.borrowed(attempt_id, token)
        if held is None:
            raise StaleAssignmentError("the attempt has ended, or borrows nothing")
        if held.name is not None and held.identity is None:
            raise NotFoundError(f"no identity {held.name}", identity=held.name)
        return Lent(state=self._opened_state(held), proxy=self._opened_proxy(held))

    async def save(self, attempt_id: str, token: Token, state: StorageState) -> int:
        """Keep what a running attempt leaves in its identity; return the new version.

        Raises:
            StaleAssignmentError: If it runs no more, has another token, or has no identity for
                itself. What was saved before stays.
            TooLargeError: If it is.
        """
        held = await self.store.borrowed(attempt_id, token)
        if held is None or held.name is None:
            raise StaleAssignmentError("the attempt has ended, or has no identity")
        sealed = self._sealed_state(held.namespace, held.name, state)
        version = await self.store.save_state(attempt_id, token, sealed, now=self._clock())
        if version is None:
            raise StaleAssignmentError("the attempt has ended, or has no identity for itself")
        log.info("identity.saved", identity=held.name, attempt_id=attempt_id, version=version)
        return version

    async def reseal(self) -> None:
        """Seal under the present key what an earlier one has sealed; leave what can't be opened."""
        done = unreadable = 0
        for old in await self.store.sealed():
            if self._sealer.is_current(old.sealed):
                continue
            try:
                done += await self._reseal(old)
            except UnreadableError as error:
                unreadable += 1
                log.warning("identity.unreadable", reason=error.detail)
        if done or unreadable:
            log.info("identities.resealed", done=done, unreadable=unreadable)

    async def _reseal(self, old: Sealed) -> bool:
        plain = self._sealer.open(old.sealed, bound_to=old.bound_to)
        return await self.store.reseal(old, self._sealer.seal(plain, bound_to=old.bound_to))

    def _proxy(
        self, namespace: Namespace, name: str, proxy: Proxy | None
    ) -> tuple[Mapping[str, Any] | None, bytes | None]:
        if proxy is None:
            return None, None
        secret = None
        if (credentials := proxy.credentials) is not None:
            bound = of_identity(namespace, name, "secret")
            secret = self._sealer.seal(_bytes_of(credentials), bound_to=bound)
        return proxy.bare.model_dump(mode="json", exclude_none=True), secret

    def _state(
        self, namespace: Namespace, name: str, state: StorageState | None
    ) -> SealedState | None:
        return None if state is None else self._sealed_state(namespace, name, state)

    def _sealed_state(self, namespace: Namespace, name: str, state: StorageState) -> SealedState:
        plain = state.model_dump_json().encode()
        if len(plain) > self.max_bytes:
            raise TooLargeError(
                f"the state of an identity has at most {self.max_bytes} bytes, not {len(plain)}",
                max_bytes=self.max_bytes,
            )
        return SealedState(
            sealed=self._sealer.seal(plain, bound_to=of_identity(namespace, name, "state")),
            cookies=len(state.cookies),
            origins=len(state.origins),
            size=len(plain),
        )

    def _opened_state(self, held: Borrowed) -> StorageState | None:
        if held.state is None or held.name is None:
            return None
        bound = of_identity(held.namespace, held.name, "state")
        return StorageState.model_validate_json(self._sealer.open(held.state, bound_to=bound))

    def _opened_proxy(self, held: Borrowed) -> ProxyRoute | None:
        if held.spec_proxy is not None:
            return self._route(held.spec_proxy, held.spec_secret, of_job(held.job_id))
        if held.identity is None or held.identity.proxy is None:
            return None
        bound = of_identity(held.namespace, held.identity.name, "secret")
        return self._route(held.identity.proxy, held.identity.secret, bound)

    def _route(self, proxy: Mapping[str, Any], secret: bytes | None, bound_to: str) -> ProxyRoute:
        credentials = None
        if secret is not None:
            plain = self._sealer.open(secret, bound_to=bound_to)
            credentials = Credentials.model_validate_json(plain)
        bypass = tuple(proxy.get("bypass", ()))
        return ProxyRoute(server=proxy["server"], credentials=credentials, bypass=bypass)


def _options(wanted: IdentityPut) -> Mapping[str, Any]:
    if wanted.options is None:
        return {}
    return wanted.options.model_dump(mode="json", exclude_none=True)


def _bytes_of(credentials: Credentials) -> bytes:
    return json.dumps(credentials.model_dump()).encode()
