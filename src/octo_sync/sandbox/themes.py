"""The archetypes of products: what is sold where, in which money, time zone and words."""

# ruff: noqa: E501 - the catalogue reads as a table

import dataclasses

from octo_sync.sandbox.nouns import Offer, Texts

LANGUAGES = ("en", "pt", "ja")


def texts(english: str, portuguese: str, japanese: str) -> Texts:
    """A text in the three languages the sandbox speaks."""
    return {"en": english, "pt": portuguese, "ja": japanese}


@dataclasses.dataclass(frozen=True, eq=False)
class Theme(Offer):
    """One archetype. `options` lists id, titles, price factor in percent and what it adds to the start times."""

    key: str
    product_id: str
    titles: Texts
    adult_price: int
    options: tuple[tuple[str, Texts, int], ...]
    unit_types: tuple[str, ...]
    unit_style: str
    start_times: tuple[int, ...] = ()
    duration: int = 120
    instant: bool = True
    extras: bool = False
    closed_weekdays: tuple[int, ...] = ()
    capacity: int = 24
    room: int = 0  # places of an open slot that nobody else sells
    max_units: int = 9
    cutoff: int | None = None  # one of catalog.CUTOFFS; drawn when None


_STANDARD = texts("Standard", "Normal", "スタンダード")
_PRIVATE = texts("Private group", "Grupo privado", "プライベート")
_NIGHT = texts("At night", "À noite", "ナイト")
_FAST = texts("Fast lane", "Sem filas", "優先入場")

THEMES = (
    Theme(
        "tram", "6b1f7b52-6d2e-4c0a-9d3a-0c8f1d7a4e11",
        texts("Old tram walk", "Passeio do elétrico", "路面電車ウォーク"),
        short_descriptions=texts("Hills, tiles and a custard tart", "Colinas, azulejos e um pastel", "坂道とタイルとエッグタルト"),
        city=texts("Lisbon", "Lisboa", "リスボン"), latitude=38.7123, longitude=-9.1394, time_zone="Europe/Lisbon",
        currency="EUR", precision=2, adult_price=2_950, locale="en", availability_type="START_TIME", id_style="iso",
        categories=("walking-tours", "history"), options=(("DEFAULT", _STANDARD, 100), ("opt_private", _PRIVATE, 240)),
        unit_types=("ADULT", "CHILD", "INFANT", "SENIOR"), unit_style="word", start_times=(570, 690, 870, 1_050), duration=150,
        # A stranger's conformance run buys several times on the first open slot of the first such product.
        tax_rates=(("IVA", 230),), extras=True, capacity=170, room=80, max_units=5, cutoff=3,
    ),
    Theme(
        "museum", "42",
        texts("River museum", "Museu do rio", "川の博物館"),
        short_descriptions=texts("Three floors of boats", "Três andares de barcos", "三階建ての船の展示"),
        city=texts("London", "Londres", "ロンドン"), latitude=51.5033, longitude=-0.1196, time_zone="Europe/London",
        currency="GBP", precision=2, adult_price=2_400, locale="en-GB", availability_type="OPENING_HOURS", id_style="date",
        categories=("museums", "family-friendly"), options=(("DEFAULT", _STANDARD, 100), ("2", _FAST, 150)),
        unit_types=("ADULT", "CHILD", "FAMILY", "STUDENT"), unit_style="uuid", opening_hours=(("10:00", "13:00"), ("14:00", "18:00")),
        tax_rates=(("VAT", 200),), capacity=220, closed_weekdays=(0,), delivery_methods=("VOUCHER",),
    ),
    Theme(
        "sushi", "prod_sushi",
        texts("Sushi class", "Aula de sushi", "寿司教室"),
        short_descriptions=texts("Make eight pieces and eat them", "Faça oito peças e coma-as", "八貫握って食べる"),
        city=texts("Tokyo", "Tóquio", "東京"), latitude=35.6654, longitude=139.7707, time_zone="Asia/Tokyo",
        currency="JPY", precision=0, adult_price=9_800, locale="ja", availability_type="START_TIME", id_style="pipe",
        categories=("classes", "food"), options=(("opt_lunch", _STANDARD, 100), ("opt_night", _NIGHT, 130)),
        unit_types=("ADULT", "YOUTH", "CHILD"), unit_style="word", start_times=(660, 840, 1_080), duration=120,
        tax_rates=(("消費税", 100),), capacity=12, closed_weekdays=(2,),
    ),
    Theme(
        "dhow", "prod_dhow",
        texts("Dhow for your party", "Dhow para o seu grupo", "貸切ダウ船"),
        short_descriptions=texts("One boat, one price", "Um barco, um preço", "一隻貸切"),
        city=texts("Manama", "Manama", "マナーマ"), latitude=26.2235, longitude=50.5876, time_zone="Asia/Bahrain",
        currency="BHD", precision=3, adult_price=85_500, locale="en", availability_type="START_TIME", id_style="compact",
        categories=("boat-tours", "private-tours"), options=(("DEFAULT", _STANDARD, 100),),
        unit_types=("ADULT", "CHILD"), unit_style="digits", start_times=(480, 960), duration=180, pricing_per="BOOKING", capacity=40,
    ),
    Theme(
        "pass", "8",
        texts("City day pass", "Passe de um dia", "シティパス"),
        short_descriptions=texts("Any day, any door", "Qualquer dia, qualquer porta", "いつでも入場"),
        city=texts("New York", "Nova Iorque", "ニューヨーク"), latitude=40.7580, longitude=-73.9855, time_zone="America/New_York",
        currency="USD", precision=2, adult_price=6_900, locale="en-US", availability_type="OPENING_HOURS", id_style="date",
        categories=("city-cards",), options=(("DEFAULT", _STANDARD, 100),),
        unit_types=("ADULT", "CHILD", "SENIOR", "MILITARY"), unit_style="word", opening_hours=(("09:00", "17:00"),),
        freesale=True, with_net=False, delivery_methods=("TICKET",),
    ),
    Theme(
        "seals", "c3a0f7de-51b4-4f0e-8f43-7a1d2b9c6e05",
        texts("Seals and cliffs by boat", "Focas e falésias de barco", "アザラシと断崖クルーズ"),
        short_descriptions=texts("When the skipper says yes", "Quando o mestre diz sim", "船長の許可があれば"),
        city=texts("Waitangi", "Waitangi", "ワイタンギ"), latitude=-43.9535, longitude=-176.5597, time_zone="Pacific/Chatham",
        currency="USD", precision=2, adult_price=18_500, locale="en-NZ", availability_type="START_TIME", id_style="iso",
        categories=("boat-tours", "animals"), options=(("DEFAULT", _STANDARD, 100),),
        unit_types=("ADULT", "CHILD"), unit_style="word", start_times=(435, 825), duration=240, instant=False, capacity=16,
    ),
    Theme(
        "reef", "prod_reef",
        texts("Reef boat charter", "Aluguer de barco no recife", "リーフ貸切ボート"),
        short_descriptions=texts("Half a day over the reef", "Meio dia sobre o recife", "半日リーフ"),
        city=texts("Lord Howe Island", "Ilha de Lord Howe", "ロード・ハウ島"), latitude=-31.5553, longitude=159.0821, time_zone="Australia/Lord_Howe",
        currency="KWD", precision=3, adult_price=112_750, locale="en-AU", availability_type="OPENING_HOURS", id_style="iso",
        categories=("boat-tours", "beaches"), options=(("77", _STANDARD, 100), ("78", _PRIVATE, 175)),
        unit_types=("ADULT", "CHILD"), unit_style="digits", opening_hours=(("08:30", "16:30"),),
        pricing_per="BOOKING", tax_rates=(("GST", 100),), extras=True, capacity=18,
    ),
    Theme(
        "fado", "9c6f1a35-0f4b-4a57-b0a2-3b9f0d1e7c20",
        texts("Fado night", "Noite de fado", "ファドの夜"),
        short_descriptions=texts("Dinner, two guitars, one voice", "Jantar, duas guitarras, uma voz", "夕食と二本のギターと歌声"),
        city=texts("Lisbon", "Lisboa", "リスボン"), latitude=38.7118, longitude=-9.1300, time_zone="Europe/Lisbon",
        currency="EUR", precision=2, adult_price=6_475, locale="pt", availability_type="START_TIME", id_style="iso",
        categories=("live-music", "food"),
        options=(("DEFAULT", _STANDARD, 100), ("9b2e", _NIGHT, 120), ("opt_private", _PRIVATE, 300)),
        unit_types=("ADULT", "YOUTH", "OTHER"), unit_style="uuid", start_times=(1_170, 1_350), duration=165,
        tax_rates=(("IVA", 130), ("Taxa turística", 20)), extras=True, capacity=36, closed_weekdays=(0, 1),
    ),
)  # fmt: skip

UNIT_NAMES: dict[str, Texts] = {
    "ADULT": texts("Adult", "Adulto", "大人"),
    "YOUTH": texts("Youth", "Jovem", "青年"),
    "CHILD": texts("Child", "Criança", "子供"),
    "INFANT": texts("Infant", "Bebé", "幼児"),
    "FAMILY": texts("Family of four", "Família de quatro", "家族四人"),
    "SENIOR": texts("Senior", "Sénior", "シニア"),
    "STUDENT": texts("Student", "Estudante", "学生"),
    "MILITARY": texts("Military", "Militar", "軍人"),
    "OTHER": texts("Companion", "Acompanhante", "付添い"),
}

# type -> price in percent of the adult's, ages, places taken, largest quantity, needs an identity document
UNIT_RULES: dict[str, tuple[int, int, int, int, int | None, bool]] = {
    "ADULT": (100, 18, 99, 1, None, False),
    "YOUTH": (80, 13, 17, 1, 8, False),
    "CHILD": (50, 4, 12, 1, 6, False),
    "INFANT": (0, 0, 3, 1, 2, False),
    "FAMILY": (290, 0, 99, 4, 3, False),
    "SENIOR": (75, 65, 120, 1, None, True),
    "STUDENT": (70, 18, 30, 1, None, True),
    "MILITARY": (60, 18, 99, 1, 4, True),
    "OTHER": (40, 0, 99, 1, 2, False),
}

NEEDS_COMPANY = frozenset({"INFANT", "CHILD", "OTHER"})

EXTRAS: tuple[tuple[str, Texts, Texts, int, bool, int | None], ...] = (
    ("snack", texts("Snack box", "Caixa de lanche", "軽食"), texts("Bread, fruit, water", "Pão, fruta, água", "パンと果物と水"), 20, False, 4),
    ("photo", texts("Photo album", "Álbum de fotos", "写真集"), texts("Forty prints", "Quarenta fotos", "四十枚"), 45, True, 1),
    ("locker", texts("Locker", "Cacifo", "ロッカー"), texts("One for the day", "Um por dia", "一日"), 10, False, None),
)  # fmt: skip
