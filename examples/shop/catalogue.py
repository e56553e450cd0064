"""What the shop sells: made from short lists, the same on every start."""

from dataclasses import dataclass

PAGE_SIZE = 8

_THINGS = (
    ("Desk lamp", "An arm of brushed steel, three joints, and a warm light that does not flicker."),
    ("Oak shelf", "Four boards of solid oak on a frame that needs neither screws nor glue."),
    ("Wool blanket", "Woven in one piece, heavy enough to stay where it is put."),
    ("Espresso machine", "A brass boiler, a wooden lever, and nothing that beeps."),
    ("Walnut chair", "Steam-bent back, woven seat; carries more than it looks."),
    ("Enamel kettle", "Two litres, a spout that does not drip, and a lid that stays on."),
    ("Linen curtain", "Lets the morning in and keeps the street out."),
    ("Cast-iron pan", "Seasoned twice, flat to a tenth of a millimetre."),
    ("Wall clock", "Silent movement, numerals to read from the far side of a room."),
    ("Writing desk", "A drawer for paper, a channel for cables, a top of dark linoleum."),
    ("Reading light", "Clips to a shelf or a book and lasts a long weekend."),
    ("Stoneware bowl", "Thrown by hand, so no two rims agree exactly."),
)
_FINISHES = ("natural", "graphite")
_SELLERS = (("Northlight", "4.7"), ("Harbour & Sons", "4.2"), ("Atelier Nine", "4.9"))
_TAGS = ("home", "kitchen", "light", "textile", "wood", "metal", "new", "gift")
_OPINIONS = (
    ("Exactly as described, and packed with care.", 5),
    ("Good, though the delivery took its time.", 4),
    ("Does what it should; the colour is darker than in the picture.", 3),
    ("Bought a second one.", 5),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a buyer said."""

    text: str
    stars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One thing for sale."""

    sku: str
    title: str
    description: str
    cents: int
    tags: tuple[str, ...]
    stock: int
    """How many are there; 0 is sold out."""
    seller: str
    rating: str
    photos: int
    reviews: tuple[Review, ...]

    @property
    def price(self) -> str:
        """The price as shown, such as `EUR 1,109.50`."""
        return f"EUR {self.cents // 100:,}.{self.cents % 100:02d}"


def _product(number: int) -> Product:
    title, description = _THINGS[number % len(_THINGS)]
    finish = _FINISHES[number // len(_THINGS)]
    seller, rating = _SELLERS[number % len(_SELLERS)]
    return Product(
        sku=f"TF-{1001 + number}",
        title=f"{title}, {finish}",
        description=description,
        cents=1_950 + (number * 37_123) % 118_000 // 50 * 50,
        tags=tuple(_TAGS[(number + step * 3) % len(_TAGS)] for step in range(1 + number % 3)),
        stock=0 if number % 5 == 3 else 2 + number % 7,
        seller=seller,
        rating=rating,
        photos=1 + number % 3,
        reviews=tuple(
            Review(text=text, stars=stars)
            for text, stars in _OPINIONS[number % 3 : number % 3 + number % 4]
        ),
    )


PRODUCTS: tuple[Product, ...] = tuple(_product(n) for n in range(len(_THINGS) * len(_FINISHES)))
"""All products in the order of the listing."""

BY_SKU = {product.sku: product for product in PRODUCTS}
PAGES = -(-len(PRODUCTS) // PAGE_SIZE)
"""How many pages the listing has."""
