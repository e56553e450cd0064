"""The verbs of a job. One class a verb; `agent/steps/` holds what each does on a page.

`shorthand` names the key that a step written as `- verb: value` fills. `acts` tells whether the
verb may change the outside world: an acting step counts as `once` unless it or the job says
otherwise (see `effect_of`).
"""

from typing import Annotated

from pydantic import Field

from farm.protocol.steps.capture import Download, Extract, Html, Pdf, Screenshot
from farm.protocol.steps.forms import Check, Fill, Press, Select, Type, Uncheck, Upload
from farm.protocol.steps.navigation import (
    HUMAN_MS,
    Back,
    Goto,
    Human,
    Reload,
    Wait,
    WaitFor,
    WaitForUrl,
)
from farm.protocol.steps.pointer import Click, Drag, Hover, Scroll
from farm.protocol.steps.step import Effect, StepBase, Targeted
from farm.protocol.steps.values import SAFE_METHODS, Activity, Assert, Eval, Http, Set

__all__ = [
    "HUMAN_MS",
    "SAFE_METHODS",
    "VERBS",
    "Activity",
    "Assert",
    "Back",
    "Check",
    "Click",
    "Download",
    "Drag",
    "Effect",
    "Eval",
    "Extract",
    "Fill",
    "Goto",
    "Hover",
    "Html",
    "Http",
    "Human",
    "Pdf",
    "Press",
    "Reload",
    "Screenshot",
    "Scroll",
    "Select",
    "Set",
    "Step",
    "StepBase",
    "Targeted",
    "Type",
    "Uncheck",
    "Upload",
    "Wait",
    "WaitFor",
    "WaitForUrl",
    "acts",
    "effect_of",
]

Step = Annotated[
    Goto
    | Back
    | Reload
    | Click
    | Fill
    | Type
    | Press
    | Select
    | Check
    | Uncheck
    | Hover
    | Drag
    | Scroll
    | WaitFor
    | WaitForUrl
    | Wait
    | Human
    | Extract
    | Screenshot
    | Pdf
    | Html
    | Eval
    | Download
    | Upload
    | Http
    | Activity
    | Assert
    | Set,
    Field(discriminator="type"),
]

VERBS: dict[str, type[StepBase]] = {
    "goto": Goto,
    "back": Back,
    "reload": Reload,
    "click": Click,
    "fill": Fill,
    "type": Type,
    "press": Press,
    "select": Select,
    "check": Check,
    "uncheck": Uncheck,
    "hover": Hover,
    "drag": Drag,
    "scroll": Scroll,
    "wait_for": WaitFor,
    "wait_for_url": WaitForUrl,
    "wait": Wait,
    "human": Human,
    "extract": Extract,
    "screenshot": Screenshot,
    "pdf": Pdf,
    "html": Html,
    "eval": Eval,
    "download": Download,
    "upload": Upload,
    "http": Http,
    "activity": Activity,
    "assert": Assert,
    "set": Set,
}
"""Every verb under the name it is written by."""


def acts(step: StepBase) -> bool:
    """Tell whether the step's verb, as used here, may change the outside world."""
    match step:
        case Fill(submit=submit):
            return submit
        case Type(text=text):
            return "\n" in text
        case Download(selector=selector):
            return selector is not None
        case Http(method=method):
            return method not in SAFE_METHODS
        case _:
            return type(step).acts


def effect_of(step: StepBase, default: Effect) -> Effect:
    """Return the effect a step counts as: its own word, else `default` where its verb acts."""
    if step.effect is not None:
        return step.effect
    return default if acts(step) else Effect.NONE
