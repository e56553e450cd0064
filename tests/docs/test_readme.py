import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_PLACE = re.compile(r"`((?:farm|agent|docker|docs|examples|scripts|tests)/[\w./-]*)`")
_HEADING = re.compile(r"\]\(([^)#:]*)#([^)]*)\)")
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_every_place_a_page_names_is_there(document: Path) -> None:
    text = document.read_text()
    named = {place: ROOT / place for place in _PLACE.findall(text)}
    linked = {link: document.parent / link for link in _LINK.findall(text)}
    assert [name for name, path in {**named, **linked}.items() if not path.exists()] == []


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_every_heading_a_page_links_to_is_there(document: Path) -> None:
    assert [
        f"{page}#{anchor}"
        for page, anchor in _HEADING.findall(document.read_text())
        if anchor not in anchors(document.parent / page if page else document)
    ] == []


def anchors(page: Path) -> set[str]:
    """What a page's headings are linked by."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
