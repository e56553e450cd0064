"""What a job says of its effects, for the evidence of its commands."""

from farm.core.commands import Effect
from farm.protocol import steps
from farm.protocol.plan import Plan


def effect_of(plan: Plan) -> Effect | None:
    """Return the gravest effect of the plan's steps.

    None where none of them has one: a page may still do what no step says, and the ledger knows.
    """
    effects = {steps.effect_of(step, plan.effects) for step in plan.steps}
    if steps.Effect.ONCE in effects:
        return Effect.ONCE
    return Effect.IDEMPOTENT if steps.Effect.IDEMPOTENT in effects else None
