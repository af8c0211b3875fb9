"""The seeded catalogue: themes become products with options, units and extras."""

import dataclasses
import random
import uuid
from collections.abc import Sequence

from octo_sync.sandbox.config import SandboxConfig
from octo_sync.sandbox.money import priced
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Extra, Money, Offer, Option, Product, Unit
from octo_sync.sandbox.themes import EXTRAS, LANGUAGES, NEEDS_COMPANY, THEMES, UNIT_NAMES, UNIT_RULES, Theme, texts

MINUTES_PER_DAY = 1_440
MAX_START_TIMES = 96
_SMALLEST = 8
_OFFERED = [field.name for field in dataclasses.fields(Offer)]
CUTOFFS = ((1, "hour", "1 hour"), (24, "hour", "24 hours"), (2, "day", "2 days"), (30, "minute", "30 minutes"))
SUPPLIER_ID = "sup_octo_sandbox"


def seeded_uuid(rng: random.Random) -> str:
    """A lower-case version 4 UUID drawn from the generator."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def build(config: SandboxConfig) -> list[Product]:
    """The products of a configuration, deterministic in its seed."""
    count, times = config.products, config.start_times
    if config.slots is not None:
        count, times = _sized(config.slots, config.days, count)
    themes = [_theme(index) for index in range(count)]
    if config.at_home:
        themes = [_at_home(theme) for theme in themes]
    return [
        _product(index, theme, random.Random(f"{config.seed}/product/{index}"), times)
        for index, theme in enumerate(themes)
    ]


def _at_home(theme: Theme) -> Theme:
    """A smaller one in the city of the first; only what has no net price is still paid in its own currency."""
    home = THEMES[0]
    theme = dataclasses.replace(
        theme, start_times=theme.start_times[::2], capacity=max(_SMALLEST, theme.capacity // 3), room=theme.room // 3
    )
    if theme.city == home.city:
        return theme
    moved = dataclasses.replace(
        theme, city=home.city, latitude=home.latitude, longitude=home.longitude, time_zone=home.time_zone,
        tax_rates=tuple((home.tax_rates[0][0], rate) for _, rate in theme.tax_rates),
    )  # fmt: skip
    if not theme.with_net:
        return moved
    price = theme.adult_price // (10 if theme.precision > home.precision else 1)
    return dataclasses.replace(moved, currency=home.currency, precision=home.precision, adult_price=price)


def _sized(slots: int, days: int, count: int) -> tuple[int, int]:
    """How many products and start times give about this many slots between today and the horizon."""
    per_day = max(1, slots // (days + 1))
    while True:
        timed = sum(len(_theme(i).options) for i in range(count) if _theme(i).availability_type == "START_TIME")
        whole = sum(len(_theme(i).options) for i in range(count) if _theme(i).availability_type != "START_TIME")
        times = round((per_day - whole) / max(1, timed))
        if times <= MAX_START_TIMES:
            return count, max(1, times)
        count += len(THEMES)


def _theme(index: int) -> Theme:
    return THEMES[index % len(THEMES)]


def _product(index: int, theme: Theme, rng: random.Random, times: int | None) -> Product:
    lap = index // len(THEMES)
    suffix = f" {lap + 1}" if lap else ""
    titles = {language: theme.titles[language] + suffix for language in LANGUAGES}
    product = Product(
        id=_again(theme.product_id, lap, rng),
        internal_name=titles["en"],
        reference=None if index % 3 == 2 else f"{theme.key.upper()}-{index:03d}",  # noqa: PLR2004 - every third has none
        instant_confirmation=theme.instant,
        instant_delivery=theme.instant,
        availability_required=not theme.freesale,
        delivery_formats=("PDF_URL", "QRCODE") if index % 2 == 0 else ("QRCODE",),
        redemption_method=("DIGITAL", "PRINT", "MANIFEST")[index % 3],
        options=(),
        titles=titles,
        descriptions={
            language: f"{titles[language]}. {theme.short_descriptions[language]}. {theme.city[language]}."
            for language in LANGUAGES
        },
        **{name: getattr(theme, name) for name in _OFFERED},
    )
    options = tuple(_option(product, theme, number, rng, times) for number in range(len(theme.options)))
    return dataclasses.replace(product, options=options)


def _again(product_id: str, lap: int, rng: random.Random) -> str:
    """The id of a theme's later product, in the style of the first."""
    if lap == 0:
        return product_id
    if product_id.isdigit():
        return str(1_000 * lap + int(product_id))
    return f"{product_id}_{lap}" if product_id.startswith("prod_") else seeded_uuid(rng)


def _option(product: Product, theme: Theme, number: int, rng: random.Random, times: int | None) -> Option:
    option_id, titles, percent = theme.options[number]
    drawn = rng.randrange(len(CUTOFFS))
    amount, unit, text = CUTOFFS[drawn if theme.cutoff is None else theme.cutoff]
    start_times: tuple[int, ...] = ()
    if theme.availability_type == "START_TIME":
        start_times = tuple((minute + 30 * number) % MINUTES_PER_DAY for minute in theme.start_times)
        if times is not None:
            start_times = tuple(sorted({MINUTES_PER_DAY * i // times for i in range(min(times, SLOTS_PER_DAY))}))
    units: list[Unit] = []
    for kind in theme.unit_types:
        units.append(_unit(product, theme, kind, percent, rng, units[:1]))
    extras = tuple(_extra(product, i, theme.adult_price) for i in (1, 2)) if theme.extras else ()
    return Option(
        id=option_id,
        default=number == 0,
        internal_name=titles["en"],
        reference=None if number else f"{theme.key.upper()}-{option_id}",
        titles=titles,
        start_times=start_times,
        duration_minutes=theme.duration,
        cutoff_amount=amount,
        cutoff_unit=unit,
        cutoff_text=text,
        required_contact_fields=("firstName", "emailAddress") if number == 0 else (),
        max_units=None if theme.freesale else min(theme.max_units, theme.capacity),
        capacity=theme.capacity - 2 * number,
        room=theme.room,
        closed_weekdays=theme.closed_weekdays,
        base_price=theme.adult_price * percent // 100,
        units=tuple(units),
        extras=extras,
        salt=rng.getrandbits(31) | 1,
    )


def _unit(product: Product, theme: Theme, kind: str, percent: int, rng: random.Random, company: Sequence[Unit]) -> Unit:
    share, min_age, max_age, pax, most, id_required = UNIT_RULES[kind]
    position = theme.unit_types.index(kind)
    unit_id = {
        "word": kind.lower(),
        "uuid": f"{kind.lower()}_{seeded_uuid(rng)}",
        "digits": str(position + 1),
    }[theme.unit_style]
    return Unit(
        id=unit_id,
        internal_name=UNIT_NAMES[kind]["en"],
        reference=None if position else f"{theme.key}-{kind.lower()}",
        type=kind,
        titles=UNIT_NAMES[kind],
        min_age=min_age,
        max_age=max_age,
        id_required=id_required,
        max_quantity=most,
        pax_count=pax,
        accompanied_by=tuple(one.id for one in company) if kind in NEEDS_COMPANY else (),
        required_contact_fields=("firstName",) if id_required else (),
        base_price=theme.adult_price * percent * share // 10_000,
        extras=(_extra(product, 0, theme.adult_price),) if theme.extras and kind in {"ADULT", "CHILD"} else (),
        min_height=120 if kind == "YOUTH" else None,
    )


def _extra(product: Product, number: int, adult_price: int) -> Extra:
    key, titles, descriptions, percent, default, most = EXTRAS[number]
    price: Money = priced(product, adult_price * percent // 100, 0)
    return Extra(
        id=f"{number + 1}" if product.id.isdigit() else f"x_{key}",
        internal_name=titles["en"],
        titles=titles,
        descriptions=descriptions,
        default=default,
        max_quantity=most,
        price=price,
    )


SUPPLIER_TEXTS = texts("Walks, boats and a museum", "Passeios, barcos e um museu", "散歩と船と博物館")
