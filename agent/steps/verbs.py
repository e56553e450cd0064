"""The table of verbs: what each class of `farm.protocol.steps` does on a page.

To add a verb: its class there, a coroutine `(stage, step)` in the module of its group here, and
one row below; `tests/agent/steps/test_verbs.py` fails until all three are there.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent.steps import (
    artifacts,
    files,
    forms,
    human,
    navigation,
    pointer,
    scripting,
    waiting,
)
from agent.steps.extract import extract
from agent.steps.stage import Stage
from farm.protocol import steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What a verb does and which rules it keeps itself."""

    do: Callable[[Stage, Any], Awaitable[None]]
    begins_effect: bool = False
    """It calls `stage.effect()` itself, as late as it can; else the whole verb is the effect."""
    navigates: bool = False
    """It has the navigation's clock, and times out as a navigation."""
    reads: bool = False
    """What is in the page shows in what it brings, so nothing of ours may be there meanwhile."""


VERBS: dict[type[steps.StepBase], Verb] = {
    steps.Goto: Verb(do=navigation.goto, navigates=True),
    steps.Back: Verb(do=navigation.back, navigates=True),
    steps.Reload: Verb(do=navigation.reload, navigates=True),
    steps.WaitForUrl: Verb(do=navigation.wait_for_url, navigates=True),
    steps.Click: Verb(do=pointer.click, begins_effect=True),
    steps.Hover: Verb(do=pointer.hover, begins_effect=True),
    steps.Drag: Verb(do=pointer.drag, begins_effect=True),
    steps.Press: Verb(do=pointer.press, begins_effect=True),
    steps.Scroll: Verb(do=pointer.scroll),
    steps.Fill: Verb(do=forms.fill, begins_effect=True),
    steps.Type: Verb(do=forms.type_text, begins_effect=True),
    steps.Select: Verb(do=forms.select, begins_effect=True),
    steps.Check: Verb(do=forms.check, begins_effect=True),
    steps.Uncheck: Verb(do=forms.uncheck, begins_effect=True),
    steps.Wait: Verb(do=waiting.wait),
    steps.Human: Verb(do=human.human),
    steps.WaitFor: Verb(do=waiting.wait_for),
    steps.Assert: Verb(do=waiting.assert_that, reads=True),
    steps.Extract: Verb(do=extract, begins_effect=True, reads=True),
    steps.Screenshot: Verb(do=artifacts.screenshot, reads=True),
    steps.Pdf: Verb(do=artifacts.pdf, reads=True),
    steps.Html: Verb(do=artifacts.html, reads=True),
    steps.Download: Verb(do=files.download, begins_effect=True),
    steps.Upload: Verb(do=files.upload, begins_effect=True),
    steps.Eval: Verb(do=scripting.evaluate, begins_effect=True, reads=True),
    steps.Http: Verb(do=scripting.only_in_flows, begins_effect=True),
    steps.Activity: Verb(do=scripting.only_in_flows, begins_effect=True),
    steps.Set: Verb(do=scripting.set_variable),
}
