"""How the shop looks, and the pictures of its products."""

from examples.shop.catalogue import Product

CSS = """
:root { --ink: #22262b; --soft: #6b7480; --line: #dfe3e8; --paper: #fbfaf8; --accent: #1f6f5c; }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink);
       font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif }
header { background: white; border-bottom: 1px solid var(--line) }
header nav, main, footer { max-width: 68rem; margin: 0 auto; padding: 1rem 1.5rem }
header nav { display: flex; gap: 1.5rem; align-items: baseline }
header .brand { font-weight: 700; font-size: 1.2rem; margin-right: auto }
a { color: var(--accent) }
header a { text-decoration: none }
h1 { font-size: 1.7rem; margin: 1rem 0 }
.grid { display: grid; gap: 1rem;
        grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)) }
.product, .card { background: white; border: 1px solid var(--line); border-radius: 10px;
                  padding: 1rem }
.product h3 { font-size: 1.05rem; margin: .5rem 0 .25rem }
.product svg, .photos svg { width: 100%; height: auto; border-radius: 6px; display: block }
.price { font-weight: 700 }
.stock { color: var(--accent); font-size: .9rem }
.seller, .soft { color: var(--soft); font-size: .9rem }
.tags { display: flex; gap: .4rem; list-style: none; padding: 0; margin: .5rem 0 }
.tags li { background: #eef2f0; border-radius: 99px; padding: 0 .6rem; font-size: .8rem }
.pages { display: flex; gap: 1rem; margin: 1.5rem 0 }
.photos { display: grid; gap: 1rem; grid-template-columns: repeat(3, 1fr); max-width: 42rem }
.review { border-left: 3px solid var(--line); margin: 1rem 0; padding-left: 1rem }
form label { display: block; margin: .75rem 0 .25rem }
input { font: inherit; padding: .45rem .6rem; border: 1px solid var(--line); border-radius: 6px;
        width: 16rem }
button { font: inherit; margin-top: 1rem; padding: .5rem 1.2rem; border: 0; border-radius: 6px;
         background: var(--accent); color: white; cursor: pointer }
.error { color: #a3262a }
footer { color: var(--soft); font-size: .85rem; border-top: 1px solid var(--line);
         margin-top: 3rem }
"""


def picture(product: Product, number: int = 0) -> str:
    """Draw a product: an abstract still life whose colours come from its number."""
    hue = (sum(product.sku.encode()) * 47 + number * 23) % 360
    title = f"{product.sku}, picture {number + 1}"
    return (
        f'<svg viewBox="0 0 240 160" role="img" aria-label="{title}">'
        f'<rect width="240" height="160" fill="hsl({hue} 34% 88%)"/>'
        f'<rect y="112" width="240" height="48" fill="hsl({hue} 28% 74%)"/>'
        f'<circle cx="{90 + number * 18}" cy="84" r="36" fill="hsl({(hue + 160) % 360} 38% 56%)"/>'
        f'<rect x="{136 - number * 14}" y="62" width="54" height="58" rx="8" '
        f'fill="hsl({(hue + 40) % 360} 42% 48%)"/></svg>'
    )
