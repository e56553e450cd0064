from collections.abc import AsyncIterator
from html.parser import HTMLParser

import pytest
from aiohttp import ClientTimeout, web
from aiohttp.test_utils import TestClient, TestServer

from examples.shop import Orders, build_app
from examples.shop.catalogue import PRODUCTS

Shop = TestClient[web.Request, web.Application]


class Tags(HTMLParser):
    """Every element of a page, as (tag, attributes)."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.found if t == tag and dict(wanted).items() <= a.items()]


@pytest.fixture
def orders() -> Orders:
    return Orders()


@pytest.fixture
async def shop(orders: Orders) -> AsyncIterator[Shop]:
    async with TestClient(TestServer(build_app(orders))) as client:
        yield client


async def tags(shop: Shop, path: str) -> Tags:
    async with shop.get(path) as response:
        assert response.status == 200
        return Tags(await response.text())


async def test_the_listing_leads_through_all_products_page_by_page(shop: Shop) -> None:
    skus: list[str | None] = []
    sizes = []
    path: str | None = "/products"
    while path is not None:
        page = await tags(shop, path)
        found = [a["data-sku"] for a in page.all("article")]
        sizes.append(len(found))
        skus += found
        following = page.all("a", rel="next")
        path = following[0]["href"] if following else None
    assert sizes == [8, 8, 8]
    assert skus == [product.sku for product in PRODUCTS]


async def test_stock_is_shown_only_for_what_is_there(shop: Shop) -> None:
    page = await tags(shop, "/products")
    shown = len([a for _, a in page.found if a.get("class") == "stock"])
    assert shown == sum(product.stock > 0 for product in PRODUCTS[:8])
    assert 0 < shown < 8


def test_prices_are_written_with_a_currency_and_a_thousands_separator() -> None:
    assert any("," in product.price for product in PRODUCTS)
    assert all(product.price.startswith("EUR ") for product in PRODUCTS)
    assert len({product.sku for product in PRODUCTS}) == 24


async def test_every_product_has_a_page_with_its_photos_and_reviews(shop: Shop) -> None:
    for product in PRODUCTS:
        page = await tags(shop, f"/products/{product.sku}")
        assert len(page.all("svg")) == product.photos
        assert len(page.all("blockquote")) == len(product.reviews)
    assert any(product.reviews for product in PRODUCTS)


@pytest.mark.parametrize(
    "path", ["/products/TF-1", "/products?page=4", "/products?page=x", "/thanks?order=1"]
)
async def test_what_does_not_exist_is_not_found(shop: Shop, path: str) -> None:
    async with shop.get(path) as response:
        assert response.status == 404


async def test_the_account_is_open_only_after_logging_in(shop: Shop) -> None:
    async with shop.get("/account") as response:
        assert response.url.path == "/login"
    async with shop.post("/login", data={"user": "demo", "password": "wrong"}) as response:
        assert response.status == 403
    async with shop.post("/login", data={"user": "demo", "password": "demo"}) as response:
        assert response.url.path == "/account"
        assert "Welcome" in await response.text()
    async with shop.post("/logout") as response:
        assert response.url.path == "/"
    async with shop.get("/account") as response:
        assert response.url.path == "/login"


async def count(shop: Shop) -> object:
    async with shop.get("/order/count") as response:
        return (await response.json())["count"]


async def test_an_order_is_counted_once_and_thanked_for(shop: Shop, orders: Orders) -> None:
    async with shop.post("/order", data={"name": "<Buyer>", "quantity": "2"}) as response:
        text = await response.text()
    assert response.url.path == "/thanks"
    assert "Thank you, &lt;Buyer&gt;" in text
    async with shop.get(response.url.path_qs) as again:
        assert again.status == 200
    assert await count(shop) == 1
    assert [(order.name, order.quantity) for order in orders.placed] == [("<Buyer>", 2)]


async def test_an_incomplete_order_is_refused_and_not_counted(shop: Shop) -> None:
    async with shop.post("/order", data={"name": "Buyer", "quantity": "many"}) as response:
        assert response.status == 422
    assert await count(shop) == 0


async def test_an_order_counts_before_its_delayed_answer(shop: Shop, orders: Orders) -> None:
    with pytest.raises(TimeoutError):
        await shop.post(
            "/order?delay_ms=60000",
            data={"name": "Buyer", "quantity": "1"},
            timeout=ClientTimeout(total=0.3),
        )
    assert len(orders.placed) == 1


async def test_the_order_form_passes_its_delay_on(shop: Shop) -> None:
    page = await tags(shop, "/order?delay_ms=250")
    assert page.all("form", method="post")[0]["action"] == "/order?delay_ms=250"


async def test_the_invoice_is_a_download(shop: Shop) -> None:
    async with shop.get("/invoice.csv") as response:
        assert response.headers["Content-Disposition"].startswith("attachment")
        assert (await response.text()).splitlines()[0] == "sku,title,price"


async def test_a_status_and_a_redirect_are_as_asked_for(shop: Shop) -> None:
    async with shop.get("/status/503") as response:
        assert response.status == 503
    async with shop.get("/redirect?to=/slow%3Fms=1", allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (302, "/slow?ms=1")


async def test_a_response_that_hangs_never_comes(shop: Shop) -> None:
    with pytest.raises(TimeoutError):
        await shop.get("/hang-response", timeout=ClientTimeout(total=0.2))


@pytest.mark.parametrize("path", ["/", "/hang", "/crash", "/popup", "/dialog", "/slow?ms=1"])
async def test_every_other_page_is_served(shop: Shop, path: str) -> None:
    assert (await tags(shop, path)).all("h1")


async def test_the_shop_refers_to_nothing_outside(shop: Shop) -> None:
    for path in ("/", "/products", f"/products/{PRODUCTS[0].sku}", "/login", "/order"):
        for _, attributes in (await tags(shop, path)).found:
            for name in ("href", "src", "action"):
                value = attributes.get(name) or "/"
                assert value.startswith("/"), (path, value)
