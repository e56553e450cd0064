"""Who may look: links, what they open, and how long; the page, and what it may do."""

import re

import aiohttp
import pytest

from farm.api.live.links import LiveLinks
from farm.core.model import Instant, Namespace
from tests.api.live.tab import StandInAgent, link, page_of, viewer
from tests.api.stack import DEFAULT, Stack


@pytest.fixture
async def agent(stack: Stack) -> StandInAgent:
    """One with a tab that is lent."""
    one = StandInAgent(stack)
    await one.arrive()
    await one.lend()
    return one


async def status_of(stack: Stack, path: str, **headers: str) -> int:
    async with stack.http.get(stack.url + path, headers=headers, allow_redirects=False) as answer:
        return answer.status


async def test_a_link_leads_to_the_page_and_is_gone_from_its_address(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        async with browser.get(stack.url + path) as page:
            assert page.status == 200
            assert str(page.url).endswith(page_of(agent))
            assert "link=" not in str(page.url)
            assert page.headers["Referrer-Policy"] == "no-referrer"
            assert page.headers["Cache-Control"] == "no-store"
        async with browser.get(stack.url + page_of(agent)) as again:
            assert again.status == 200


async def test_the_cookie_is_for_that_tab_and_no_script_can_read_it(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name, lasts_s=60)
    async with stack.http.get(stack.url + path, allow_redirects=False) as answer:
        cookie = answer.cookies["tabfarm_live"]
        assert answer.status == 303
    assert cookie["path"] == page_of(agent)
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert 0 < int(cookie["max-age"]) <= 60


async def test_the_page_loads_nothing_and_nothing_else_runs_in_it(
    stack: Stack, agent: StandInAgent
) -> None:
    async with stack.http.get(stack.url + page_of(agent), headers=stack.as_admin()) as answer:
        html, policy = await answer.text(), answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"""(src|href)=["'](?!data:)""", html)
    assert "://" not in html
    assert "innerHTML" not in html


async def test_a_link_opens_its_own_tab_and_nothing_else(stack: Stack, agent: StandInAgent) -> None:
    secret = (await link(stack, context=agent.name)).partition("?")[2]
    assert await status_of(stack, f"{page_of(agent)}?{secret}") == 303
    assert await status_of(stack, f"/v1/live?{secret}") == 401
    assert await status_of(stack, f"/v1/live/T2@1@agent-1?{secret}") == 401
    assert await status_of(stack, f"/v1/jobs?{secret}") == 401
    assert await status_of(stack, "/v1/jobs", Cookie=f"tabfarm_live={secret[5:]}") == 401


async def test_the_walls_link_opens_every_tab_of_its_namespace_for_looking(
    stack: Stack, agent: StandInAgent
) -> None:
    secret = (await link(stack)).partition("?")[2]
    assert await status_of(stack, f"/v1/live?{secret}") == 303
    async with viewer(stack, f"{page_of(agent)}?{secret}") as one, agent.channel():
        assert (await one.hears("scene"))["mode"] == "view"
    assert await status_of(stack, f"/v1/live/none@1@agent-1?{secret}") == 404


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"context": "T9@1@agent-1"}, 404),
        ({"mode": "control"}, 422),
        ({"mode": "drive"}, 422),
        ({"name": "<script>"}, 422),
        ({"lasts_s": 0}, 422),
        ({"lasts_s": 1e9}, 422),
        ({"for": "ever"}, 422),
    ],
)
async def test_a_link_that_makes_no_sense_is_not_made(
    stack: Stack, wanted: dict[str, object], status: int
) -> None:
    url = f"{stack.url}/v1/live-links"
    async with stack.http.post(url, json=wanted, headers=stack.as_admin()) as answer:
        assert answer.status == status, await answer.text()


async def test_another_namespaces_tab_is_not_there(stack: Stack, agent: StandInAgent) -> None:
    _, secret = await stack.tokens.add(scope="admin", namespace=Namespace("other"), name="o")
    theirs = {"Authorization": f"Bearer {secret}"}
    assert await status_of(stack, page_of(agent), **theirs) == 404
    async with stack.http.post(
        f"{stack.url}/v1/live-links", json={"context": agent.name}, headers=theirs
    ) as answer:
        assert answer.status == 404
    async with viewer(stack, "/v1/live", **theirs) as wall:
        assert (await wall.hears("tabs"))["tabs"] == []


async def test_a_tab_that_is_not_lent_is_not_shown(stack: Stack) -> None:
    agent = StandInAgent(stack)
    await agent.arrive()
    assert await status_of(stack, page_of(agent), **stack.as_admin()) == 404


async def test_an_agents_token_shows_nothing(stack: Stack, agent: StandInAgent) -> None:
    assert await status_of(stack, page_of(agent), **stack.as_agent()) == 403


async def test_a_page_of_another_origin_may_not_open_the_socket(
    stack: Stack, agent: StandInAgent
) -> None:
    path = await link(stack, context=agent.name)
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await stack.http.ws_connect(stack.url + path, headers={"Origin": "https://evil.example"})


def test_a_link_says_nothing_once_its_time_is_over_or_a_letter_is_another() -> None:
    now = 100.0
    links = LiveLinks(b"key", lambda: Instant(now))
    _, secret = links.mint(
        namespace=DEFAULT, context="T1@1@a", mode="view", name="x", expires_at=Instant(110.0)
    )
    grant = links.read(secret)
    assert grant is not None
    assert (grant.namespace, grant.context, grant.mode) == (DEFAULT, "T1@1@a", "view")
    assert LiveLinks(b"other key", lambda: Instant(now)).read(secret) is None
    for position in range(len(secret)):
        other = "A" if secret[position] != "A" else "B"
        changed = links.read(secret[:position] + other + secret[position + 1 :])
        # The last letter of base64 has bits that mean nothing.
        assert changed is None or changed == grant
    now = 110.0
    assert links.read(secret) is None


@pytest.mark.parametrize(
    "secret", ["", ".", "lv1", "lv1..", "lv1.e30.e30", "lv1.\x00.é", "a" * 9999]
)
def test_what_is_no_link_is_none(secret: str) -> None:
    assert LiveLinks(b"key", lambda: Instant(0.0)).read(secret) is None
