"""Money, measures, plain numbers and telephone numbers, in each language that has `NumberForms`."""

import re
from collections.abc import Mapping
from functools import partial

from voicepipe.languages import number_words
from voicepipe.languages.number_forms import YEAR, Money, NumberForms, noun_behind
from voicepipe.languages.written_form import (
    COUNTRY,
    CURRENCY,
    DASH,
    DIGITS,
    END,
    GAP,
    HYPHENS,
    LETTERS,
    WrittenForm,
    before,
    constant,
    form,
)

_MILLIONS = re.compile(r"(?:mill?ion|millón|mill?iard)\w*$|millones$")
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4"}
_SHORT = 3
"""A number of more digits may be a code."""
_ROUND = 10
_LONG = 7
"""A number of so many digits without signs is no amount, unless it ends in "000"."""
_TOGETHER = 3
"""Digits of a long group that are said without a pause."""


def money(language: NumberForms) -> tuple[WrittenForm, ...]:
    """12,50 €; € 5; 3 Mio. €; 10-15 €; €/Monat."""
    amount = rf"(?:(?P<low>{language.sum}){DASH})?(?P<number>{language.sum})"
    scale = rf"(?P<scale>{GAP}{_any_of(language.scales)}(?!\w))"
    words = {name: names for name, names in language.scales.items() if len(name) > 1}  # "M" alone is many things.
    signs, begins = language.signs, CURRENCY + "".join(sorted({sign[0] for sign in language.currencies}))
    of = r"(?: ?(?:de|di|d['’]))?"
    behind = rf"(?:{scale}{of})?{GAP}(?P<sign>{signs})(?!\w)"
    return (
        form("price", DIGITS, rf"{amount}{behind}", partial(_price, language)),
        form(
            "price, its sign first", begins, rf"(?P<sign>{signs}){GAP}{amount}{scale}?{END}", partial(_price, language)
        ),
        form(
            "millions", DIGITS, rf"{amount}(?P<scale>{GAP}{_any_of(words)}(?!\w))(?P<sign>)", partial(_price, language)
        ),
        form(
            "per",
            "/",
            rf"(?<=[\w€$£.])/(?P<each>{_any_of(language.per)})(?!\w)",
            lambda its: f" {language.per[its['each']]}",
        ),
    )


def _any_of(keys: Mapping[str, object]) -> str:
    return "(?:" + "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True)) + ")"


def _price(language: NumberForms, found: re.Match[str]) -> str | None:
    sign, context, low, written = found["sign"], before(found), found["low"], found["number"]
    named = _money(language, sign)
    if scale := (found["scale"] or "").strip():
        said = _scaled(language, written, scale, context)
        if low:
            said = language.to(context, language.said(low), said)
        of = language.of if _MILLIONS.search(said) else ""
        return f"{said} {of}{named.many}" if sign else said
    said = _sum(language, written, named, context)
    return language.to(context, language.whole(*_parts(language, low)[:1], context, named.many), said) if low else said


def _scaled(language: NumberForms, written: str, scale: str, context: str) -> str:
    """3 Mio. -> drei Millionen; 500 k -> cinq cent mille."""
    one, many = language.scales[scale]
    if one == many and written.isdecimal():
        return language.whole(f"{written}000", context)
    return f"{language.said(written, context, one)} {one if language.is_one(written) else many}"


def _money(language: NumberForms, sign: str) -> Money:
    return language.currencies.get(sign) or Money(sign, sign)


def _parts(language: NumberForms, written: str) -> tuple[str, str]:
    """The digits of a sum and of its cents: 1,250.50 is 1.250,50 here."""
    cents = re.search(r"[.,]([0-9]{1,2}|[0-9]{4,})$", written)
    whole = written[: cents.start()] if cents else written
    return "".join(each for each in whole if each in DIGITS), cents[1] if cents else ""


def _sum(language: NumberForms, written: str, named: Money, context: str) -> str:
    """Zwölf Euro fünfzig."""
    whole, cents = _parts(language, written)
    if len(cents) not in (0, 2) or (cents.strip("0") and not named.cent):
        return f"{language.whole(whole)} {language.comma} {language.fraction(cents)} {named.many}"
    count = int(whole) if len(whole) < number_words.LONGEST_NUMBER else 2
    minor = int(cents or 0)
    if not count and minor:
        return f"{language.counted(minor, context, named.cent)} {named.cent if minor == 1 else named.cents}"
    said = language.whole(whole, context, named.one if count == 1 else named.many)
    of = language.of if _MILLIONS.search(said) else ""
    said = f"{said} {of}{named.one if language.is_one(whole) else named.many}"
    return language.price(said, language.cardinal(minor)) if minor else said


def measures(language: NumberForms) -> tuple[WrittenForm, ...]:
    """5 km; 20 %; 10-15 kg; 1,80 m; 2x."""
    amount = rf"(?:(?P<low>{language.number}){DASH})?(?P<number>{language.number})"
    ends = rf"(?![\w²³/]|[{HYPHENS}][0-9])"
    percent = {"%": language.percent, "‰": language.permille}
    return (
        form(
            "percent",
            DIGITS,
            rf"{amount}{GAP}(?P<sign>[%‰])",
            lambda its: f"{_amounts(language, its)} {percent[its['sign']]}",
        ),
        form("metres", DIGITS, rf"(?P<whole>[0-9]),(?P<rest>[1-9][0-9]){GAP}m{ends}", partial(_metres, language)),
        form(
            "measure", DIGITS, rf"{amount}{GAP}(?P<unit>{_any_of(language.units)}){ends}", partial(_measure, language)
        ),
        form("times", DIGITS, r"(?P<number>[0-9]{1,4})[x×](?!\w)", lambda its: language.multiple(int(its["number"]))),
    )


def _amounts(language: NumberForms, found: re.Match[str], noun: str = "") -> str:
    said = language.said(found["number"], before(found), noun)
    return language.to(before(found), language.said(found["low"]), said) if found["low"] else said


def _metres(language: NumberForms, found: re.Match[str]) -> str:
    one, many = language.units["m"]
    name = one if found["whole"] == "1" else many
    said = f"{language.whole(found['whole'], before(found), name)} {name}"
    return f"{said} {language.metres}{language.cardinal(int(found['rest']))}"


def _measure(language: NumberForms, found: re.Match[str]) -> str:
    one, many = language.units[found["unit"]]
    name = one if language.is_one(found["number"]) else language.unit_in(before(found), many)
    return f"{_amounts(language, found, name)} {name}"


def telephones(language: NumberForms) -> tuple[WrittenForm, ...]:
    """+49 30 123456; 0171 2345678; (030) 123-456."""
    parted = rf"[ ./{HYPHENS}]{{1,3}}"
    return (
        form("IP address", DIGITS, rf"[0-9]{{1,3}}(?:[.][0-9]{{1,3}}){{3}}{END}", partial(_ip, language)),
        form(
            "international number",
            "+",
            rf"\+[0-9](?:[ ()./{HYPHENS}]{{0,3}}[0-9]){{6,18}}{END}",
            partial(_dialled, language),
        ),
        form(
            "number with a prefix",
            DIGITS + "(",
            rf"(?=[(]?0(?:[ ()./{HYPHENS}]{{0,3}}[0-9]){{5,18}}\b)"
            rf"[(]?0[0-9]{{0,18}}[)]?(?:{parted}[0-9]{{1,18}}){{0,14}}{END}",
            partial(_dialled, language),
        ),
        form("short number", DIGITS, rf"[0-9]{{3,4}}(?! [0-9]){END}", partial(_short, language)),
    )


def _ip(language: NumberForms, found: re.Match[str]) -> str | None:
    octets = found.group().split(".")
    if any(int(octet) > 255 for octet in octets) or octets[-1] == "000":
        return None
    return f" {language.point} ".join(language.whole(octet) for octet in octets)


def _dialled(language: NumberForms, found: re.Match[str]) -> str:
    parts, written = list[str](), found.group().replace("(0)", "")  # Nobody dials the 0 of "+49 (0)30".
    for group in re.findall("[0-9]+", written):
        if len(group) > 10 and written[0] == "+" and (country := COUNTRY.match(group)):
            parts.append(language.dialled(country.group()))
            group = group[country.end() :]
        parts.append(language.dialled(group))
    return (f"{language.plus} " if written[0] == "+" else "") + ", ".join(parts)


def in_groups(digits: str, size: int = _TOGETHER) -> list[str]:
    """The digits as people part them: 2345678 -> 234, 5678. No digit stands alone."""
    groups = [digits[at : at + size] for at in range(0, len(digits), size)]
    if len(groups) > 1 and len(groups[-1]) == 1:
        last = groups.pop()
        groups[-1] += last
    return groups


def _short(language: NumberForms, found: re.Match[str]) -> str | None:
    if noun_behind(found)[:1].isupper() or not re.search(rf"(?i:{language.phone_context})[ :]$", before(found)):
        return None
    return language.short_number(found.group()) or None


def numbers(language: NumberForms) -> tuple[WrittenForm, ...]:
    """1.250; 3,5; 2-3; 1/2; whatever has digits."""
    groups = {joint: rf"[(]?[0-9]{{2,5}}[)]?(?:{joint}[0-9]{{2,6}}){{1,5}}" for joint in (" ", "[.]", f"[{HYPHENS}]")}
    least = {joint: 6 if joint == " " else _LONG for joint in groups}
    grouped = "|".join(rf"(?=(?:[()]{{0,2}}{joint}?[0-9]){{{least[joint]},19}}\b){groups[joint]}" for joint in groups)
    return (
        form(
            "mixed fraction",
            DIGITS,
            rf"(?P<whole>[0-9]{{1,3}})(?: (?P<part>[1-3]/[2-4]){END}|(?P<vulgar>[½⅓⅔¼¾]))",
            partial(_mixed, language),
        ),
        form("fraction", "½⅓⅔¼¾" + DIGITS, rf"[½⅓⅔¼¾]|[1-3]/[2-4]{END}", partial(_part, language)),
        form("always", "2", rf"24/7{END}", lambda its: f"{language.cardinal(24)} {language.cardinal(7)}"),
        form(
            "number in a code",
            DIGITS,
            rf"(?:(?<=[^\W\d_])|(?<=[A-Z]-))[0-9]{{1,15}}(?:[{HYPHENS}][0-9]{{1,15}}){{0,9}}(?![0-9]|[.,:/][0-9])",
            partial(_code, language),
        ),
        form(
            "number in groups",
            DIGITS + "(",
            rf"(?P<number>{grouped}){END}",
            partial(_groups, language),
        ),
        form(
            "range",
            DIGITS,
            rf"(?P<low>{language.number}){DASH}(?P<high>{language.number}){END}",
            partial(_range, language),
        ),
        form("long number", DIGITS, rf"(?:0[0-9]+|[0-9]{{{_LONG},}}){END}", partial(_long, language)),
        form("number", DIGITS, rf"(?P<number>{language.number}){END}", partial(_number, language)),
        form("unknown number", DIGITS, rf"[0-9]+(?:[.:/,{HYPHENS}][0-9]+)*", partial(_unknown, language)),
    )


def _mixed(language: NumberForms, found: re.Match[str]) -> str | None:
    part = language.fractions.get(found["part"] or _VULGAR[found["vulgar"] or "½"])
    if not part:
        return None
    if (found["part"] or found["vulgar"]) in ("1/2", "½"):
        part = part.removeprefix("un ")
    return language.mixed.format(whole=language.cardinal(int(found["whole"])), part=part)


def _part(language: NumberForms, found: re.Match[str]) -> str | None:
    return language.fractions.get(_VULGAR.get(found.group(), found.group()))


def _groups(language: NumberForms, found: re.Match[str]) -> str | None:
    """A telephone number, or the number of a card; 1 250 000 and 1.250.000 are numbers."""
    written = found["number"]
    if re.fullmatch(f"{YEAR}[{HYPHENS}]{YEAR}", written):
        return None
    if re.fullmatch(language.grouped, written):
        parts = re.findall("[0-9]+", written)
        told = [len(part) for part in parts] == [3, 3, 3] and written[0] in "6789" and parts[-1] != "000"
        if not told or (noun_behind(found) and found.string[found.end() + 1].islower()):
            return None
    return _dialled(language, found)


def _range(language: NumberForms, found: re.Match[str]) -> str | None:
    """2-3 -> two to three. Three digits and more on both sides are a code, unless both are round or years."""
    low, high = found["low"], found["high"]
    if low.isdecimal() and high.isdecimal() and min(len(low), len(high)) > 2:
        years = all(re.fullmatch(YEAR, each) for each in (low, high))
        if any(int(each) % _ROUND for each in (low, high)) and not years:
            return None
        if years:
            return language.to(before(found), language.year(int(low)), language.year(int(high)))
    return language.to(before(found), language.said(low), language.said(high, before(found), noun_behind(found)))


def _long(language: NumberForms, found: re.Match[str]) -> str | None:
    number = found.group()
    if number[0] != "0" and len(number) <= number_words.LONGEST_NUMBER and number.endswith("000"):
        return None
    if len(number) > number_words.LONGEST_NUMBER:
        return ", ".join(map(language.each, in_groups(number)))
    return language.dialled(number)


def _number(language: NumberForms, found: re.Match[str]) -> str | None:
    written, noun = found["number"], noun_behind(found)
    if len(written) > _SHORT and written.isdecimal():
        if re.search(rf"(?i:{language.code_context})[: ]{{1,2}}$", before(found)):
            return language.dialled(written)
    if len(written) == 4 and written.isdecimal() and 1100 <= int(written) < 2100 and not noun[:1].isupper():
        return language.year(int(written))
    return language.said(written, before(found), noun)


def _code(language: NumberForms, found: re.Match[str]) -> str:
    """B12, ABC123."""
    parts = re.findall("[0-9]+", found.group())
    return ", ".join(
        language.cardinal(int(part)) if len(part) < 3 and part[0] != "0" else language.each(part) for part in parts
    )


def _unknown(language: NumberForms, found: re.Match[str]) -> str:
    """A number with signs inside that is no form: all its groups in order, none of them lost."""
    if season := re.fullmatch(rf"({YEAR})/({YEAR}|[0-9]{{2}})", found.group()):
        second = season[2]
        last = language.year(int(second)) if len(second) == 4 else language.whole(second)
        return f"{language.year(int(season[1]))} {last}"
    long = re.search("[0-9]{4}", found.group()) is not None
    said = {".": f" {language.point} ", "/": f" {language.slash} "}
    return "".join(
        said.get(part, ", ") if part[0] not in DIGITS else language.each(part) if long else language.whole(part)
        for part in re.findall("[0-9]+|[^0-9]", found.group())
    )


def addresses(language: NumberForms) -> tuple[WrittenForm, ...]:
    """ann@example.com, www.example.com."""
    spelled = {
        "@": language.at, ".": language.point, "-": language.dash, "_": language.underscore, "+": language.plus,
        "/": language.slash,
    }  # fmt: skip

    def address(found: re.Match[str]) -> str:
        parts = re.findall("[0-9]+|[^0-9@._+/-]+|.", found.group().removeprefix("www."))
        return " ".join(language.each(part) if part[0] in DIGITS else spelled.get(part, part) for part in parts)

    return (
        form("e-mail address", LETTERS + DIGITS + "_", r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}", address),
        form("host", "w", r"www\.[\w.-]{0,200}\w", address),
    )


def signs(language: NumberForms) -> tuple[WrittenForm, ...]:
    """Signs before numbers and between words."""
    return (
        constant("minus", "-−", rf"(?<![\w.,)%])[-−](?=[{CURRENCY}]?[0-9½¼¾])", f"{language.minus} "),
        constant("plus", "+", r"(?<![\w.,)%])[+](?=[0-9])", f"{language.plus} "),
        constant("slash", "/", r"(?<=[0-9])/(?=[^\W\d_])", " "),
        constant("comma of a list", ",", r"(?<=[0-9]),(?=[0-9])", ", "),
        constant("and", "&", r"(?<!\w)&(?!\w)|(?<=\w)&(?=\w)", f" {language.and_} "),
        constant("at", "@", r"(?<!\w)@(?!\w)", f" {language.at} "),
        constant("times", "×x", r"×|(?<=[0-9] )x(?= [0-9])|(?<=[0-9])x(?=[0-9])", f" {language.times} "),
        constant("equals", "=", "=", f" {language.equals} "),
        constant("plus", "+", r"(?<!\w)\+(?!\w)", f" {language.plus} "),
        constant("euro", "€", "€", language.money["€"].many),
    )
