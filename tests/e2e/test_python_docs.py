"""Jobs over pages that nobody here wrote: the HTML of Debian's package python3-doc."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.e2e.asking import Done, Item, run_job
from tests.e2e.conftest import RunningFarm, Site
from tests.e2e.python_docs.markup import Element, parse

pytestmark = [pytest.mark.browser, pytest.mark.slow]

_JOBS = Path(__file__).parent / "python_docs"
_DOC = Path("/usr/share/doc")


@pytest.fixture(scope="module")
def docs() -> Path:
    """Where the pages are; without them skips, but fails where CI is set."""
    for root in [_DOC / "python3-doc" / "html", *sorted(_DOC.glob("python3*/html"), reverse=True)]:
        if (root / "py-modindex.html").is_file():
            return root
    if os.environ.get("CI"):
        pytest.fail("the Debian package python3-doc is missing")
    pytest.skip("the Debian package python3-doc is missing")


@pytest.fixture(scope="module")
def base(docs: Path, site: Site) -> str:
    return site(docs)


async def succeeded(farm: RunningFarm, name: str, **params: str) -> list[Item]:
    async with farm.client() as client:
        done: Done = await run_job(client, (_JOBS / f"{name}.yaml").read_text(), params=params)
    assert done.job.state == "succeeded", done.story
    return done.items


def heading(element: Element | None) -> str | None:
    return None if element is None else element.text.removesuffix("¶")


async def test_every_entry_of_the_module_index_is_taken_with_its_link_and_its_synopsis(
    farm: RunningFarm, docs: Path, base: str
) -> None:
    items = await succeeded(farm, "module_index", base=base)
    wanted = [module(row, base) for row in parse(docs / "py-modindex.html").all("tr")]
    wanted = [entry for entry in wanted if entry is not None]
    assert len(items) > 200
    assert items == wanted


def module(row: Element, base: str) -> Item | None:
    """Return what one row of the index says, unless it is only a letter."""
    name, link, synopsis = row.first("code", "xref"), row.first("a"), row.first("em")
    if name is None:
        return None
    return {
        "name": name.text,
        "url": None if link is None else urljoin(f"{base}/", link.attributes["href"]),
        "synopsis": None if synopsis is None else synopsis.text,
        "deprecated": row.first("strong") is not None,
    }


async def test_the_chapters_of_the_tutorial_are_followed_to_the_last_one(
    farm: RunningFarm, docs: Path, base: str
) -> None:
    wanted = list(chapters(docs, base, len(list((docs / "tutorial").glob("*.html"))) - 1))
    items = await succeeded(farm, "tutorial", base=base, pages=str(len(wanted)))
    assert len(items) > 10
    assert items == wanted
    assert len({item["url"] for item in items}) == len(items)


async def test_pagination_ends_at_its_bound_though_there_is_a_next_page(
    farm: RunningFarm, docs: Path, base: str
) -> None:
    assert await succeeded(farm, "tutorial", base=base) == list(chapters(docs, base, 3))


def chapters(docs: Path, base: str, count: int) -> list[Item]:
    """Follow the links to the next page through the files."""
    found, name = [], "tutorial/appetite.html"
    for _ in range(count):
        page = parse(docs / name)
        found.append(
            {
                "url": f"{base}/{name}",
                "title": heading(page.first("h1")),
                "examples": sum(len(block.all("pre")) for block in page.all("div", "highlight")),
                "sections": [
                    {"id": inner.attributes["id"], "title": heading(inner.first("h2"))}
                    for outer in page.all("section")
                    for inner in outer.elements
                    if inner.tag == "section" and any(e.tag == "h2" for e in inner.elements)
                ],
            }
        )
        following = next(e for e in page.all("link") if e.attributes.get("rel") == "next")
        name = urljoin(name, following.attributes["href"])
    return found


async def test_the_terms_of_the_glossary_come_with_the_terms_they_point_to(
    farm: RunningFarm, docs: Path, base: str
) -> None:
    items = await succeeded(farm, "glossary", base=base)
    glossary = parse(docs / "glossary.html").first("dl", "glossary")
    assert glossary is not None
    assert len(items) > 100
    for item, (term, definition) in zip(items, defined(glossary.elements), strict=True):
        links = [a for a in definition.all("a") if a.first("span", "std-term") is not None]
        assert item["id"] == term.attributes["id"]
        assert item["term"] == heading(term)
        assert item["definition"] == definition.all("p")[0].text
        assert item["see"] == [
            {"term": a.text, "url": urljoin(f"{base}/glossary.html", a.attributes["href"])}
            for a in links
        ]


def defined(elements: list[Element]) -> Iterator[tuple[Element, Element]]:
    """Pair each term with the definition that follows, which several may share."""
    for place, element in enumerate(elements):
        if element.tag == "dt":
            yield element, next(after for after in elements[place:] if after.tag == "dd")


async def test_built_in_functions_come_with_their_parameters_and_their_changes(
    farm: RunningFarm, docs: Path, base: str
) -> None:
    items = await succeeded(farm, "functions", base=base)
    wanted = [function(e) for e in parse(docs / "library/functions.html").all("dl", "function")]
    assert len(items) > 40
    assert items == wanted
    assert any(item["changes"] for item in items)
    assert {"id", "name", "parameters"} == {"id", *items[0]["signature"]}


def function(entry: Element) -> Item:
    """Return what one definition says."""
    first = entry.all("dt")[0]
    name = first.first("span", "sig-name")
    named = (dt.attributes["id"] for dt in entry.all("dt") if "id" in dt.attributes)
    return {
        "id": next(named, None),
        "signature": {
            "name": None if name is None else name.text,
            "parameters": [em.text for em in first.all("em", "sig-param")],
        },
        "changes": [change(e) for dd in entry.all("dd") for e in dd.all("span", "versionmodified")],
    }


def change(mark: Element) -> Item:
    [kind] = mark.classes - {"versionmodified"}
    version = next(word for word in mark.text.split() if word[0].isdigit())
    return {"kind": kind, "version": version.strip(":,.")}
