"""The shop as an aiohttp application: its routes, its sessions and its orders, all in memory.

Ordering needs no login: the form is there to be submitted exactly once, and `/order/count` says
how often it was.
"""

import asyncio
import csv
import io
import secrets
from dataclasses import dataclass, field

from aiohttp import web

from examples.shop import pages, trouble
from examples.shop.catalogue import PAGES, PRODUCTS
from examples.shop.style import CSS

_COOKIE = "shop_session"
_USERS = {"demo": "demo"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One submission of the order form."""

    name: str
    quantity: int


@dataclass(slots=True)
class Orders:
    """Everything that was ordered since the shop opened."""

    placed: list[Order] = field(default_factory=list)


ORDERS = web.AppKey("orders", Orders)
SESSIONS = web.AppKey("sessions", dict[str, str])


def build_app(orders: Orders | None = None) -> web.Application:
    """Build a shop with no sessions; `orders` lets a caller see what was ordered."""
    app = web.Application()
    app[ORDERS] = orders if orders is not None else Orders()
    app[SESSIONS] = {}
    app.add_routes(
        [
            web.get("/", _home),
            web.get("/style.css", _style),
            web.get("/favicon.ico", _favicon),
            web.get("/products", _products),
            web.get("/products/{sku}", _product),
            web.get("/login", _login_form),
            web.post("/login", _login),
            web.post("/logout", _logout),
            web.get("/account", _account),
            web.get("/order", _order_form),
            web.post("/order", _order),
            web.get("/order/count", _count),
            web.get("/thanks", _thanks),
            web.get("/invoice.csv", _invoice),
            *trouble.ROUTES,
        ]
    )
    return app


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


def _user(request: web.Request) -> str | None:
    return request.app[SESSIONS].get(request.cookies.get(_COOKIE, ""))


async def _home(request: web.Request) -> web.Response:
    return _html(pages.home(_user(request)))


async def _style(request: web.Request) -> web.Response:
    return web.Response(text=CSS, content_type="text/css")


async def _favicon(request: web.Request) -> web.Response:
    return web.Response(status=204)


async def _products(request: web.Request) -> web.Response:
    page = request.query.get("page", "1")
    if not page.isdecimal() or not 1 <= int(page) <= PAGES:
        return _html(pages.layout("Not found", "<h1>No such page</h1>"), 404)
    return _html(pages.listing(int(page), _user(request)))


async def _product(request: web.Request) -> web.Response:
    text = pages.product_page(request.match_info["sku"], _user(request))
    if text is None:
        return _html(pages.layout("Not found", "<h1>No such product</h1>"), 404)
    return _html(text)


async def _login_form(request: web.Request) -> web.Response:
    return _html(pages.login(None))


async def _login(request: web.Request) -> web.Response:
    form = await request.post()
    user, password = str(form.get("user", "")), str(form.get("password", ""))
    if not password or _USERS.get(user) != password:
        return _html(pages.login("That user and password do not belong together."), 403)
    session = secrets.token_urlsafe(16)
    request.app[SESSIONS][session] = user
    response = web.Response(status=303, headers={"Location": "/account"})
    response.set_cookie(_COOKIE, session, httponly=True, samesite="Lax")
    return response


async def _logout(request: web.Request) -> web.Response:
    request.app[SESSIONS].pop(request.cookies.get(_COOKIE, ""), None)
    response = web.Response(status=303, headers={"Location": "/"})
    response.del_cookie(_COOKIE)
    return response


async def _account(request: web.Request) -> web.Response:
    user = _user(request)
    if user is None:
        return web.Response(status=303, headers={"Location": "/login"})
    return _html(pages.account(user))


async def _order_form(request: web.Request) -> web.Response:
    delay_ms = trouble.milliseconds(request, "delay_ms")
    return _html(pages.order(delay_ms, request.query.get("sku", ""), _user(request)))


async def _order(request: web.Request) -> web.Response:
    """Take the order first and answer late: who is killed in between has ordered all the same."""
    form = await request.post()
    name, quantity = str(form.get("name", "")).strip(), str(form.get("quantity", ""))
    if not name or not quantity.isdecimal() or not 1 <= int(quantity) <= 99:
        return _html(pages.layout("Order", '<p class="error">Name or quantity missing.</p>'), 422)
    placed = request.app[ORDERS].placed
    placed.append(Order(name=name, quantity=int(quantity)))
    number = len(placed)
    await asyncio.sleep(trouble.milliseconds(request, "delay_ms") / 1000)
    return web.Response(status=303, headers={"Location": f"/thanks?order={number}"})


async def _count(request: web.Request) -> web.Response:
    return web.json_response({"count": len(request.app[ORDERS].placed)})


async def _thanks(request: web.Request) -> web.Response:
    placed, number = request.app[ORDERS].placed, request.query.get("order", "")
    if not number.isdecimal() or not 1 <= int(number) <= len(placed):
        return _html(pages.layout("Not found", "<h1>No such order</h1>"), 404)
    return _html(pages.thanks(placed[int(number) - 1].name, int(number), _user(request)))


async def _invoice(request: web.Request) -> web.Response:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(("sku", "title", "price"))
    rows.writerows((p.sku, p.title, p.price) for p in PRODUCTS[:3])
    return web.Response(
        text=text.getvalue(),
        content_type="text/csv",
        headers={"Content-Disposition": 'attachment; filename="invoice.csv"'},
    )
