"""Records from pages: fields, lists, hostile pages."""


import pytest

from .conftest import Runner

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

SHOP = """<base href="https://shop.example/list/">
<article class=product data-sku=a1><h3><a href="../p/1">First
   <b>thing</b></a></h3><p class=price>EUR 1,109.50</p>
  <ul class=tags><li>red</li><li> big  one </li></ul><span class=stock>yes</span>
  <div class=seller><i class=n>Ann</i><i class=r>4.5</i></div>
  <div class=rev><q>fine</q><i>5</i></div><div class=rev><q>poor</q><i>1</i></div>
  <img src="/a.png"><img src="b.png"></article>
<article class=product data-sku=a2><h3><a href="http://other.example/">Second</a></h3>
  <p class=price>on request</p></article>"""


async def test_every_kind_of_field_gives_its_value(run: Runner) -> None:
    items = await run.extract(
        SHOP,
        {
            "sku": "@data-sku",
            "title": {"selector": "h3 a", "required": True},
            "url": "h3 a@href",
            "price": {"selector": ".price", "type": "number"},
            "currency": {"selector": ".price", "regex": "[A-Z]{3}", "default": "EUR"},
            "tags": {"selector": ".tags li", "all": True},
            "first_tag": {"selector": ".tags li", "all": True, "limit": 1},
            "in_stock": {"selector": ".stock", "exists": True},
            "photos": {"selector": "img", "count": True},
            "pictures": {"selector": "img", "attribute": "src", "all": True},
            "seller": {
                "selector": ".seller",
                "fields": {"name": ".n", "rating": {"selector": ".r", "type": "number"}},
            },
            "reviews": {
                "list": ".rev",
                "fields": {"text": "q", "stars": {"selector": "i", "type": "number"}},
            },
            "one_review": {"list": ".rev", "fields": {"text": "q"}, "limit": 1},
            "inner": {"selector": ".tags", "html": "inner"},
            "outer": {"selector": ".stock", "html": "outer"},
            "where": {"value": "${page.url}"},
            "kind": {"selector": "h3", "prop": "tagName"},
        },
        list="article.product",
    )
    assert items == [
        {
            "sku": "a1",
            "title": "First thing",
            "url": "https://shop.example/p/1",
            "price": 1109.5,
            "currency": "EUR",
            "tags": ["red", "big one"],
            "first_tag": ["red"],
            "in_stock": True,
            "photos": 2,
            "pictures": ["https://shop.example/a.png", "https://shop.example/list/b.png"],
            "seller": {"name": "Ann", "rating": 4.5},
            "reviews": [{"text": "fine", "stars": 5}, {"text": "poor", "stars": 1}],
            "one_review": [{"text": "fine"}],
            "inner": "<li>red</li><li> big  one </li>",
            "outer": '<span class="stock">yes</span>',
            "where": "about:blank",
            "kind": "H3",
        },
        {
            "sku": "a2",
            "title": "Second",
            "url": "http://other.example/",
            "price": None,
            "currency": "EUR",
            "tags": [],
            "first_tag": [],
            "in_stock": False,
            "photos": 0,
            "pictures": [],
            "seller": None,
            "reviews": [],
            "one_review": [],
            "inner": None,
            "outer": None,
            "where": "about:blank",
            "kind": "H3",
        },
    ]


async def test_without_a_list_the_page_is_one_record(run: Runner) -> None:
    items = await run.extract(
        "<html lang=nl><title>T</title><h1>Head</h1><p>a</p><p>b</p>",
        {"title": "title", "head": "h1", "lang": "@lang", "text": {"selector": "body"}},
    )
    assert items == [{"title": "T", "head": "Head", "lang": "nl", "text": "Head a b"}]
