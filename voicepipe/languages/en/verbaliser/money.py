"""Amounts of money, and ranges of them."""

import re
import unicodedata
from dataclasses import dataclass

from voicepipe.languages.en.verbaliser.measures import PER, per
from voicepipe.languages.en.verbaliser.numbers import (
    NUMBER,
    SCALE_WORDS,
    VULGAR,
    amount,
    cardinal,
    plural,
)
from voicepipe.languages.en.verbaliser.numbers import (
    SCALES_SHORT as SCALES,
)
from voicepipe.languages.written_form import DASH, DIGITS, END, GAP, WrittenForm, form


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency's names as they are spoken."""

    one: str
    many: str
    small_one: str = ""
    """The name of a hundredth; "": none is used."""
    small_many: str = ""


def _dollars(whose: str) -> Currency:
    return Currency(f"{whose} dollar".strip(), f"{whose} dollars".strip(), "cent", "cents")


CURRENCIES = {
    "$ ＄": _dollars(""),
    "US$ USD": _dollars("US"),
    "A$ AU$ AUD": _dollars("Australian"),
    "C$ CA$ CAD": _dollars("Canadian"),
    "NZ$ NZD": _dollars("New Zealand"),
    "HK$ HKD": _dollars("Hong Kong"),
    "S$ SG$ SGD": _dollars("Singapore"),
    "R$ BRL": Currency("real", "reais", "centavo", "centavos"),
    "MX$ MXN": Currency("Mexican peso", "Mexican pesos", "centavo", "centavos"),
    "€ EUR": Currency("euro", "euros", "cent", "cents"),
    "£ ￡ GBP": Currency("pound", "pounds", "penny", "pence"),
    "¥ ￥ JPY": Currency("yen", "yen"),
    "CN¥ CNY RMB": Currency("yuan", "yuan"),
    "₹ INR Rs Rs.": Currency("rupee", "rupees", "paisa", "paise"),
    "CHF": Currency("Swiss franc", "Swiss francs", "centime", "centimes"),
    "SEK": Currency("Swedish krona", "Swedish kronor", "öre", "öre"),
    "NOK": Currency("Norwegian krone", "Norwegian kroner", "øre", "øre"),
    "DKK": Currency("Danish krone", "Danish kroner", "øre", "øre"),
    "PLN": Currency("zloty", "zlotys", "grosz", "groszy"),
    "₩ ￦ KRW": Currency("won", "won"),
    "₽ RUB": Currency("rouble", "roubles", "kopeck", "kopecks"),
    "₪ ILS": Currency("shekel", "shekels", "agora", "agorot"),
    "₺ TRY": Currency("lira", "lira"),
    "₱ PHP": Currency("Philippine peso", "Philippine pesos", "centavo", "centavos"),
    "ZAR": Currency("rand", "rand", "cent", "cents"),
    "AED": Currency("dirham", "dirhams", "fils", "fils"),
    "NT$ TWD": _dollars("Taiwan"),
    "₦ NGN": Currency("naira", "naira", "kobo", "kobo"),
    "฿ THB": Currency("baht", "baht", "satang", "satang"),
    "₫ VND": Currency("dong", "dong"),
    "₴ UAH": Currency("hryvnia", "hryvnias", "kopiyka", "kopiykas"),
    "₡ CRC": Currency("colon", "colones", "centimo", "centimos"),
    "₵ GH₵ GHS": Currency("cedi", "cedis", "pesewa", "pesewas"),
    "₲ PYG": Currency("guarani", "guaranies"),
    "₸ KZT": Currency("tenge", "tenge", "tiyn", "tiyn"),
    "₼ AZN": Currency("manat", "manat", "qepik", "qepik"),
    "₾ GEL": Currency("lari", "lari", "tetri", "tetri"),
    "₿ BTC": Currency("bitcoin", "bitcoins"),
    "₣": Currency("franc", "francs", "centime", "centimes"),
    "₧": Currency("peseta", "pesetas"),
    "৳ BDT": Currency("taka", "taka", "poisha", "poisha"),
    "៛ KHR": Currency("riel", "riel"),
    "֏ AMD": Currency("dram", "dram"),
    "؋ AFN": Currency("afghani", "afghanis"),
    "﷼ IRR SAR": Currency("rial", "rials"),
    "CZK": Currency("Czech crown", "Czech crowns"),
    "HUF": Currency("forint", "forints"),
    "RON": Currency("leu", "lei", "ban", "bani"),
    "IDR": Currency("rupiah", "rupiah"),
    "MYR": Currency("ringgit", "ringgit", "sen", "sen"),
    "KES": Currency("Kenyan shilling", "Kenyan shillings", "cent", "cents"),
    "EGP": Currency("Egyptian pound", "Egyptian pounds", "piastre", "piastres"),
}


def _by_name(sign: str) -> Currency:
    """The other signs are called as in Unicode: ₮ is the "TUGRIK SIGN"."""
    name = unicodedata.name(sign).lower().removesuffix(" sign")
    return Currency(name, name)


WRITTEN = {written: currency for keys, currency in CURRENCIES.items() for written in keys.split()}
SYMBOLS = "".join(sign for sign in map(chr, range(0x20A0, 0x20D0)) if unicodedata.category(sign) == "Sc")
"""Unicode's block of currency symbols."""
WRITTEN = {sign: _by_name(sign) for sign in SYMBOLS} | WRITTEN
SIGNS = "|".join(sorted((re.escape(key) for key in WRITTEN if not key.isalpha()), key=len, reverse=True))
CODES = "|".join(key for key in WRITTEN if key.isalpha())
AFTER = "|".join(re.escape(key) for key in WRITTEN if not key[-1].isalpha() and key[-1] != ".")
"""A sign that may stand behind the number."""
_SCALE = rf"(?:{GAP}(?:{'|'.join(SCALE_WORDS)}|[mb]n|tn)\b|[kKmMbBT]\b)"
_FIGURE = (
    f"(?:[0-9]{{1,3}}(?:[.][0-9]{{3}})*,[0-9]{{2}}(?![0-9])"
    rf"|[0-9]{{1,3}},[0-9](?= ?(?:[mb]illion|trillion|[mb]n)\b)|[0-9]{{0,4}}[{VULGAR}]|{NUMBER})"
)
"""Also as in Europe: "1.234,50" and "3,50"."""
_BARE = f"{_FIGURE}{_SCALE}?"
_CODE = f"(?:{CODES})(?![A-Za-z])"
_BEFORE = rf"(?:US \$|(?:{CODES}) ?\$|{SIGNS}|¢|{CODES}){GAP}[-−]?{_BARE}(?: {_CODE})?"
_BEHIND = f"{_BARE}{GAP}(?:¢|{AFTER}|{_CODE})"
_PRICE = f"(?:{_BEFORE}|{_BEHIND})"
_PARTS = re.compile(rf"(?P<minus>[-−])?(?P<figure>{_FIGURE})(?P<scale>{_SCALE})?")


@dataclass(frozen=True, slots=True)
class Price:
    """A written amount of money, in parts."""

    figure: str
    """The amount with a decimal point and without separators of thousands."""
    scale: str
    """Its scale, such as "million"; "": none."""
    currency: Currency | None
    minus: str

    @property
    def number(self) -> str:
        return f"{amount(self.figure)} {self.scale}".strip()

    @property
    def size(self) -> float:
        """The amount without its scale; half of one more for any fraction."""
        return float(self.figure) if self.figure[-1] not in VULGAR else int(self.figure[:-1].strip() or 0) + 0.5

    @property
    def even(self) -> bool:
        """Whether it has no cents."""
        return bool(self.scale) or "." not in self.figure

    def said(self) -> str:
        """$18.50 -> eighteen dollars fifty; $0.50 -> fifty cents; $2.5 million -> two point five million dollars."""
        currency = self.currency or WRITTEN["$"]
        whole, _, fraction = self.figure.partition(".")
        if self.scale or self.figure[-1] in VULGAR or len(fraction) > 2 or (fraction and not currency.small_one):
            return f"{self.minus}{self.number} {currency.many}"
        units, cents = int(whole or "0"), int(fraction.ljust(2, "0") or "0")
        if not units and cents and currency.small_one:
            return f"{self.minus}{cardinal(cents)} {currency.small_one if cents == 1 else currency.small_many}"
        said = f"{self.minus}{cardinal(units)} {currency.one if units == 1 else currency.many}"
        return f"{said} {cardinal(cents)}" if cents else said


_CENTS = Currency("cent", "cents")


def _price(text: str) -> Price:
    found = _PARTS.search(text)
    assert found  # All that is passed here was found by a pattern with a number.
    written = (text[: found.start()] + text[found.end() :]).strip()
    figure = found["figure"]
    if re.search(",[0-9]{1,2}$", figure):
        figure = figure.replace(".", "").replace(",", ".")
    if re.fullmatch("[0-9]{1,3}[.][0-9]{3}", figure) and written == "€":
        figure = figure.replace(".", "")
    figure = re.sub("[, \u00a0\u2009\u202f]", "", figure)
    if figure.count(".") > 1:
        figure = figure.replace(".", "")
    if written == "¢":
        return Price(figure, "", _CENTS, "")
    scale = (found["scale"] or "").strip()
    scale = SCALES.get(scale.lower(), scale)
    return Price(figure, scale, _currency(written), "minus " if found["minus"] else "")


def _currency(written: str) -> Currency | None:
    """The currency of "$", "US $", "USD$" and "$ USD"; None: none is written."""
    key = written.replace(" ", "")
    return WRITTEN.get(key) or WRITTEN.get(key.rstrip("$")) or WRITTEN.get(written.split(" ")[-1])


def _said(found: re.Match[str]) -> str:
    said = _price(found["price"]).said() + per(found["per"])
    return f"{said} plus" if found["more"] else said


def _range(found: re.Match[str]) -> str | None:
    """$250-$300 -> two hundred fifty to three hundred dollars; with cents both are said in full.

    $1.5-2 million is 1.5 million to 2 million, and $500-1 million is not 500 million to 1 million.
    """
    low, high = _price(found["low"]), _price(found["high"])
    if not (low.currency or high.currency):
        return None
    currency = low.currency or high.currency
    one_scale = bool(high.scale and not low.scale)
    shared = one_scale and low.size < high.size
    if (
        (high.currency or currency) is not currency
        or not (shared or (low.even and high.even and not one_scale))
        or low.minus
    ):
        low = Price(low.figure, low.scale, currency, low.minus)
        high = Price(high.figure, high.scale, high.currency or currency, high.minus)
        return f"{low.said()} to {high.said()}{per(found['per'])}"
    return f"{low.number} to {Price(high.figure, high.scale, currency, '').number} {_many(currency)}{per(found['per'])}"


def _many(currency: Currency | None) -> str:
    return currency.many if currency else ""


_BEGINS = DIGITS + ".¢" + "".join(sorted({key[0] for key in WRITTEN}))

FORMS: tuple[WrittenForm, ...] = (
    form(
        "banknotes",
        "$€£",
        r"[$€£](?P<number>[1-9][0-9]{0,3})s\b",
        lambda found: plural(cardinal(int(found["number"])).removeprefix("one ")),
    ),
    form(
        "range of money",
        _BEGINS,
        rf"(?P<low>{_PRICE}|{_BARE})(?:/[a-z]{{1,6}})?{DASH}(?P<high>{_PRICE}|{_BARE}){PER}{END}",
        _range,
    ),
    form("money", _BEGINS, rf"(?P<price>{_PRICE}){PER}(?P<more>[+](?![\w+]))?(?![0-9]|[.,][0-9])", _said),
)
