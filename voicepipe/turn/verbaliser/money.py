"""Amounts of money, and ranges of them."""

import re
from dataclasses import dataclass

from voicepipe.turn.verbaliser.form import DASH, DIGITS, END, GAP, Form, form
from voicepipe.turn.verbaliser.measures import PER, per
from voicepipe.turn.verbaliser.numbers import NUMBER, SCALE_WORDS, cardinal, decimal


@dataclass(frozen=True, slots=True)
class Currency:
    one: str
    many: str
    small_one: str = ""
    """A hundredth of it; "": none is used."""
    small_many: str = ""


def _dollars(whose: str) -> Currency:
    return Currency(f"{whose} dollar".strip(), f"{whose} dollars".strip(), "cent", "cents")


CURRENCIES = {
    "$": _dollars(""),
    "US$ USD": _dollars("US"),
    "A$ AU$ AUD": _dollars("Australian"),
    "C$ CA$ CAD": _dollars("Canadian"),
    "NZ$ NZD": _dollars("New Zealand"),
    "HK$ HKD": _dollars("Hong Kong"),
    "S$ SG$ SGD": _dollars("Singapore"),
    "R$ BRL": Currency("real", "reais", "centavo", "centavos"),
    "MX$ MXN": Currency("Mexican peso", "Mexican pesos", "centavo", "centavos"),
    "€ EUR": Currency("euro", "euros", "cent", "cents"),
    "£ GBP": Currency("pound", "pounds", "penny", "pence"),
    "¥ JPY": Currency("yen", "yen"),
    "CN¥ CNY RMB": Currency("yuan", "yuan"),
    "₹ INR Rs Rs.": Currency("rupee", "rupees", "paisa", "paise"),
    "CHF": Currency("Swiss franc", "Swiss francs", "centime", "centimes"),
    "SEK": Currency("Swedish krona", "Swedish kronor", "öre", "öre"),
    "NOK": Currency("Norwegian krone", "Norwegian kroner", "øre", "øre"),
    "DKK": Currency("Danish krone", "Danish kroner", "øre", "øre"),
    "PLN": Currency("zloty", "zlotys", "grosz", "groszy"),
    "₩ KRW": Currency("won", "won"),
    "₽ RUB": Currency("rouble", "roubles", "kopeck", "kopecks"),
    "₪ ILS": Currency("shekel", "shekels", "agora", "agorot"),
    "₺ TRY": Currency("lira", "lira"),
    "₱ PHP": Currency("Philippine peso", "Philippine pesos", "centavo", "centavos"),
    "ZAR": Currency("rand", "rand", "cent", "cents"),
    "AED": Currency("dirham", "dirhams", "fils", "fils"),
}
WRITTEN = {written: currency for keys, currency in CURRENCIES.items() for written in keys.split()}
SIGNS = "|".join(sorted((re.escape(key) for key in WRITTEN if not key.isalpha()), key=len, reverse=True))
CODES = "|".join(key for key in WRITTEN if key.isalpha())
AFTER = "|".join(re.escape(key) for key in WRITTEN if len(key) == 1)
"""A sign that may stand behind the number."""
SCALES = {
    "k": "thousand",
    "m": "million",
    "mn": "million",
    "b": "billion",
    "bn": "billion",
    "t": "trillion",
    "tn": "trillion",
}
_SCALE = rf"(?:{GAP}(?:{'|'.join(SCALE_WORDS)}|[mb]n|tn)\b|[kKmMbBT]\b)"
_FIGURE = f"(?:[0-9]{{1,3}}(?:[.][0-9]{{3}})*,[0-9]{{2}}(?![0-9])|{NUMBER})"
"""Also as in Europe: "1.234,50" and "3,50"."""
_BARE = f"{_FIGURE}{_SCALE}?"
_CODE = f"(?:{CODES})(?![A-Za-z])"
_BEFORE = f"(?:{SIGNS}|{CODES}){GAP}[-−]?{_BARE}(?: {_CODE})?"
_BEHIND = f"{_BARE}{GAP}(?:¢|{AFTER}|{_CODE})"
_PRICE = f"(?:{_BEFORE}|{_BEHIND})"
_PARTS = re.compile(rf"(?P<minus>[-−])?(?P<figure>{_FIGURE})(?P<scale>{_SCALE})?")


@dataclass(frozen=True, slots=True)
class Price:
    figure: str
    """With a decimal point, without what parts thousands."""
    scale: str
    """ "million"; "": none."""
    currency: Currency | None
    minus: str

    @property
    def number(self) -> str:
        return f"{decimal(self.figure)} {self.scale}".strip()

    @property
    def even(self) -> bool:
        """Without cents."""
        return bool(self.scale) or "." not in self.figure

    def said(self) -> str:
        """$18.50 -> eighteen dollars fifty; $0.50 -> fifty cents; $2.5 million -> two point five million dollars."""
        currency = self.currency or WRITTEN["$"]
        whole, _, fraction = self.figure.partition(".")
        if self.scale or len(fraction) > 2 or (fraction and not currency.small_one):
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
    if re.search(",[0-9]{2}$", figure):
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
    return Price(figure, scale, WRITTEN.get(written.split(" ")[-1]), "minus " if found["minus"] else "")


def _said(found: re.Match[str]) -> str:
    said = _price(found["price"]).said() + per(found["per"])
    return f"{said} plus" if found["more"] else said


def _range(found: re.Match[str]) -> str | None:
    """$250-$300 -> two hundred fifty to three hundred dollars; with cents both are said in full."""
    low, high = _price(found["low"]), _price(found["high"])
    if not (low.currency or high.currency):
        return None
    currency = low.currency or high.currency
    if (high.currency or currency) is not currency or not (low.even and high.even) or low.minus:
        low = Price(low.figure, low.scale, currency, low.minus)
        high = Price(high.figure, high.scale, high.currency or currency, high.minus)
        return f"{low.said()} to {high.said()}{per(found['per'])}"
    return f"{low.number} to {Price(high.figure, high.scale, currency, '').number} {_many(currency)}{per(found['per'])}"


def _many(currency: Currency | None) -> str:
    return currency.many if currency else ""


_BEGINS = DIGITS + "." + "".join(sorted({key[0] for key in WRITTEN}))

FORMS: tuple[Form, ...] = (
    form(
        "range of money",
        _BEGINS,
        rf"(?P<low>{_PRICE}|{_BARE})(?:/[a-z]{{1,6}})?{DASH}(?P<high>{_PRICE}|{_BARE}){PER}{END}",
        _range,
    ),
    form("money", _BEGINS, rf"(?P<price>{_PRICE}){PER}(?P<more>[+](?![\w+]))?(?![0-9]|[.,][0-9])", _said),
)
