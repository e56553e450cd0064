"""The environment variables of either process, held to the settings that exist."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from farm.protocol.nearest import nearest

_ALIKE = 0.7


class UnknownVariableError(ValueError):
    """A variable with our prefix that no setting has; says which one may have been meant."""


def refuse_unknown(environment: Mapping[str, str], known: Iterable[str], prefix: str) -> None:
    """Stop at a variable with our prefix that no setting has: it is a typing error.

    Raises:
        UnknownVariableError: Naming the variable and the nearest known one.
    """
    # The prefix is the same in all of them, so being alike in it means nothing.
    names = {name.removeprefix(prefix): name for name in known}
    for name in environment:
        word = name.removeprefix(prefix)
        if word != name and name not in names.values():
            near = nearest(word, names, alike=_ALIKE)
            hint = f"; did you mean {names[near]}?" if near else ""
            raise UnknownVariableError(f"there is no setting {name}{hint}")


def variable_names(model: type[BaseModel], prefix: str) -> set[str]:
    """Return the environment variables that a settings model reads."""
    names: set[str] = set()
    for name, field in model.model_fields.items():
        full = f"{prefix}{name}".upper()
        # A setting with a name of its own is not read under the prefix.
        names.add(field.validation_alias if isinstance(field.validation_alias, str) else full)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= variable_names(field.annotation, f"{full}__")
    return names
