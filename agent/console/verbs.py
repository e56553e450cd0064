"""The table of what flows do: a row for each step that needs no browser."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent.console import activities, looking, navigation
from agent.console.extract import extract
from agent.console.http import http
from agent.console.stage import Stage
from farm.protocol import steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What a step does and which rules it keeps itself."""

    do: Callable[[Stage, Any], Awaitable[None]]
    begins_effect: bool = False
    """It calls `stage.effect()` itself, as late as it can; else the whole step is the effect."""
    navigates: bool = False
    """It has the navigation's clock, and times out as a navigation."""


VERBS: dict[type[steps.StepBase], Verb] = {
    steps.Goto: Verb(do=navigation.goto, navigates=True),
    steps.Reload: Verb(do=navigation.reload, navigates=True),
    steps.WaitForUrl: Verb(do=looking.wait_for_url, navigates=True),
    steps.Wait: Verb(do=looking.wait),
    steps.WaitFor: Verb(do=looking.wait_for),
    steps.Assert: Verb(do=looking.assert_that),
    steps.Extract: Verb(do=extract),
    steps.Html: Verb(do=looking.html),
    steps.Http: Verb(do=http, begins_effect=True),
    steps.Activity: Verb(do=activities.activity, begins_effect=True),
    steps.Set: Verb(do=looking.set_variable),
}
