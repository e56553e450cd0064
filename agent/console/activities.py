"""Coroutines of installed packages, run as steps: `async def activity(ctx, **args)`.

A package names them by entry points of the group `tabfarm.activities`. They run inside the agent
with all it may do, so only those that a setting lists are run at all. Each has to end soon after it
is cancelled: one that does not ends the agent, because nothing less could stop it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from inspect import iscoroutinefunction, signature
from typing import Any

import structlog

from agent.console.stage import ActivityContext, Stage
from agent.ports import StaleAssignment
from agent.steps.failed import StepFailed, clean
from agent.steps.values import to_json_value
from farm.protocol.failures import Reason
from farm.protocol.steps import Activity

GROUP = "tabfarm.activities"
STOP_S = 2.0
"""How long an activity may go on after it has been cancelled."""
log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ActivityMissing(Exception):  # noqa: N818 - told to whoever starts the agent
    """A name is listed that no installed package has, or more than one."""


class InstalledActivities:
    """Implements `agent.console.stage.Activities` by entry points.

    Args:
        allowed: The names that may be run.
        runaway: Told of an activity that has not stopped.
        found: Where entry points come from.

    Raises:
        ActivityMissing: If a name is not exactly one entry point.
    """

    def __init__(
        self,
        allowed: Iterable[str],
        *,
        runaway: Callable[[str], None],
        found: Callable[[], Iterable[EntryPoint]] = lambda: entry_points(group=GROUP),
    ) -> None:
        there = list(found())
        self._points: dict[str, EntryPoint] = {}
        self._runaway = runaway
        for name in allowed:
            mine = [point for point in there if point.name == name]
            if len(mine) != 1:
                known = ", ".join(sorted({point.name for point in there})) or "none"
                why = "more than one package has it" if mine else f"installed are {known}"
                raise ActivityMissing(f"AGENT_ACTIVITIES: {name!r}: {why}")
            self._points[name] = mine[0]

    async def run(self, name: str, args: Mapping[str, Any], context: ActivityContext) -> object:
        """Run one to its end.

        Raises:
            StepFailed: `value_invalid`, if it may not be run or does not take these arguments;
                `script_error`, if it raises.
        """
        activity = await self._load(name)
        try:
            signature(activity).bind(context, **args)
        except TypeError as error:
            raise StepFailed(Reason.VALUE_INVALID, clean(f"activity {name}: {error}")) from None
        loop = asyncio.get_running_loop()
        task = loop.create_task(activity(context, **args), name=f"activity {name}")
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            await self._stop(name, task)
            raise
        return _result(name, task)

    async def _load(self, name: str) -> Callable[..., Any]:
        point = self._points.get(name)
        if point is None:
            listed = ", ".join(self._points) or "none"
            raise StepFailed(
                Reason.VALUE_INVALID,
                clean(f"activity {name!r} is not allowed here: AGENT_ACTIVITIES lists {listed}"),
            )
        try:
            activity = await asyncio.to_thread(point.load)
        except Exception as error:
            raise StepFailed(
                Reason.SCRIPT_ERROR, clean(f"activity {name} can't be loaded: {error}")
            ) from error
        if not iscoroutinefunction(activity):
            raise StepFailed(Reason.VALUE_INVALID, clean(f"activity {name} is no async function"))
        result: Callable[..., Any] = activity
        return result

    async def _stop(self, name: str, task: asyncio.Task[object]) -> None:
        task.cancel()
        await asyncio.wait({task}, timeout=STOP_S)
        if not task.done():
            log.error("activity.runaway", name=name)
            self._runaway(name)
        elif not task.cancelled():
            task.exception()  # seen, so that asyncio does not call it forgotten


async def activity(stage: Stage, step: Activity) -> None:
    """Run an installed activity and keep what it returns."""
    flow, plan = stage.flow, stage.flow.plan
    context = ActivityContext(
        job_id=plan.job_id,
        attempt_id=plan.attempt_id,
        attempt_number=plan.attempt_number,
        step=step.id or step.name,
        params=plan.params,
        variables=dict(flow.variables),
        page_url=flow.page.url,
        page_markup=lambda: flow.page.source,
        fetch=stage.fetch,
        notice=lambda text: stage.notice("activity", text),
    )
    async with stage.effect():
        result = await flow.activities.run(step.name, step.args, context)
    try:
        value = to_json_value(result)
    except ValueError as error:
        raise StepFailed(
            Reason.SCRIPT_ERROR, clean(f"activity {step.name} returned what is not JSON: {error}")
        ) from None
    if step.var is not None:
        flow.variables[step.var] = value


def _result(name: str, task: asyncio.Task[object]) -> object:
    if task.cancelled():
        raise StepFailed(Reason.SCRIPT_ERROR, clean(f"activity {name} cancelled itself"))
    error = task.exception()
    match error:
        case None:
            return task.result()
        case StepFailed() | StaleAssignment():
            raise error
        case Exception():
            said = clean(f"activity {name}: {type(error).__name__}: {error}")
            # Not as something that was not done: nobody knows how far it got.
            raise StepFailed(Reason.SCRIPT_ERROR, said) from error
        case _:
            raise error
