"""Numbers without a unit: cardinal, ordinal, decimal, fractions, ratios and ranges; sums, products and comparisons."""

import re

from voicepipe.languages.en.verbaliser.calendar import day_of_month
from voicepipe.languages.en.verbaliser.codes import NAMED, code
from voicepipe.languages.en.verbaliser.numbers import (
    AMOUNT,
    FRACTION,
    NUMBER,
    VULGAR,
    amount,
    cardinal,
    decimal,
    fraction,
    grouped,
    ordinal,
)
from voicepipe.languages.written_form import (
    CURRENCY,
    DASH,
    DIGITS,
    END,
    HYPHENS,
    WrittenForm,
    before,
    constant,
    form,
)

_TH = "(?:st|nd|rd|th|ST|ND|RD|TH)"
_ROUND = 50
"""Two numbers of three digits and more with a dash are a range if both are a multiple of it, else a code."""
_PART = re.compile(r"rds|ths|nds|[\"″]|[ -]?(?:inch(?:es)?|of|shares?|chance|full|empty|cups?|miles?|tsp|tbsp)\b")
"""Behind a fraction."""
_SCORED = re.compile(r"(?i)\b(?:scored?|grade|rat(?:ed|ing)|got)(?: (?:is|was|of|a|an))? $")
FIXED = {"9/11": "nine eleven"}

OPERATORS = {
    "+": "plus", "-": "minus", "−": "minus", "*": "times", "x": "times", "×": "times", "·": "times",
    "/": "divided by", "÷": "divided by", "^": "to the power of", "=": "equals",
}  # fmt: skip
_SUM = rf"{NUMBER}(?: ?[-+−*x×·/÷^] ?{NUMBER}){{1,12}} ?=(?: ?[-−]?{NUMBER})?"
_PRODUCT = rf"{NUMBER}(?: ?[*÷·+] ?{NUMBER}| ?\^ ?[-−]?{NUMBER}| ?[x×] ?{NUMBER}(?= ?[*÷^])){{1,12}}"
_TERM = re.compile(rf"{NUMBER}|[^\s0-9.]")


def _slashed(found: re.Match[str]) -> str:
    """A date, a fraction, or one number over another, whichever is likeliest."""
    written = re.sub("[a-z]+", "", found.group())
    over, _, under = written.partition("/")
    part = _PART.match(found.string, found.start() + len(written))
    if said := FIXED.get(written):
        return said
    if "." not in written and not part and (said := day_of_month(written, before(found)) or ""):
        return said
    if under in ("5", "10", "100") and (("." in over) or (under != "5" and over != "1")):
        return f"{decimal(over)} out of {decimal(under)}"
    if over == under:
        return f"{decimal(over)} {decimal(under)}"
    if _SCORED.search(before(found)):
        return f"{decimal(over)} out of {decimal(under)}"
    named = NAMED.search(before(found))
    if re.fullmatch(FRACTION, written) and not named:
        return fraction(written)
    if float(over) > float(under) and not named:
        return f"{decimal(over)} over {decimal(under)}"
    return " slash ".join(code(side) if named and side.isdecimal() else decimal(side) for side in (over, under))


def _range(found: re.Match[str]) -> str | None:
    """5-7 -> five to seven. Three digits and more on both sides are a code, unless both are round."""
    low, high = found["low"], found["high"]
    plain = low.isdecimal() and high.isdecimal()
    if (
        plain
        and min(len(low), len(high)) > 2
        and len(low + high) > 6
        and any(int(part) % _ROUND for part in (low, high))
    ):
        return None
    if low == high:
        return f"{amount(low)} {amount(high)}"
    return f"{amount(low)} to {amount(high)}"


def _ordinals(found: re.Match[str]) -> str:
    """1st-3rd -> first to third."""
    low, high = (ordinal(int(part.replace(",", ""))) if part else "" for part in (found["low"], found["high"]))
    return f"{low} to {high}" if high else low


def _long(found: re.Match[str]) -> str | None:
    """A number with a leading zero, or of seven digits and more, is a code, unless it ends in "000" or "0,000"."""
    number = found.group()
    if number[0] == "0" or len(number) > 15:
        return grouped(number)
    return (
        cardinal(int(number))
        if number.endswith("0000") or (len(number) < 10 and number.endswith("000"))
        else grouped(number)
    )


def _number(found: re.Match[str]) -> str:
    return decimal(found["number"]) + (" plus" if found["more"] else "")


def _unknown(found: re.Match[str]) -> str:
    """A number with signs inside that is no form: all its groups in order, none of them lost."""
    parts = [part for part in re.split(f"[:,{HYPHENS}]", found.group()) if part]
    each = re.search("[0-9]{3}", found.group()) is not None
    return ", ".join(
        " slash ".join(" point ".join(_group(group, each) for group in side.split(".")) for side in part.split("/"))
        for part in parts
    )


def _group(group: str, each: bool) -> str:
    return grouped(group) if each or group.startswith("0") else cardinal(int(group))


def _mixed(found: re.Match[str]) -> str | None:
    """4 1/2 and ½. A mere 1/2 may be a date, see `_slashed`."""
    written = found.group().strip()
    return fraction(written) or None if written[-1] in VULGAR or re.search("[ ⁄-]", written) else None


def _calculation(found: re.Match[str]) -> str:
    """2+2=4 -> two plus two equals four."""
    return " ".join(OPERATORS.get(term) or decimal(term) for term in _TERM.findall(found.group()))


ARITHMETIC: tuple[WrittenForm, ...] = (
    form("sum", DIGITS, f"{_SUM}{END}", _calculation),
    form("product", DIGITS, f"{_PRODUCT}{END}", _calculation),
    form(
        "power",
        DIGITS,
        r"(?P<base>[0-9]{1,9})(?P<power>[²³])(?!\w)",
        lambda found: f"{cardinal(int(found['base']))} {'squared' if found['power'] == '²' else 'cubed'}",
    ),
)

SPECIAL: tuple[WrittenForm, ...] = (
    form(
        "always",
        "2",
        rf"24[/{HYPHENS}]7(?P<days>[/{HYPHENS}]365)?{END}",
        lambda found: "twenty four seven" + (" three sixty five" if found["days"] else ""),
    ),
    form("fraction", DIGITS + VULGAR, rf"{FRACTION}(?![\w/]|[.{HYPHENS}][0-9])", _mixed),
    form(
        "ordinal",
        DIGITS,
        rf"(?P<low>[0-9]{{1,3}}(?:,?[0-9]{{3}}){{0,3}}){_TH}(?:{DASH}(?P<high>[0-9]{{1,6}}){_TH})?\b",
        _ordinals,
    ),
    form(
        "slash",
        DIGITS,
        rf"[0-9]{{1,4}}(?:[.][0-9]{{1,2}})?/[0-9]{{1,4}}(?![0-9/]|[.{HYPHENS}][0-9])(?:(?<=[2-9])(?:rds|ths|nds)\b)?",
        _slashed,
    ),
    form(
        "ratio",
        DIGITS,
        rf"(?P<low>[0-9]{{1,3}}):(?P<high>[0-9]{{1,3}}){END}",
        lambda found: f"{cardinal(int(found['low']))} to {cardinal(int(found['high']))}",
    ),
    form("range", DIGITS + "." + VULGAR, rf"(?P<low>{AMOUNT}){DASH}(?P<high>{AMOUNT}){END}", _range),
)


NUMBERS: tuple[WrittenForm, ...] = (
    form("long number", DIGITS, rf"(?:0[0-9]+|[0-9]{{7,}}){END}", _long),
    form("number", DIGITS + ".", rf"(?P<number>{NUMBER})(?P<more>[+](?![\w+]))?(?![\w]|[.:/{HYPHENS}][0-9])", _number),
    form("unknown number", DIGITS, rf"[0-9]+(?:[.:/,{HYPHENS}][0-9]+)*", _unknown),
)
SIGNS: tuple[WrittenForm, ...] = (
    constant("minus", "-−", rf"(?<![\w.,)%])(?<![0-9]['\"’”′″])[-−](?=[{CURRENCY}]?[.]?[0-9½¼¾])", "minus "),
    constant("plus", "+", rf"(?<![\w.,)%])(?<![0-9]['\"’”′″])[+](?=[{CURRENCY}]?[.]?[0-9])", "plus "),
    constant("about", "~≈", rf"(?<![\w~])(?:~(?!~)|≈) ?(?=[-{CURRENCY}]?[.]?[0-9])", "about "),
    constant("comma of a list", ",", r"(?<=[0-9]),(?=[0-9])", ", "),
    constant("plus or minus", "±", "±", " plus or minus "),
    constant(
        "per",
        "/",
        r"(?<=[a-z])/(?=(?:hour|day|night|week|month|year|person|minute|second|mile|visit|call|user)\b)",
        " per ",
    ),
    constant("at least", ">≥", ">=|≥", " greater than or equal to "),
    constant("at most", "<≤", "<=|≤", " less than or equal to "),
    constant("greater", ">", r"(?<![\w<>-])>(?![<>=])|(?<=\w)>(?=[0-9])", " greater than "),
    constant("less", "<", r"(?<![\w<>])<(?![<>=\w-])|<(?=[0-9])", " less than "),
    constant("unequal", "≠", "≠", " not equal to "),
    constant("equals", "=", r"(?<![\w=<>])=(?![\w=<>])|(?<=\w)=(?=\w)", " equals "),
    constant("times", "×x", r"×|(?<=[0-9] )x(?= [$€£]?[0-9])", " times "),
    constant("divided by", "÷", "÷", " divided by "),
    constant("plus", "+", r"(?<!\w)\+(?!\w)", " plus "),
    constant("plus of a name", "+", r"(?<=[A-Za-z])\+\+(?![\w+])", " plus plus"),
    constant("plus of a name", "+", r"(?<=[A-Za-z])\+(?![\w+])", " plus"),
    constant("to the power of", "^", r"(?<=[\w)])\^(?=[-−]?\w)", " to the power of "),
    constant("and", "&", r"(?<!\w)&(?!\w)|(?<=\w)&(?=\w)", " and "),
    constant("at", "@", r"(?<!\w)@(?!\w)|(?<=\w)@(?=\w)", " at "),
)
