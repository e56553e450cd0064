"""What a job says of its effects, for the evidence of its commands."""

from farm.core.commands import Effect
from farm.protocol import steps
from farm.protocol.plan import Plan


def effect_of(plan: Plan) -> Effect | None:
    """Return what a plan is known to do: once, if a step does; idempotent, if the job says so.

    Else None: a request of its pages may change what no step says, and counts as `once` then.
    """
    if any(steps.effect_of(step, plan.effects) is steps.Effect.ONCE for step in plan.steps):
        return Effect.ONCE
    return Effect.IDEMPOTENT if plan.effects is steps.Effect.IDEMPOTENT else None
