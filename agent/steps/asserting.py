"""What an assertion compares, wherever the page is."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from agent.steps.substitution import Names, unknown_name
from agent.steps.values import canonical
from farm.protocol.steps import Assert

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "==": operator.eq,
    "<=": operator.le,
}


def wrong_variable(step: Assert, variables: Mapping[str, Any], names: Names) -> str | None:
    """Return what does not hold of the variable an assertion is about, or None.

    Raises:
        StepFailed: `value_invalid`, if there is no such variable.
    """
    var = step.var
    if var is None:
        return None
    if var not in variables:
        raise unknown_name(f"vars.{var}", names)
    value = variables[var]
    if "equals" not in step.model_fields_set:
        return None if value else f"${{vars.{var}}} is {canonical(value)}"
    if canonical(value) == canonical(step.equals):
        return None
    return f"${{vars.{var}}} is {canonical(value)}, not {canonical(step.equals)}"


def tidy(text: str) -> str:
    """Return a text with its white space collapsed, as texts are compared."""
    return " ".join(text.split())
