"""Every form of selector, on one page."""

import pytest
from playwright.async_api import Page

from agent.steps.selectors import locate
from farm.protocol.failures import Reason

from .conftest import Runner

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PAGE = """<h1 id=h>Shop</h1><nav><a id=a href=#><h2>Cart</h2></a></nav>
<button id=b><img alt="Save it"></button><button id=b2>Save</button>
<label for=q>Amount</label><input id=q placeholder="How many">
<input id=d title="Due date" data-testid=due><img id=i alt="Red shoe">
<button id=n>Next >> page</button><p id=t>It's here</p>
<my-box id=m></my-box>
<iframe id=f srcdoc="<button id=in>Pay</button><label>Card<input id=card></label>"></iframe>
<script>m.attachShadow({mode: 'open'}).innerHTML = '<i id=s>deep</i>'</script>"""


@pytest.mark.parametrize(
    ("selector", "wanted"),
    [
        ("#h", "h"),
        ("css/#h", "h"),
        ("css=#h", "h"),
        ("pierce/#s", "s"),
        ("#s", "s"),
        ("my-box >> i", "s"),
        ("xpath///h1", "h"),
        ("xpath=//h1", "h"),
        ("//h1", "h"),
        ("text/Shop", "h"),
        ("text=Shop", "h"),
        ('text="Shop"', "h"),
        ("text/It's here", "t"),
        ("text/Next >> page", "n"),
        ("aria/Cart", "a"),
        ("aria/Shop", "h"),
        ("aria/Save it", "b"),
        ("aria/Amount", "q"),
        ("aria/Red shoe", "i"),
        ("aria/Next >> page", "n"),
        ('aria/Save[role="button"]', "b2"),
        ("aria/[name='Save'][role='button']", "b2"),
        ('aria/[role="textbox"][name="Amount"]', "q"),
        ('role=button[name="Save"s]', "b2"),
        ("label=Amount", "q"),
        ("placeholder=How many", "q"),
        ('placeholder="How many"', "q"),
        ("testid=due", "d"),
        ("alt=Red shoe", "i"),
        ("title=Due date", "d"),
        ("nav >> a", "a"),
        ("button >> nth=0", "b"),
        ("nav >> text=Cart >> xpath=..", "a"),
        ("iframe#f >> button", "in"),
        ("#f", "f"),
        ("iframe >> label=Card", "card"),
        ("button:has-text('Next')", "n"),
    ],
)
async def test_a_form_finds_its_element(tab: Page, selector: str, wanted: str) -> None:
    await tab.set_content(PAGE)
    assert await locate(tab, selector).get_attribute("id", timeout=2_000) == wanted


@pytest.mark.parametrize(
    "selector",
    [
        "a[",
        "a:nope",
        "xpath///[",
        "//a[@",
        "foo=bar",
        "role=[name=x]",
        "role=button[foo=1]",
        "role=button[name=",
        "a:has-text(",
        "::-p-aria(x)",
        "a >> ",
        " > ",
    ],
)
async def test_what_cannot_be_parsed_is_invalid(run: Runner, selector: str) -> None:
    failure = await run.on(PAGE, {"type": "click", "selector": selector}, timeouts={"step": 700})
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_INVALID
    assert run.evidence.begun == []


async def test_two_matches_are_ambiguous_and_the_cure_is_named(run: Runner) -> None:
    failure = await run.on(PAGE, {"type": "click", "selector": "button"})
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_AMBIGUOUS
    assert "matches 3 elements" in failure.detail
    assert "first: true" in failure.detail
    assert run.evidence.begun == []


async def test_first_and_nth_choose_among_many(run: Runner) -> None:
    failure = await run.on(
        "<p onclick='this.id=1'>a</p><p onclick='this.id=1'>b</p><p onclick='this.id=1'>c</p>",
        {"type": "click", "selector": "p", "first": True},
        {"type": "click", "selector": "p", "nth": 2},
    )
    assert failure is None
    assert await run.page.locator("p[id]").all_inner_texts() == ["a", "c"]


async def test_what_is_not_there_is_not_found_and_says_how_long_was_waited(run: Runner) -> None:
    failure = await run.on(PAGE, {"type": "click", "selector": "#nope", "timeout": 1000})
    assert failure is not None
    assert failure.reason is Reason.SELECTOR_NOT_FOUND
    assert failure.detail == "nothing matched '#nope' within 1 s"
    assert run.evidence.begun == []
