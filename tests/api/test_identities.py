"""Saved identities over HTTP: secrets go in and come out at one place only."""

import json
from pathlib import Path
from typing import Any

import pytest

from farm.core.model import Namespace
from tests.api.stack import Stack
from tests.identities import MAX_STATE

STATE: dict[str, list[dict[str, Any]]] = {
    "cookies": [
        {"name": "sid", "value": "c00kie-value", "domain": "a.example", "path": "/", "secure": True}
    ],
    "origins": [
        {"origin": "https://a.example", "localStorage": [{"name": "t", "value": "l0cal-value"}]}
    ],
}
PROXY = {
    "server": "http://proxy.example:3128",
    "username": "us3r-name",
    "password": "pr0xy-password",
    "bypass": ["*.internal.example"],
}
SECRETS = ("c00kie-value", "l0cal-value", "us3r-name", "pr0xy-password")
JOB = {"name": "a", "steps": [{"goto": "https://a.example/"}]}


async def call(stack: Stack, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async with stack.http.request(
        method, f"{stack.url}/v1/{path}", json=body, headers=stack.as_admin()
    ) as response:
        text = await response.text()
        assert not any(secret in text for secret in SECRETS)
        return response.status, json.loads(text) if text else None


async def lent(stack: Stack, attempt_id: str, token: str, **keys: Any) -> tuple[int, Any]:
    async with stack.http.request(
        keys.pop("method", "GET"),
        f"{stack.url}/v1/attempts/{attempt_id}/identity",
        headers=stack.as_agent(**{"X-Tabfarm-Token": token}),
        **keys,
    ) as response:
        return response.status, await response.json()


async def shopper(stack: Stack, **body: Any) -> Any:
    status, view = await call(stack, "PUT", "identities/shopper", body)
    assert status in (200, 201), view
    return view


async def begun(stack: Stack, **keys: Any) -> Any:
    job_id = await stack.submit({**JOB, **keys})
    return await stack.start(job_id)


async def test_an_identity_is_made_shown_changed_and_forgotten(stack: Stack) -> None:
    options = {"locale": "nb-NO", "timezone": "Europe/Oslo"}
    body = {"options": options, "proxy": PROXY, "state": STATE}
    status, view = await call(stack, "PUT", "identities/shopper", body)
    assert status == 201
    assert view["version"] == 1
    assert {k: v for k, v in view["options"].items() if v is not None} == options
    assert view["proxy"] == {
        "server": PROXY["server"],
        "bypass": PROXY["bypass"],
        "credentials": True,
    }
    assert (view["state"]["cookies"], view["state"]["origins"]) == (1, 1)
    status, view = await call(stack, "PUT", "identities/shopper", {"proxy": None})
    assert (status, view["version"], view["proxy"]) == (200, 2, None)
    assert view["state"]["cookies"] == 1
    _, listed = await call(stack, "GET", "identities")
    assert listed == {"items": [view]}
    assert (await call(stack, "DELETE", "identities/shopper"))[0] == 204
    assert (await call(stack, "GET", "identities/shopper"))[0] == 404


async def test_what_is_stored_shows_nothing(stack: Stack, tmp_path: Path) -> None:
    await shopper(stack, state=STATE, proxy=PROXY)
    await stack.submit({**JOB, "proxy": PROXY})
    files = [path.read_bytes() for path in tmp_path.rglob("farm.db*")]
    assert any(b"proxy.example" in content for content in files)
    for secret in SECRETS:
        assert not any(secret.encode() in content for content in files)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"options": {"locael": "x"}}, "/options/locael"),
        ({"options": {"timezone": "Nowhere"}}, "/options/timezone"),
        ({"proxy": {"server": "ftp://p:1"}}, "/proxy/server"),
        ({"proxy": {"server": "http://u:pr0xy-password@p:1"}}, "/proxy/server"),
        ({"proxy": {"server": "http://p"}}, "/proxy/server"),
        ({"proxy": {"server": "http://p:1", "username": "us3r-name"}}, "/proxy"),
        ({"proxy": {"server": "http://p:1", "bypass": ["a b"]}}, "/proxy/bypass/0"),
        ({"state": {"cookies": [{"name": "a", "value": "v"}]}}, "/state/cookies/0/domain"),
        ({"state": {"origins": [{"origin": "nowhere"}]}}, "/state/origins/0/origin"),
    ],
)
async def test_what_is_wrong_is_pointed_at(stack: Stack, body: Any, pointer: str) -> None:
    status, problem = await call(stack, "PUT", "identities/shopper", body)
    assert status == 422
    assert pointer in [place["pointer"] for place in problem["errors"]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"optons": {}}, ("unknown key 'optons'", "options")),
        ({"options": {"locael": "x"}}, ("unknown key 'locael'", "locale")),
        ({"options": {"locale": "x!"}}, ("is a language tag such as en or en-GB", None)),
        ({"options": {"color_scheme": "drak"}}, ("should be 'light', 'dark'", "dark")),
        ({"options": {"viewport": 3}}, ("should be a mapping", None)),
        ({"proxy": {}}, ("is missing", None)),
        ({"proxy": {"server": "p:1"}}, ("should begin with http://", None)),
        ({"state": {"cookeis": []}}, ("should have cookies or origins", None)),
        ([], ("should be a mapping", None)),
    ],
)
async def test_what_is_wrong_is_said_in_the_words_of_a_job_file(
    stack: Stack, body: Any, said: tuple[str, str | None]
) -> None:
    _, problem = await call(stack, "PUT", "identities/shopper", body)
    (place,) = problem["errors"]
    assert place["detail"].startswith(said[0])
    assert place.get("suggestion") == said[1]


async def test_names_and_sizes_have_their_bounds(stack: Stack) -> None:
    assert (await call(stack, "PUT", "identities/a%20b", {}))[0] == 422
    cookie = STATE["cookies"][0]
    big = {"cookies": [{**cookie, "value": "x" * MAX_STATE}]}
    status, problem = await call(stack, "PUT", "identities/shopper", {"state": big})
    assert (status, problem["max_bytes"]) == (413, MAX_STATE)


async def test_another_namespace_sees_nothing_of_it(stack: Stack) -> None:
    await shopper(stack, state=STATE)
    _, stack.admin = await stack.tokens.add(scope="admin", namespace=Namespace("b"), name="b")
    assert (await call(stack, "GET", "identities"))[1] == {"items": []}
    assert (await call(stack, "GET", "identities/shopper"))[0] == 404
    assert (await call(stack, "DELETE", "identities/shopper"))[0] == 404
    status, problem = await call(stack, "POST", "jobs", {**JOB, "identity": {"name": "shopper"}})
    assert (status, problem["errors"][0]["pointer"]) == (422, "/identity/name")


async def test_a_job_names_an_identity_that_is_there_and_fits(stack: Stack) -> None:
    await shopper(stack, options={"viewport": {"width": 800, "height": 600}})
    wrong = {**JOB, "identity": {"name": "shoper"}}
    _, problem = await call(stack, "POST", "jobs", wrong)
    (place,) = problem["errors"]
    assert (place["pointer"], place["suggestion"]) == ("/identity/name", "shopper")
    await stack.submit({**JOB, "identity": {"name": "shopper"}, "browser": {"locale": "en"}})


async def test_a_running_attempt_is_lent_all_and_gives_back_what_it_leaves(stack: Stack) -> None:
    await shopper(stack, state=STATE, proxy=PROXY)
    attempt = await begun(stack, identity={"name": "shopper"})
    status, all_of_it = await lent(stack, attempt.attempt_id, "1.1")
    assert status == 200
    assert all_of_it["state"]["cookies"][0] == STATE["cookies"][0]
    assert all_of_it["state"]["cookies"][0]["value"] == "c00kie-value"
    assert all_of_it["proxy"]["credentials"] == {
        "username": "us3r-name",
        "password": "pr0xy-password",
    }
    assert (await call(stack, "PUT", "identities/shopper", {}))[0] == 409
    new: dict[str, list[Any]] = {"cookies": [], "origins": []}
    saved = await lent(stack, attempt.attempt_id, "1.1", method="PUT", json=new)
    assert saved == (200, {"version": 2})
    for token in ("1.2", "2.1"):
        stale = await lent(stack, attempt.attempt_id, token, method="PUT", json=STATE)
        assert stale[1]["type"] == "/problems/stale-assignment"
        assert (await lent(stack, attempt.attempt_id, token))[0] == 409
    await stack.finish(attempt)
    assert (await lent(stack, attempt.attempt_id, "1.1", method="PUT", json=STATE))[0] == 409
    assert (await lent(stack, attempt.attempt_id, "1.1"))[0] == 409
    _, view = await call(stack, "GET", "identities/shopper")
    assert (view["version"], view["state"]["cookies"]) == (2, 0)
    assert view["state"]["saved_by"] == attempt.attempt_id


async def test_nobody_but_the_agent_of_the_attempt_is_lent_anything(stack: Stack) -> None:
    await shopper(stack, state=STATE)
    attempt = await begun(stack, identity={"name": "shopper"})
    stack.owners.clear()
    assert (await lent(stack, attempt.attempt_id, "1.1"))[0] == 403
    stack.agent = stack.admin
    assert (await lent(stack, attempt.attempt_id, "1.1"))[0] == 403


async def test_a_jobs_own_proxy_goes_before_that_of_its_identity(stack: Stack) -> None:
    await shopper(stack, proxy={"server": "http://other.example:1"})
    own = await begun(stack, identity={"name": "shopper", "mode": "clone"}, proxy=PROXY)
    _, told = await lent(stack, own.attempt_id, "1.1")
    assert told["proxy"]["server"] == PROXY["server"]
    assert told["proxy"]["credentials"]["password"] == "pr0xy-password"
