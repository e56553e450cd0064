"""Through a proxy further out: it is told who we are, hosts are judged first, faults have names."""

import asyncio
import datetime as dt
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agent.chromium.discovery import Found
from agent.chromium.forwarder import Forwarder
from agent.egress.policy import Policy
from agent.egress.upstream import Upstream
from agent.ports import Denied, ProxyFault
from farm.protocol.failures import Reason
from farm.protocol.identities import ProxyRoute
from farm.protocol.plan import Egress
from tests.agent.chromium.conftest import Site
from tests.agent.chromium.journal import goto, plan
from tests.agent.chromium.rig import Rig, reason
from tests.agent.lending import Purse
from tests.patience import PATIENCE_S
from tests.proxies import PASSWORD, USERNAME, proxying

FAR = {"far.test": "127.0.0.1"}
"""A name that only the proxy knows."""
SCHEMES = ("http", "socks5")
WRONG = {"username": USERNAME, "password": "wr0ng"}


@asynccontextmanager
async def forwarding(
    route: dict[str, object], *allow: str
) -> AsyncIterator[tuple[Forwarder, list[Denied]]]:
    told: list[Denied] = []

    async def resolve(host: str, port: int) -> list[str]:
        assert host in ("localhost", "127.0.0.1"), f"{host} is the proxy's to resolve"
        return ["127.0.0.1"]

    forwarder = await Forwarder(told.append, resolver=resolve).start()
    upstream = Upstream.of(ProxyRoute.model_validate(route))
    allowed = (*allow, f"localhost:{upstream.port}")
    forwarder.apply(Policy.of(Egress(allow=allowed)), upstream)
    try:
        yield forwarder, told
    finally:
        await forwarder.close()


async def ask(forwarder: Forwarder, url: str) -> bytes:
    """Ask for a page in plain HTTP."""
    host = url.removeprefix("http://").partition("/")[0]
    return await say(forwarder, f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")


async def tunnel(forwarder: Forwarder, place: str, path: str = "/") -> bytes:
    """Ask for a page by way of a tunnel, as for https."""
    request = f"GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n"
    return await say(forwarder, f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n{request}")


async def say(forwarder: Forwarder, text: str) -> bytes:
    host, port = forwarder.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(text.encode())
    async with asyncio.timeout(PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_the_proxy_is_told_who_we_are_and_resolves_names_itself(
    site: Site, scheme: str
) -> None:
    async with proxying(scheme, names=FAR) as proxy, forwarding(proxy.route()) as (way, told):
        assert b"<h1>Home</h1>" in await ask(way, f"http://far.test:{site.port}/")
        assert b"<h1>Home</h1>" in await tunnel(way, f"far.test:{site.port}")
        assert proxy.places == [f"far.test:{site.port}"] * 2
    assert told == []


async def test_an_https_proxy_hears_it_under_tls(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = certified(tmp_path, monkeypatch)
    async with (
        proxying("https", names=FAR, tls=tls) as proxy,
        forwarding(proxy.route()) as (way, told),
    ):
        assert b"<h1>Home</h1>" in await ask(way, f"http://far.test:{site.port}/")
        assert b"<h1>Home</h1>" in await tunnel(way, f"far.test:{site.port}")
    async with proxying("https", tls=tls) as proxy:
        monkeypatch.delenv("SSL_CERT_FILE")
        async with forwarding(proxy.route()) as (way, told):
            assert b"502" in await tunnel(way, "far.test:443")
            assert told[0].proxy is ProxyFault.UNREACHABLE
            assert proxy.heads == []


def certified(directory: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's TLS for localhost, trusted by this process."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    today = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "proxy.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("told", [WRONG, None])
async def test_a_proxy_that_does_not_take_it_is_named_and_chromium_is_not_asked(
    scheme: str, told: dict[str, str] | None
) -> None:
    async with (
        proxying(scheme) as proxy,
        forwarding(proxy.route(credentials=told)) as (way, denied),
    ):
        for answer in (await ask(way, "http://far.test/"), await tunnel(way, "far.test:443")):
            assert answer.startswith(b"HTTP/1.1 502 ")
            assert b"X-Tabfarm-Egress: proxy_auth_refused" in answer
            assert b"Proxy-Authenticate" not in answer
        assert [one.proxy for one in denied] == [ProxyFault.AUTH_REFUSED] * 2
        assert (proxy.refused, proxy.places) == (2, [])
        assert "wr0ng" not in str(denied)


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_proxy_that_is_not_there_is_named(scheme: str) -> None:
    async with proxying(scheme) as proxy:
        route = proxy.route()
    async with forwarding(route) as (way, denied):
        for answer in (await ask(way, "http://far.test/"), await tunnel(way, "far.test:443")):
            assert b"X-Tabfarm-Egress: proxy_unreachable" in answer
        assert [one.proxy for one in denied] == [ProxyFault.UNREACHABLE] * 2


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_place_the_proxy_does_not_reach_is_no_fault_of_the_proxy(scheme: str) -> None:
    async with (
        proxying(scheme, names={"gone.test": "127.0.0.1"}) as proxy,
        forwarding(proxy.route()) as (way, denied),
    ):
        assert b"X-Tabfarm-Egress: unreachable" in await tunnel(way, "gone.test:1")
        assert [(one.proxy, one.unreachable) for one in denied] == [(None, True)]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "metadata.google.internal",
        "10.0.0.1",
        "127.0.0.1",
        "localhost",
        "shop.localhost",
        "[::1]",
        "[::ffff:10.0.0.1]",
    ],
)
async def test_hosts_are_judged_before_they_are_handed_on(scheme: str, host: str) -> None:
    async with proxying(scheme) as proxy, forwarding(proxy.route()) as (way, denied):
        assert (await ask(way, f"http://{host}/")).startswith(b"HTTP/1.1 403 ")
        assert (await tunnel(way, f"{host}:443")).startswith(b"HTTP/1.1 403 ")
        assert len(denied) == 2
        assert (proxy.places, proxy.heads, proxy.refused) == ([], [], 0)


async def test_the_proxy_itself_is_judged_as_any_other_place() -> None:
    async with proxying() as proxy:
        told: list[Denied] = []
        way = await Forwarder(told.append).start()
        way.apply(Policy(), Upstream.of(ProxyRoute.model_validate(proxy.route())))
        assert (await tunnel(way, "far.test:443")).startswith(b"HTTP/1.1 403 ")
        assert "the proxy may not be used" in told[0].reason
        await way.close()


async def test_what_is_to_go_past_it_does(site: Site) -> None:
    async with proxying(names=FAR) as proxy:
        route = proxy.route(bypass=[f"127.0.0.1:{site.port}", "*.near.test"])
        async with forwarding(route, site.allow) as (way, _):
            assert b"<h1>Home</h1>" in await ask(way, f"{site.url}/")
            assert b"<h1>Home</h1>" in await ask(way, f"http://far.test:{site.port}/")
        assert proxy.places == [f"far.test:{site.port}"]
    upstream = Upstream.of(ProxyRoute.model_validate(route | {"bypass": ["*.a.b", "10.0.0.0/8"]}))
    passed = {"x.a.b": True, "a.b": False, "xa.b": False, "10.1.2.3": True, "far.test": False}
    assert {host: upstream.is_passed(host, 80) for host in passed} == passed


async def test_another_proxy_cuts_what_went_by_the_first(site: Site) -> None:
    async with proxying(names=FAR) as one, proxying(names=FAR) as two:
        async with forwarding(one.route()) as (way, _):
            await ask(way, f"http://far.test:{site.port}/")
            other = Upstream.of(ProxyRoute.model_validate(two.route()))
            way.apply(Policy.of(Egress(allow=("localhost",))), other)
            await ask(way, f"http://far.test:{site.port}/")
        assert len(one.places) == len(two.places) == 1


@pytest.mark.browser
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_pages_go_through_it_and_chromium_knows_of_nothing(
    headless_browser: Found, site: Site, scheme: str
) -> None:
    site.pages["/"] = "<title>far</title><img src='/picture'><script src='/s.js'></script>"
    async with proxying(scheme, names=FAR) as proxy, Rig() as rig:
        await rig.window()
        allow = {"allow": [f"localhost:{proxy.port}"]}
        made = plan(goto(f"http://far.test:{site.port}/"), egress=allow, borrows={})
        outcome = await rig.browser.run("c", made, rig.journal, Purse(proxy=proxy.route()))
        assert outcome.outcome == "succeeded", outcome
        assert {"/", "/picture", "/s.js"} <= set(site.seen)
        assert set(proxy.places) == {f"far.test:{site.port}"}
        for process in psutil.Process(os.getpid()).children(recursive=True):
            try:
                known = " ".join((*process.cmdline(), *process.environ().values()))
            except psutil.NoSuchProcess:
                continue
            assert not any(secret in known for secret in (USERNAME, PASSWORD, f":{proxy.port}"))
        assert PASSWORD not in str(rig.journal.events)


@pytest.mark.browser
async def test_a_run_whose_proxy_fails_fails_by_that_name(
    headless_browser: Found, site: Site
) -> None:
    async with Rig() as rig, proxying() as proxy:
        for route, fault in (
            (proxy.route(credentials=WRONG), Reason.PROXY_AUTH_REFUSED),
            (proxy.route(server="http://localhost:1"), Reason.PROXY_UNREACHABLE),
        ):
            for url in ("http://far.test/", "https://far.test/"):
                await rig.window()
                made = plan(goto(url), egress={"allow": ["localhost"]}, borrows={})
                outcome = await rig.browser.run("c", made, rig.journal, Purse(proxy=route))
                assert reason(outcome) is fault, outcome
        assert rig.journal.notices("proxy_auth_refused")
