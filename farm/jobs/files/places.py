"""Where a job may run: in a tab, in a flow, or in a flow first and in a tab where that won't do."""

from collections.abc import Iterator
from enum import StrEnum

from farm.jobs.files.problems import Path
from farm.jobs.files.spec import JobSpec
from farm.protocol.flows import FLOW_OPTIONS, needs_browser, only_without_browser


class Place(StrEnum):
    """What kind of context an attempt runs in."""

    TAB = "tab"
    FLOW = "flow"


def places(spec: JobSpec) -> tuple[Place, ...]:
    """Return where a job may run, in the order in which it is tried.

    What is said to suit itself runs in a flow first, unless something it says needs a browser
    however the pages are; and never in a tab if a step is done by flows alone.
    """
    if spec.requires.client_type == "console" or spec.browser.use == "none":
        return (Place.FLOW,)
    if spec.browser.use == "required" or any(True for _ in wants_browser(spec)):
        return (Place.TAB,)
    return (Place.FLOW,) if any(map(only_without_browser, spec.steps)) else (Place.FLOW, Place.TAB)


def wants_browser(spec: JobSpec) -> Iterator[tuple[Path, str]]:
    """Yield what of a job needs a browser: its place in the canonical form, and why."""
    browser = spec.browser
    for name in sorted(type(browser).model_fields.keys() - FLOW_OPTIONS - {"use", "context"}):
        if getattr(browser, name) is not None:
            yield ("browser", name), f"{name} needs a browser"
    if browser.context == "reuse":
        yield ("browser", "context"), "only a browser has a window to be kept"
    for name in ("identity", "proxy", "record"):
        if getattr(spec, name) is not None:
            yield (name,), f"{name} needs a browser"
    for at, step in enumerate(spec.steps):
        for path, why in needs_browser(step):
            yield ("steps", at, *path), why


def misplaced(spec: JobSpec) -> Iterator[tuple[Path, str]]:
    """Yield what can't be done where the job is to run: the canonical place, and why."""
    said = "requires.client_type: console" if spec.browser.use == "required" else "browser: none"
    match places(spec):
        case (Place.FLOW,) if spec.browser.use != "auto":
            for path, why in wants_browser(spec):
                yield path, f"{why}, and the job says {said}"
        case (Place.TAB,):
            for at, step in enumerate(spec.steps):
                if only_without_browser(step):
                    yield ("steps", at), f"{step.type} is done without a browser: {_remedy(spec)}"
        case _:
            pass


def _remedy(spec: JobSpec) -> str:
    if spec.browser.use == "required":
        return "say browser: none, or auto"
    _, why = next(wants_browser(spec))
    return f"but {why}"
