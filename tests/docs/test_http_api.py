import re
from pathlib import Path

from aiohttp import web

from farm.api.agents import agent_route
from farm.api.app import API
from farm.api.errors import STATUS
from farm.api.live.routes import live_routes
from farm.api.polling import poll_routes
from farm.api.request_state import Principal
from farm.api.verify import verify_route
from farm.protocol.problems import TYPE_PREFIX

PAGE = (Path(__file__).parents[2] / "docs" / "http-api.md").read_text()


async def _nothing(request: web.Request, _: Principal) -> web.StreamResponse:
    raise AssertionError("only the route's description is looked at")


ROUTES = (
    *API,
    agent_route(_nothing),
    *poll_routes(None),  # type: ignore[arg-type]  # as `_nothing`
    verify_route(None),  # type: ignore[arg-type]  # as `_nothing`
    *live_routes(None),  # type: ignore[arg-type]  # as `_nothing`
)


def test_the_page_names_every_route_and_no_other() -> None:
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    assert set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`]*)`", PAGE)) == routes


def test_every_example_calls_a_route_that_there_is() -> None:
    paths = [re.sub(r"\{\w+\}", "[^/]+", route.path) for route in ROUTES]
    called = re.findall(r'"\$FARM(/[^"?]*)', PAGE)
    assert called
    assert [path for path in called if not any(re.fullmatch(p, path) for p in paths)] == []


def test_the_page_lists_every_problem_with_its_status() -> None:
    listed = set(re.findall(r"^\| (\d{3}) \| `([^`]+)`", PAGE, re.MULTILINE))
    assert listed == {
        (str(status.value), TYPE_PREFIX + error.slug) for error, status in STATUS.items()
    }
