"""Numbers with a unit: lengths, weights, temperatures, percent, and ranges of them."""

import re

from voicepipe.languages.en.verbaliser.calendar import FOR_A_TIME
from voicepipe.languages.en.verbaliser.numbers import (
    AMOUNT,
    FRACTION,
    NUMBER,
    SCALE_WORDS,
    VULGAR,
    amount,
    cardinal,
    decimal,
    digits,
    plural,
)
from voicepipe.languages.en.verbaliser.numbers import (
    SCALES_SHORT as SCALES,
)
from voicepipe.languages.written_form import DASH, DIGITS, END, GAP, HYPHENS, WrittenForm, before, form

WRITTEN = {
    "kilometers per hour": "km/h|kph", "miles per hour": "mph", "meters per second": "m/s", "kilometers": "km",
    "centimeters": "cm", "millimeters": "mm", "micrometers": "µm", "nanometers": "nm", "meters": "m",
    "miles": "mi|mi.", "yards": "yd|yds", "feet": "ft", "inches": "in.", "kilograms": "kg", "milligrams": "mg",
    "micrograms": "µg|mcg", "grams": "g", "pounds": "lb|lbs", "ounces": "oz", "milliliters": "ml|mL",
    "centiliters": "cl", "deciliters": "dl|dL", "liters": "l|L", "gallons": "gal", "quarts": "qt", "pints": "pt",
    "tablespoons": "tbsp", "teaspoons": "tsp", "fluid ounces": "fl oz|fl. oz", "minutes": "min|mins",
    "seconds": "sec|secs|s", "hours": "hrs|hr|h", "milliseconds": "ms", "years": "yrs|yr", "months": "mos",
    "weeks": "wks", "kilobytes": "kB|KB", "megabytes": "MB", "gigabytes": "GB", "terabytes": "TB",
    "megabytes per second": "MB/s", "gigabytes per second": "GB/s", "kilobits per second": "kbps",
    "megabits per second": "Mbps", "gigabits per second": "Gbps", "watts": "W", "kilowatts": "kW", "megawatts": "MW",
    "kilowatt hours": "kWh", "watt hours": "Wh", "milliamp hours": "mAh", "volts": "V", "hertz": "Hz",
    "kilohertz": "kHz", "megahertz": "MHz", "gigahertz": "GHz", "decibels": "dB", "horsepower": "hp",
    "revolutions per minute": "rpm", "pounds per square inch": "psi", "kilocalories": "kcal", "calories": "cal",
    "millimeters of mercury": "mmHg", "pixels": "px", "frames per second": "fps",
    "square feet": "sq ft|sq. ft|ft²|ft2", "square meters": "sq m|m²|m2", "square miles": "sq mi",
    "square kilometers": "km2|km²", "square centimeters": "cm²", "cubic meters": "m³",
    "cubic feet": "cu ft|ft³", "cubic inches": "cu in|in³", "cubic centimeters": "cm³",
    "degrees Celsius": "°C|° C|℃|degrees C", "degrees Fahrenheit": "°F|° F|℉|degrees F", "degrees": "°",
    "percent": "%", "per mille": "‰", "thousand": "k", "million": "M",
}  # fmt: skip
UNITS = {written: unit for unit, ways in WRITTEN.items() for written in ways.split("|")}
UNITS |= {
    f"{written[:-1]}^{power}": UNITS[written]
    for power, sign in (("2", "²"), ("3", "³"))
    for written in UNITS
    if written[-1] == sign
}
QUOTES = "'\"’”"
DESCRIBED = re.compile(
    " (?!(?:wide|long|tall|deep|high|thick|or|and|by|in|x|to|of|is|for|from)\\b)(?:[a-z]|[A-Z]{2}\\b)"
)
"""Behind `12"`: what is so long, as in "a twelve inch pizza"."""
NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z]\w* $|\b\w+[A-Z]\w* $")
_CAPITAL = re.compile(r"\b[A-Z]\w+ $")
"""Behind a name a number with an s is its plural: "Airbus 320s", "iPhone 15s"."""
SAME = ("percent", "per mille", "hertz", "kilohertz", "megahertz", "gigahertz", "horsepower", "thousand", "million")
"""Units whose name is the same for one and for many."""
PER_UNITS = {
    "hr": "hour", "h": "hour", "mo": "month", "mth": "month", "yr": "year", "wk": "week", "min": "minute",
    "sec": "second", "s": "second", "pp": "person", "ea": "each", "sqft": "square foot",
}  # fmt: skip
PER = r"(?:/ ?(?P<per>(?:sq ft|[A-Za-z]{1,12}))(?![\w/]))?"
"""What a price or a measure is for: "$20/hour", "5 mg/kg"."""
_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_SCALE = f"(?: (?:{'|'.join(SCALE_WORDS)}))?"
_ENDS = rf"(?![\w²³°/^]|[{HYPHENS}][0-9])(?:[.](?= [a-z]| [0-9]+ ?(?:oz|in|min|sec)\b))?"
"""Behind a unit. The point of an abbreviated one is not a sentence's when that goes on."""
DIMENSION = f"{NUMBER}(?:{GAP}[x×]{GAP}{NUMBER}){{1,2}}"


def singular(unit: str) -> str:
    """kilometers per hour -> kilometer per hour."""
    if unit in SAME:
        return unit
    first, *rest = unit.split()
    if first in ("square", "cubic", "fluid", "kilowatt", "watt", "milliamp") and rest:
        return f"{first} {singular(' '.join(rest))}"
    first = {"feet": "foot", "inches": "inch"}.get(first) or first.removesuffix("s")
    return " ".join([first, *rest])


def per(unit: str | None) -> str:
    """hr -> " per hour"; "": none."""
    if not unit:
        return ""
    name = PER_UNITS.get(unit) or (singular(UNITS[unit]) if unit in UNITS else unit)
    return f" {name}" if name == "each" else f" per {name}"


def _measure(found: re.Match[str]) -> str:
    """5 km -> five kilometers; 1 kg -> one kilogram; a 5-km run -> a five kilometer run; 2-5lb -> two to five pounds;
    5 km-10 km -> five kilometers to ten kilometers."""
    number, unit, low = found["number"], UNITS[found["unit"]], found["low"]
    fraction = number[-1] in VULGAR or "/" in number
    one = not low and not found["scale"] and (number == "1" or (fraction and " and " not in amount(number)))
    if one or (found["joint"] == "-" and not found["scale"]):
        unit = singular(unit)
    said = ""
    if low:
        its = UNITS.get(found["lowunit"])
        said = " ".join([amount(low), *([singular(its) if low == "1" else its] if its else []), "to "])
    return f"{said}{amount(number)}{found['scale']} {unit}{per(found['per'])}"


def _feet(found: re.Match[str]) -> str | None:
    """5'10" -> five feet ten inches; a mark that closes a quotation is none."""
    written = found.group()
    if written[-1] in QUOTES and not (found["feet"] and found["inches"]) and _opened(before(found, 200), written[-1]):
        return None
    said = [f"{cardinal(int(found['feet']))} {'foot' if found['feet'] == '1' else 'feet'}"] if found["feet"] else []
    if inches := found["inches"] or found["alone"]:
        fraction = "/" in inches and " and " not in amount(inches)
        one = inches == "1" or fraction or (found["alone"] and DESCRIBED.match(found.string, found.end()))
        said.append(f"{amount(inches)} {'inch' if one else 'inches'}")
    return " ".join(said)


def _length(written: str) -> str:
    """5'6" -> five feet six inches; what has no mark is a number."""
    feet, mark, rest = re.fullmatch(r"(?:([0-9]+)(['′’]) ?)?(.*)", written).groups()  # type: ignore[union-attr]
    inches = rest.rstrip('"″”')
    said = [f"{cardinal(int(feet))} {'foot' if feet == '1' else 'feet'}"] if mark else []
    if inches:
        said.append(amount(inches) + ("" if inches == rest else " inch" if inches == "1" else " inches"))
    return " ".join(said)


def _lengths(found: re.Match[str]) -> str | None:
    """5'-6' -> five feet to six feet; 10'x12' -> ten feet by twelve feet."""
    if _opened(before(found, 200), found.group()[-1]):
        return None
    joint = "by" if found["by"] else "to"
    said = f" {joint} ".join(_length(side) for side in re.findall(_SIDE, found.group()))
    return said.removesuffix("es") if found.group()[-1] in '"″' and DESCRIBED.match(found.string, found.end()) else said


def _opened(text: str, mark: str) -> bool:
    """Whether a quotation is open that `mark` may close."""
    signs = '"“”' if mark in '"”' else "'‘’"
    opened, closed = (
        re.findall(pattern, text) for pattern in (rf"(?<!\w)[{signs}](?=\w|$)", rf"(?<=[^\s0-9])[{signs}](?!\w)")
    )
    return len(opened) > len(closed)


def _times(found: re.Match[str]) -> str:
    """2-3x -> two to three times."""
    said = f"{decimal(found['number'])} times{per(found['per'])}"
    return f"{decimal(found['low'])} to {said}" if found["low"] else said


def _plural(found: re.Match[str]) -> str | None:
    """100s of people -> hundreds of people; 2x4s -> two by fours; 737s -> seven three sevens. Else they are seconds."""
    number, context = found["number"].replace(",", ""), before(found)
    if "x" in number:
        wide, high = number.split("x")
        return f"{cardinal(int(wide))} by {plural(cardinal(int(high)))}"
    size = re.fullmatch("(10*)(00|000)", number)
    many = found["number"] != number or found.string.startswith(" of", found.end()) or context.endswith("the ")
    if size and (many or (len(number) > 3 and not FOR_A_TIME.search(context))):
        tens = {"1": "", "10": "tens of ", "100": "hundreds of "}
        return f"{tens.get(number[:-3], '')}{'thousands' if len(number) > 3 else 'hundreds'}"
    model = len(number) > 2 and number[-1] != "0" and _CAPITAL.search(context)
    if (model or NAME.search(context)) and not FOR_A_TIME.search(context):
        return plural(digits(number) if len(number) > 2 and number[-2:] != "00" else cardinal(int(number)))
    return None


def _dimension(found: re.Match[str]) -> str:
    """2x4 -> two by four."""
    sides = " by ".join(decimal(side) for side in re.split("[x×]", re.sub(r"\s", "", found["sides"])))
    return f"{sides} {UNITS[found['unit']]}" if found["unit"] else sides


_FEET = r"[0-9]{1,3}['′’](?: ?[0-9]{1,2}(?:[.][0-9])?[\"″”])?"
_INCHES = rf"(?:{FRACTION}|[0-9]{{1,3}}(?:[.][0-9]{{1,2}})?)[\"″”]"
_SIDE = rf"{_FEET}|{_INCHES}|[0-9]{{1,3}}(?:[.][0-9]{{1,2}})?"

FORMS: tuple[WrittenForm, ...] = (
    form(
        "range of lengths, and sides",
        DIGITS,
        rf"(?:{_SIDE})(?:{DASH}|(?P<by>{GAP}[x×]{GAP}))(?:(?:{_SIDE}){GAP}[x×]{GAP})?(?:{_FEET}|{_INCHES})(?!\w)",
        _lengths,
    ),
    form(
        "plural number",
        DIGITS,
        r"(?P<number>[0-9]{1,3}(?:,[0-9]{3}){0,2}|[0-9]{3,6}|[0-9]{1,3}x[0-9]{1,3})s\b",
        _plural,
    ),
    form(
        "feet and inches",
        DIGITS,
        r"(?P<feet>[0-9]{1,3})(?:['′’]| ?(?:ft|foot|feet)[.]?(?= ?[0-9]))"
        r"(?:(?: (?=[^\s]{1,5}(?:[\"″”]| ?in)))?(?P<inches>[0-9]{1,2}(?:[.][0-9])?)(?:[\"″”]| ?in(?:ches|\b[.]?))?)?"
        r"(?!\w)"
        rf"|(?P<alone>{FRACTION}|[0-9]{{1,3}}(?:[.][0-9]{{1,2}})?)[\"″](?!\w)",
        _feet,
    ),
    form(
        "times",
        DIGITS + ".",
        rf"(?:(?P<low>{NUMBER}){DASH})?(?P<number>{NUMBER})[x×]"
        r"(?:/(?P<per>hour|day|night|week|month|year)\b)?(?![\w])(?! ?[-+=*/])",
        _times,
    ),
    form("dimensions", DIGITS, rf"(?P<sides>{DIMENSION})(?:{GAP}(?P<unit>{_UNIT}){_ENDS})?{END}", _dimension),
    form(
        "scaled number",
        DIGITS,
        rf"(?P<number>[0-9]{{1,4}}[.][0-9]{{1,2}}(?=[KB])|[0-9]{{2,3}}(?=K)|{NUMBER}(?=[mbt]n))"
        r"(?P<scale>[KB]|[mbt]n)(?!\w| (?:run|race)\b)",
        lambda found: f"{decimal(found['number'])} {SCALES[found['scale'].lower()]}",
    ),
    form(
        "measure, and range of measures",
        DIGITS + "." + VULGAR,
        rf"(?:(?P<low>{AMOUNT})(?:{GAP}(?P<lowunit>{_UNIT}))?{DASH})?(?P<number>{AMOUNT})(?P<scale>{_SCALE})"
        rf"(?P<joint>[ \u00a0\u2009\u202f-]?)(?P<unit>{_UNIT}){PER}{_ENDS}",
        _measure,
    ),
)
