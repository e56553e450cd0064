"""What a step is called in reports."""

from farm.protocol.steps import Extract, Html, Pdf, Screenshot, StepBase


def label_of(step: StepBase) -> str:
    """Return the step's id or name, or its verb; the name of a file or data set is no such name."""
    named = not isinstance(step, Extract | Screenshot | Pdf | Html)
    return step.id or (step.name if named else None) or str(getattr(step, "type", ""))
