import ast
import inspect
import re
from pathlib import Path

from farm.sdk import FarmClient

PAGE = (Path(__file__).parents[2] / "docs" / "python-client.md").read_text()
CALLS = {
    name: call
    for name, call in inspect.getmembers(FarmClient, inspect.isfunction)
    if not name.startswith("_") and name != "close"
}


def test_the_page_lists_every_call_and_no_other() -> None:
    rows = re.findall(r"^\| [^|`]+ \| (`.*) \|$", PAGE, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(CALLS)


def test_the_example_makes_calls_that_there_are() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made = [
        node
        for node in ast.walk(ast.parse(example))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "farm"
    ]
    assert made
    for node in made:
        assert isinstance(node.func, ast.Attribute)
        named = {one.arg: None for one in node.keywords if one.arg is not None}
        inspect.signature(CALLS[node.func.attr]).bind(None, *node.args, **named)
