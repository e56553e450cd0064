"""A pytest plugin: what shows a mutant soonest runs first, and finds it the same way each time."""

import pytest
from hypothesis import Phase, is_hypothesis_test, settings

settings.register_profile(
    "mutation",
    derandomize=True,
    database=None,
    deadline=None,
    # A counterexample will do, the smallest is not needed.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=settings.get_profile("ci").suppress_health_check,
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put examples before properties, which take longer."""
    items.sort(key=_is_property)


def _is_property(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
