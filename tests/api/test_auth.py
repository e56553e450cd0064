from contextlib import suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import hdrs

from farm.api import auth
from farm.api.app import API
from farm.api.auth import TokenBook
from farm.api.routes import ROUTES, Access, Route
from farm.core.model import Instant, Namespace
from tests.api.stack import Stack

CLOSED = [route for route in API if route.access is not Access.OPEN]
ADMIN_ONLY = [route for route in API if route.access is Access.ADMIN]


def path_of(route: Route) -> str:
    path = route.path
    for name in ("job_id", "attempt_id", "token_id", "name"):
        path = path.replace(f"{{{name}}}", "x")
    return path


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


async def ask(stack: Stack, method: str, path: str, **headers: str) -> tuple[int, Any, Any]:
    async with stack.http.request(method, stack.url + path, headers=headers) as response:
        body = None
        with suppress(aiohttp.ContentTypeError):
            body = await response.json(content_type=None) if response.content_length else None
        return response.status, body, response.headers


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
async def test_no_route_opens_without_a_token(stack: Stack, route: Route) -> None:
    status, body, headers = await ask(stack, route.method, path_of(route))
    assert status == 401
    assert body["type"] == "/problems/unauthorized"
    assert headers["WWW-Authenticate"] == "Bearer"
    assert headers["Content-Type"].startswith("application/problem+json")


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
async def test_no_route_opens_with_a_wrong_token(stack: Stack, route: Route) -> None:
    status, _, _ = await ask(
        stack, route.method, path_of(route), Authorization=f"Bearer {stack.admin}x"
    )
    assert status == 401


@pytest.mark.parametrize("route", CLOSED, ids=name_of)
async def test_no_route_takes_the_token_from_anywhere_but_the_header(
    stack: Stack, route: Route
) -> None:
    path = f"{path_of(route)}?token={stack.admin}&access_token={stack.admin}"
    status, _, _ = await ask(stack, route.method, path, Cookie=f"token={stack.admin}")
    assert status == 401


@pytest.mark.parametrize("route", ADMIN_ONLY, ids=name_of)
async def test_an_agents_token_opens_no_route_of_the_admins(stack: Stack, route: Route) -> None:
    status, body, _ = await ask(stack, route.method, path_of(route), **stack.as_agent())
    assert status == 403
    assert body["type"] == "/problems/forbidden"


async def test_an_admins_token_opens_no_route_of_the_agents(stack: Stack) -> None:
    path = "/v1/attempts/x/artifacts/x"
    assert (await ask(stack, "PUT", path, **stack.as_admin()))[0] == 403
    assert (await ask(stack, "GET", "/v1/agent", **stack.as_admin()))[0] == 403


async def test_the_agents_socket_is_closed_without_a_token(stack: Stack) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
        await stack.http.ws_connect(f"{stack.url}/v1/agent")


async def test_an_agent_may_open_its_socket(stack: Stack) -> None:
    async with stack.http.ws_connect(f"{stack.url}/v1/agent", headers=stack.as_agent()) as socket:
        assert await socket.receive_str(timeout=5) in stack.owners.values()


async def test_a_page_of_another_origin_may_not_open_the_socket(stack: Stack) -> None:
    headers = stack.as_agent(Origin="https://evil.example")
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await stack.http.ws_connect(f"{stack.url}/v1/agent", headers=headers)


async def test_what_no_route_has_is_refused_like_everything_without_a_token(stack: Stack) -> None:
    assert (await ask(stack, "GET", "/nothing/here"))[0] == 401
    status, body, _ = await ask(stack, "GET", "/nothing/here", **stack.as_admin())
    assert (status, body["type"]) == (404, "/problems/not-found")


async def test_a_method_that_is_not_offered_is_a_problem_that_names_the_others(
    stack: Stack,
) -> None:
    status, body, headers = await ask(stack, "PATCH", "/v1/jobs", **stack.as_admin())
    assert (status, body["type"]) == (405, "/problems/method-not-allowed")
    assert set(headers["Allow"].split(",")) == {"GET", "POST"}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "localhost.x"]
)
async def test_a_foreign_host_name_is_refused_even_with_a_token(stack: Stack, host: str) -> None:
    status, body, _ = await ask(stack, "GET", "/v1/jobs", **stack.as_admin(Host=host))
    assert status == 421
    assert body["type"] == "/problems/misdirected-request"


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:9", "farm.example", "Farm.Example.:8700"],
)
async def test_loopback_and_the_hosts_of_the_settings_are_answered(stack: Stack, host: str) -> None:
    assert (await ask(stack, "GET", "/v1/jobs", **stack.as_admin(Host=host)))[0] == 200


@pytest.mark.parametrize("path", ["/v1/jobs", "/healthz", "/nothing", "/v1/jobs/x"])
async def test_every_answer_has_the_security_headers_and_none_of_cors(
    stack: Stack, path: str
) -> None:
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    for method in ("GET", "OPTIONS"):
        _, _, headers = await ask(stack, method, path, **stack.as_admin(**origin))
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "X-Request-ID" in headers
        assert hdrs.SERVER not in headers
        assert not [name for name in headers if name.lower().startswith("access-control-")]


async def test_a_revoked_token_opens_nothing_at_once(stack: Stack) -> None:
    async with stack.http.post(
        f"{stack.url}/v1/tokens", json={"scope": "admin", "name": "x"}, headers=stack.as_admin()
    ) as response:
        assert response.status == 201
        made = await response.json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert (await ask(stack, "GET", "/v1/jobs", **bearer))[0] == 200
    status, _, _ = await ask(stack, "DELETE", f"/v1/tokens/{made['id']}", **stack.as_admin())
    assert status == 204
    assert (await ask(stack, "GET", "/v1/jobs", **bearer))[0] == 401


async def test_revoking_a_token_that_is_not_there_is_not_found(stack: Stack) -> None:
    status, _, _ = await ask(stack, "DELETE", "/v1/tokens/tok_wrong", **stack.as_admin())
    assert status == 404


async def test_the_secret_of_a_token_is_not_kept(stack: Stack) -> None:
    record, secret = await stack.tokens.add(scope="agent", namespace=Namespace("n"), name="x")
    assert secret not in repr(record)
    assert len(secret) > 40


async def test_a_token_revoked_elsewhere_is_noticed_within_ten_seconds(stack: Stack) -> None:
    now = Instant(1000.0)
    book = TokenBook(stack.ledger, lambda: now)
    record, secret = await book.add(scope="admin", namespace=Namespace("default"), name="x")
    assert await book.principal(secret) is not None
    await stack.ledger.revoke_token(record.token_id, now=now)
    assert await book.principal(secret) is not None
    now = Instant(1010.0)
    assert await book.principal(secret) is None


async def test_the_book_keeps_a_bounded_number_of_tokens_at_hand(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_CACHE_SIZE", 3)
    for number in range(10):
        _, secret = await stack.tokens.add(scope="agent", namespace=Namespace("n"), name="x")
        assert await stack.tokens.principal(secret) is not None
        assert await stack.tokens.principal(f"guess-{number}") is None
    assert len(stack.tokens._seen) == 3


async def test_a_token_shows_only_its_own_namespaces_jobs(stack: Stack) -> None:
    job_id = await stack.submit()
    _, secret = await stack.tokens.add(scope="admin", namespace=Namespace("other"), name="x")
    other = {"Authorization": f"Bearer {secret}"}
    for path in ("", "/items", "/events", "/artifacts", "/artifacts/x"):
        assert (await ask(stack, "GET", f"/v1/jobs/{job_id}{path}", **other))[0] == 404
    assert (await ask(stack, "POST", f"/v1/jobs/{job_id}/cancel", **other))[0] == 404
    assert (await ask(stack, "GET", "/v1/jobs", **other))[1]["items"] == []


async def test_every_route_served_is_in_the_table(stack: Stack) -> None:
    served = {
        (route.method, route.resource.canonical)
        for route in stack.app.router.routes()
        if route.resource is not None
    }
    table = stack.app[ROUTES]
    assert served == table.keys()


async def test_a_lent_token_opens_until_it_is_given_back_and_is_written_nowhere(
    stack: Stack,
) -> None:
    with stack.tokens.lend(scope="agent", namespace=Namespace("n"), name="x") as secret:
        bearer = await stack.tokens.principal(secret)
        assert bearer is not None
        assert (bearer.scope, bearer.namespace) == ("agent", "n")
        assert await stack.ledger.token(auth.hash_of(secret)) is None
    assert await stack.tokens.principal(secret) is None
