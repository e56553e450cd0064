"""The shop's ordinary pages, as HTML."""

from html import escape

from examples.shop.catalogue import BY_SKU, PAGE_SIZE, PAGES, PRODUCTS, Product
from examples.shop.style import picture


def layout(title: str, body: str, *, user: str | None = None) -> str:
    """Put a page's body between the shop's header and footer."""
    account = f'<a href="/account">{escape(user)}</a>' if user else '<a href="/login">Log in</a>'
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Corner Shop</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head>
<body><header><nav><a class="brand" href="/">Corner Shop</a><a href="/products">Products</a>
<a href="/order">Order</a>{account}</nav></header>
<main>{body}</main>
<footer>A sample shop for trying out jobs. Nothing here is for sale.</footer></body></html>"""


def home(user: str | None) -> str:
    """The front page, with the first three products."""
    cards = "".join(_card(product) for product in PRODUCTS[:3])
    return layout(
        "Home",
        f'<h1>Good things for the house</h1><p class="soft">{len(PRODUCTS)} products on '
        f'<a href="/products">{PAGES} pages</a>.</p><div class="grid">{cards}</div>',
        user=user,
    )


def _card(product: Product) -> str:
    tags = "".join(f"<li>{escape(tag)}</li>" for tag in product.tags)
    stock = f'<p class="stock">{product.stock} in stock</p>' if product.stock else ""
    return (
        f'<article class="product" data-sku="{product.sku}">{picture(product)}'
        f'<h3><a href="/products/{product.sku}">{escape(product.title)}</a></h3>'
        f'<p class="price">{product.price}</p><ul class="tags">{tags}</ul>{stock}{_seller(product)}'
        "</article>"
    )


def _seller(product: Product) -> str:
    return (
        f'<p class="seller">by <span class="name">{escape(product.seller)}</span>, '
        f'rated <span class="rating">{product.rating}</span></p>'
    )


def listing(page: int, user: str | None) -> str:
    """One page of the listing, counted from 1, with links to its neighbours."""
    cards = "".join(_card(p) for p in PRODUCTS[(page - 1) * PAGE_SIZE : page * PAGE_SIZE])
    before = f'<a rel="prev" href="/products?page={page - 1}">Previous</a>' if page > 1 else ""
    after = f'<a rel="next" href="/products?page={page + 1}">Next</a>' if page < PAGES else ""
    return layout(
        f"Products, page {page}",
        f'<h1>Products</h1><div class="grid">{cards}</div>'
        f'<nav class="pages">{before}<span class="soft">Page {page} of {PAGES}</span>{after}</nav>',
        user=user,
    )


def product_page(sku: str, user: str | None) -> str | None:
    """One product with everything about it; None if it is not sold here."""
    product = BY_SKU.get(sku)
    if product is None:
        return None
    photos = "".join(picture(product, number) for number in range(product.photos))
    reviews = "".join(
        f'<blockquote class="review"><q>{escape(r.text)}</q> <span class="stars">{r.stars}</span>'
        "</blockquote>"
        for r in product.reviews
    )
    stock = f'<p class="stock">{product.stock} in stock</p>' if product.stock else ""
    return layout(
        product.title,
        f'<article class="card" data-sku="{sku}"><h1>{escape(product.title)}</h1>'
        f'<div class="photos">{photos}</div>'
        f'<p class="description">{escape(product.description)}</p>'
        f'<p class="price">{product.price}</p>{stock}{_seller(product)}'
        f'<p><a href="/order?sku={sku}">Order this</a></p>'
        f'<h2>Reviews</h2><section class="reviews">{reviews}</section></article>',
        user=user,
    )


def login(error: str | None) -> str:
    """The login form, saying what was wrong the last time."""
    said = f'<p class="error" role="alert">{escape(error)}</p>' if error else ""
    return layout(
        "Log in",
        f'<h1>Log in</h1>{said}<form class="card" method="post" action="/login">'
        '<label for="user">User</label><input id="user" name="user" autocomplete="username">'
        '<label for="password">Password</label>'
        '<input id="password" name="password" type="password">'
        '<br><button>Log in</button></form><p class="soft">User demo, password demo.</p>',
    )


def account(user: str) -> str:
    """What a customer sees about herself."""
    return layout(
        "Account",
        f'<h1>Welcome, <span id="user">{escape(user)}</span></h1><div class="card">'
        '<p><a id="invoice" href="/invoice.csv" download>Download the invoice (CSV)</a></p>'
        '<form method="post" action="/logout"><button>Log out</button></form></div>',
        user=user,
    )


def order(delay_ms: int, sku: str, user: str | None) -> str:
    """The order form; `delay_ms` is passed on to the answer of its POST."""
    return layout(
        "Order",
        f'<h1>Order</h1><form class="card" method="post" action="/order?delay_ms={delay_ms}">'
        f'<input type="hidden" name="sku" value="{escape(sku, quote=True)}">'
        '<label for="name">Name</label><input id="name" name="name" required>'
        '<label for="quantity">Quantity</label>'
        '<input id="quantity" name="quantity" type="number" min="1" max="99" value="1" required>'
        "<br><button>Place order</button></form>",
        user=user,
    )


def thanks(name: str, number: int, user: str | None) -> str:
    """What follows an order."""
    return layout(
        "Thank you",
        f'<div class="card"><h1 id="thanks">Thank you, {escape(name)}</h1>'
        f'<p>This is order number <span id="count">{number}</span>.</p></div>',
        user=user,
    )
