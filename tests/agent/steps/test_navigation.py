"""goto and its kin: answers, refusals, times."""

import asyncio

import pytest
from aiohttp import web
from playwright.async_api import Request, Route

from agent.ports import Denied
from farm.protocol.failures import Failure, Reason

from .conftest import Runner, Site

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def hang(_: web.Request) -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


def egress(status: int, mark: str) -> web.Response:
    return web.Response(status=status, text="own page", headers={"X-Tabfarm-Egress": mark})


async def goto(run: Runner, url: str, **more: object) -> Failure | None:
    return await run({"type": "goto", "url": url, **more})


async def test_goto_loads_pages_and_resolves_relative_addresses(run: Runner, site: Site) -> None:
    site.pages |= {"/a/": "<title>A</title>", "/b": "<title>B</title>", "/a/c": "C"}
    for url in (f" {site.url}/a/ ", "../b", "/a/", "c"):
        assert await goto(run, url) is None
    assert [seen for seen in site.requests if "favicon" not in seen] == [
        "GET /a/",
        "GET /b",
        "GET /a/",
        "GET /a/c",
    ]


@pytest.mark.parametrize("url", ["about:blank", "data:text/html,hi", "about:blank#x"])
async def test_pages_without_a_host_may_be_opened(run: Runner, url: str) -> None:
    assert await goto(run, url) is None


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        " fi\nle:///etc/passwd",
        "\x01file:///etc/passwd",
        "chrome://version",
        "view-source:http://127.0.0.1/",
        "devtools://devtools/bundled/inspector.html",
        "javascript:alert(1)",
        "about:srcdoc",
        "ftp://127.0.0.1/",
        "chrome-extension://abc/x.html",
        "filesystem:http://127.0.0.1/x",
    ],
)
async def test_other_schemes_are_denied_before_anything_happens(run: Runner, url: str) -> None:
    failure = await goto(run, url)
    assert failure is not None
    assert failure.reason is Reason.EGRESS_DENIED
    assert run.page.url == "about:blank"


@pytest.mark.parametrize("url", ["example", "/path", "http://", "https:///x", "http://[bad/"])
async def test_what_is_no_whole_address_is_invalid(run: Runner, url: str) -> None:
    failure = await goto(run, url)
    assert failure is not None
    assert failure.reason is Reason.VALUE_INVALID


async def test_expect_status_fails_with_the_status(run: Runner, site: Site) -> None:
    site.pages["/"] = "ok"
    assert await goto(run, f"{site.url}/", expect_status=[200, 204]) is None
    assert await goto(run, f"{site.url}/gone") is None
    failure = await goto(run, f"{site.url}/gone", expect_status=200)
    assert failure is not None
    assert (failure.reason, failure.status) == (Reason.HTTP_STATUS, 404)
    assert "expected 200, got 404" in failure.detail
    assert (failure.step_index, failure.step) == (0, "goto")


async def test_a_site_behind_a_tunnel_cannot_pose_as_the_egress_proxy(run: Runner) -> None:
    mark = {"X-Tabfarm-Egress": "denied"}

    async def posing(route: Route) -> None:
        await route.fulfill(status=403, headers=mark, body="no")

    await run.page.route("https://site.test/**", posing)
    assert await goto(run, "https://site.test/") is None


async def test_the_egress_proxys_own_answers_are_not_taken_for_the_sites(
    run: Runner, site: Site
) -> None:
    async def denied(_: web.Request) -> web.Response:
        return egress(403, "denied")

    async def silent(_: web.Request) -> web.Response:
        return egress(502, "unreachable")

    async def redirect(_: web.Request) -> web.Response:
        raise web.HTTPFound("/denied")

    async def forbidden(_: web.Request) -> web.Response:
        return web.Response(status=403, text="the site's own")

    site.pages |= {"/denied": denied, "/silent": silent, "/r": redirect, "/403": forbidden}
    host = site.url.removeprefix("http://")
    for path in ("/denied", "/r"):
        failure = await goto(run, site.url + path)
        assert failure is not None
        assert failure.reason is Reason.EGRESS_DENIED
        assert host in failure.detail
    failure = await goto(run, f"{site.url}/silent")
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED
    assert await goto(run, f"{site.url}/403") is None


async def test_a_refused_tunnel_is_told_by_what_the_proxy_recorded(
    run: Runner, unused_tcp_port: int
) -> None:
    url = f"https://127.0.0.1:{unused_tcp_port}/x"

    failure = await goto(run, url)
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED
    assert "net::ERR_CONNECTION_REFUSED" in failure.detail

    for unreachable, reason in (
        (False, Reason.EGRESS_DENIED),
        (True, Reason.NAVIGATION_FAILED),
    ):
        entry = Denied(
            url=f"127.0.0.1:{unused_tcp_port}", reason="why not", unreachable=unreachable
        )
        run.denied = []

        def record(_: Request, entry: Denied = entry) -> None:
            run.denied.append(entry)

        run.page.once("requestfailed", record)
        failure = await goto(run, url)
        assert failure is not None
        assert failure.reason is reason
        assert f"127.0.0.1:{unused_tcp_port}" in failure.detail
        assert "why not" in failure.detail


async def test_a_host_nobody_answers_at_fails_with_the_net_error(
    run: Runner, unused_tcp_port: int
) -> None:
    failure = await goto(run, f"http://127.0.0.1:{unused_tcp_port}/")
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED
    assert failure.detail.startswith("net::ERR_CONNECTION_REFUSED")


async def test_a_download_is_no_page(run: Runner, site: Site) -> None:
    async def file(_: web.Request) -> web.Response:
        return web.Response(body=b"x", headers={"Content-Disposition": "attachment"})

    site.pages["/file"] = file
    failure = await goto(run, f"{site.url}/file")
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED
    assert "a file to download" in failure.detail


@pytest.mark.parametrize("by_step", [True, False])
async def test_a_page_that_does_not_load_in_time_is_a_navigation_timeout(
    run: Runner, site: Site, by_step: bool
) -> None:
    site.pages |= {"/hang": hang, "/slow": "<p>x</p><img src=/hang>"}
    clocks = {"timeouts": {"navigation": 10_000 if by_step else 400}}
    own = {"timeout": 400} if by_step else {}
    for path in ("/hang", "/slow"):
        failure = await run({"type": "goto", "url": site.url + path, **own}, **clocks)
        assert failure is not None
        assert failure.reason is Reason.NAVIGATION_TIMEOUT
        assert "within 0.4 s" in failure.detail
    early = {"type": "goto", "url": f"{site.url}/slow", "wait_until": "domcontentloaded"}
    assert await run(early) is None


async def test_back_and_reload(run: Runner, site: Site) -> None:
    site.pages |= {"/a": "A", "/b": "B"}
    failure = await run(
        {"type": "goto", "url": f"{site.url}/a"},
        {"type": "goto", "url": f"{site.url}/b"},
        {"type": "back"},
        {"type": "assert", "url": "/a"},
        {"type": "reload"},
    )
    assert failure is None
    assert site.requests.count("GET /a") >= 2


async def test_there_may_be_no_page_to_go_back_to(run: Runner) -> None:
    failure = await run({"type": "back"})
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_FAILED


async def test_wait_for_url_waits_for_a_glob(run: Runner, site: Site) -> None:
    site.pages |= {
        "/a": "<script>setTimeout(() => { location = '/b?x=1' }, 150)</script>",
        "/b": "B",
    }
    assert await goto(run, f"{site.url}/a") is None
    assert await run({"type": "wait_for_url", "url": "**/{b,c}?x=*"}) is None
    assert await run({"type": "wait_for_url", "url": "/b?x=1"}) is None
    failure = await run({"type": "wait_for_url", "url": "**/never", "timeout": 300})
    assert failure is not None
    assert failure.reason is Reason.NAVIGATION_TIMEOUT
    assert "/b?x=1" in failure.detail


async def test_a_page_that_refreshes_itself_does_not_stop_the_next_goto(
    run: Runner, site: Site
) -> None:
    site.pages |= {
        "/m": "<meta http-equiv=refresh content='0; url=/other'>",
        "/js": "<script>location = '/other'</script>",
        "/other": "other",
        "/b": "b",
    }
    for path in ("/m", "/js"):
        assert await goto(run, site.url + path) is None
        assert await goto(run, f"{site.url}/b", expect_status=200) is None
        assert await run({"type": "assert", "url": "/b"}) is None
