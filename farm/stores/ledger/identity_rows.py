"""Saved identities, to the ledger's rows and back."""

from farm.core.model import Instant, Namespace
from farm.stores.identity_records import Change, KeptState, SavedIdentity, SealedState
from farm.stores.ledger.rows import AnyRow, from_json, from_json_or_none, to_json, to_json_or_none

_NO_STATE = {"state": None, "cookies": None, "origins": None, "state_bytes": None}
NEVER_SAVED = {**_NO_STATE, "saved_at": None, "saved_by": None}
"""What a row has until a state is saved, and again when that is forgotten."""


def to_values(change: Change, now: Instant) -> dict[str, object]:
    """What a change writes."""
    values: dict[str, object] = {"updated_at": now}
    if change.options is not None:
        values["options"] = to_json(change.options)
    if change.proxy is not None:
        proxy, secret = change.proxy
        values |= {"proxy": to_json_or_none(proxy), "secret": secret}
    if change.state is not None:
        (state,) = change.state
        values |= NEVER_SAVED if state is None else to_state_values(state) | {"saved_at": now}
        values["saved_by"] = None
    return values


def to_state_values(state: SealedState) -> dict[str, object]:
    """What a saved state writes, but for when and by whom."""
    return {
        "state": state.sealed,
        "cookies": state.cookies,
        "origins": state.origins,
        "state_bytes": state.size,
    }


def to_identity(row: AnyRow) -> SavedIdentity:
    """Read what is shown of one."""
    return SavedIdentity(
        namespace=Namespace(row.namespace),
        name=row.name,
        version=row.version,
        options=from_json(row.options),
        proxy=from_json_or_none(row.proxy),
        secret=row.secret,
        state=_to_state(row),
        created_at=Instant(row.created_at),
        updated_at=Instant(row.updated_at),
    )


def _to_state(row: AnyRow) -> KeptState | None:
    if row.saved_at is None:
        return None
    return KeptState(
        cookies=row.cookies,
        origins=row.origins,
        size=row.state_bytes,
        saved_at=Instant(row.saved_at),
        attempt_id=row.saved_by,
    )
