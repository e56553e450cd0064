"""Every example, and every block of YAML in the reference, is a job that would be accepted."""

import re
from pathlib import Path

import pytest

from farm.jobs.files import parse, private_hosts
from farm.protocol.steps import VERBS

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*") if path.suffix in (".yaml", ".json")
)
REFERENCE = ROOT / "docs" / "job-file.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", REFERENCE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted(path: Path) -> None:
    kind = "application/json" if path.suffix == ".json" else "application/yaml"
    assert parse(path.read_bytes(), content_type=kind).steps


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_can_be_pointed_at_this_machine(path: Path) -> None:
    here = "http://127.0.0.1:8000"
    text = path.read_text()
    for name in ("base", "start"):
        if f"params.{name}" in text:
            spec = parse(text.encode(), content_type="application/yaml", params={name: here})
            assert private_hosts(spec) == ("127.0.0.1:8000",)
            return
    assert path.suffix == ".json"


def test_there_are_six_examples_of_public_sites_and_two_of_the_shop() -> None:
    folders = [path.parent.name for path in EXAMPLES]
    assert folders.count("public") >= 6
    assert folders.count("shop") >= 2


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_a_block_of_the_reference_is_accepted(block: str) -> None:
    if re.match(r"(- |#[^\n]*\n- )", block):
        block = (
            "name: a\nparams: {base: https://shop.example, invoice: file_1/a.pdf}\nsteps:\n"
            + re.sub(r"^", "  ", block, flags=re.MULTILINE)
        )
    elif "steps:" not in block and "extract:" not in block:
        block += "steps: [back]\n"
    assert parse(block.encode(), content_type="application/yaml").steps


def test_the_reference_shows_every_verb() -> None:
    text = REFERENCE.read_text()
    assert [verb for verb in VERBS if f"### {verb}\n" not in text] == []
