"""What a value says of itself."""

from itertools import product

import pytest

from farm.core.model import Context, ContextId, ContextState, Owner


@pytest.mark.parametrize(
    ("state", "clean", "owner"), list(product(ContextState, [True, False], Owner))
)
def test_a_context_is_lendable_that_is_ready_and_clean_and_a_workers(
    state: ContextState, clean: bool, owner: Owner
) -> None:
    context = Context(context_id=ContextId("T"), state=state, clean=clean, owner=owner)
    ready = {ContextState.ACTIVE, ContextState.IDLE}
    assert context.lendable is ({state} <= ready and clean and owner is Owner.WORKER)
