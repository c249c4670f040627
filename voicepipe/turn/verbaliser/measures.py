"""Numbers with a unit: lengths, weights, temperatures, percent, and ranges of them."""

import re

from voicepipe.turn.verbaliser.form import DASH, DIGITS, END, GAP, Form, form
from voicepipe.turn.verbaliser.numbers import AMOUNT, NUMBER, SCALE_WORDS, VULGAR, amount, cardinal, decimal

UNITS = {
    "km/h": "kilometers per hour", "kph": "kilometers per hour", "mph": "miles per hour", "m/s": "meters per second",
    "km": "kilometers", "cm": "centimeters", "mm": "millimeters", "µm": "micrometers", "nm": "nanometers",
    "m": "meters", "mi": "miles", "yd": "yards", "yds": "yards", "ft": "feet", "in.": "inches", "mi.": "miles",
    "kg": "kilograms", "mg": "milligrams", "µg": "micrograms", "mcg": "micrograms", "g": "grams", "lb": "pounds",
    "lbs": "pounds", "oz": "ounces", "ml": "milliliters", "mL": "milliliters", "cl": "centiliters",
    "dl": "deciliters", "l": "liters", "L": "liters", "gal": "gallons", "qt": "quarts", "pt": "pints",
    "tbsp": "tablespoons", "tsp": "teaspoons", "fl oz": "fluid ounces", "fl. oz": "fluid ounces",
    "min": "minutes", "mins": "minutes", "sec": "seconds", "secs": "seconds", "hrs": "hours", "hr": "hours",
    "h": "hours", "ms": "milliseconds", "s": "seconds", "yrs": "years", "yr": "years", "mos": "months", "wks": "weeks",
    "kB": "kilobytes", "KB": "kilobytes", "MB": "megabytes", "GB": "gigabytes", "TB": "terabytes", "MB/s": "megabytes per second",
    "GB/s": "gigabytes per second", "kbps": "kilobits per second", "Mbps": "megabits per second",
    "Gbps": "gigabits per second", "W": "watts", "kW": "kilowatts", "MW": "megawatts", "kWh": "kilowatt hours",
    "Wh": "watt hours", "mAh": "milliamp hours", "V": "volts", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz",
    "GHz": "gigahertz", "dB": "decibels", "hp": "horsepower", "rpm": "revolutions per minute", "psi": "pounds per square inch",
    "kcal": "kilocalories", "cal": "calories", "mmHg": "millimeters of mercury", "px": "pixels", "fps": "frames per second",
    "sq ft": "square feet", "sq. ft": "square feet", "sq m": "square meters", "sq mi": "square miles", "ft²": "square feet",
    "m²": "square meters", "km²": "square kilometers", "cm²": "square centimeters", "m³": "cubic meters",
    "cm³": "cubic centimeters", "°C": "degrees Celsius", "°F": "degrees Fahrenheit", "° C": "degrees Celsius",
    "° F": "degrees Fahrenheit", "℃": "degrees Celsius", "℉": "degrees Fahrenheit", "°": "degrees", "%": "percent",
    "‰": "per mille", "k": "thousand",
}  # fmt: skip
SAME = ("percent", "per mille", "hertz", "kilohertz", "megahertz", "gigahertz", "horsepower", "thousand")
"""The same for one and for many."""
PER_UNITS = {
    "hr": "hour", "h": "hour", "mo": "month", "mth": "month", "yr": "year", "wk": "week", "min": "minute", "sec": "second",
    "s": "second", "pp": "person", "ea": "each", "sqft": "square foot",
}  # fmt: skip
PER = r"(?:/ ?(?P<per>(?:sq ft|[A-Za-z]{1,12}))(?![\w/]))?"
"""What a price or a measure is for: "$20/hour", "5 mg/kg"."""
_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_SCALE = f"(?: (?:{'|'.join(SCALE_WORDS)}))?"
_ENDS = r"(?![\w²³°/]|[-–][0-9])(?:[.](?= [a-z]))?"
"""Behind a unit. The point of an abbreviated one is not a sentence's when that goes on."""
DIMENSION = f"{NUMBER}(?:{GAP}[x×]{GAP}{NUMBER}){{1,2}}"  # noqa: RUF001


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
    """5 km -> five kilometers; 1 kg -> one kilogram; a 5-km run -> a five kilometer run."""
    number, unit = found["number"], UNITS[found["unit"]]
    fraction = number[-1] in VULGAR or "/" in number
    one = number == "1" or found["joint"] == "-" or (fraction and " and " not in amount(number))
    return f"{amount(number)}{found['scale']} {singular(unit) if one and not found['scale'] else unit}{per(found['per'])}"


def _range(found: re.Match[str]) -> str:
    """2-5lb -> two to five pounds; 5 km-10 km -> five kilometers to ten kilometers."""
    low, unit = amount(found["low"]), UNITS[found["unit"]]
    if found["lowunit"]:
        low += f" {singular(UNITS[found['lowunit']]) if found['low'] == '1' else UNITS[found['lowunit']]}"
    return f"{low} to {amount(found['high'])}{found['scale']} {unit}{per(found['per'])}"


def _feet(found: re.Match[str]) -> str:
    """5'10" -> five feet ten inches."""
    said = [f"{cardinal(int(found['feet']))} {'foot' if found['feet'] == '1' else 'feet'}"] if found["feet"] else []
    if inches := found["inches"] or found["alone"]:
        said.append(f"{decimal(inches)} {'inch' if inches == '1' else 'inches'}")
    return " ".join(said)


def _dimension(found: re.Match[str]) -> str:
    """2x4 -> two by four."""
    sides = " by ".join(decimal(side) for side in re.split("[x×]", re.sub(r"\s", "", found["sides"])))  # noqa: RUF001
    return f"{sides} {UNITS[found['unit']]}" if found["unit"] else sides


FORMS: tuple[Form, ...] = (
    form(
        "feet and inches",
        DIGITS,
        rf"(?P<feet>[0-9]{{1,3}})['′’] ?(?P<inches>[0-9]{{1,2}})[\"″”]|(?P<alone>[0-9]{{1,3}})[\"″](?![\w])",  # noqa: RUF001
        _feet,
    ),
    form("times", DIGITS + ".", rf"(?P<number>{NUMBER})[x×](?![\w])(?! ?[-+=*/])", lambda found: f"{decimal(found['number'])} times"),
    form("dimensions", DIGITS, rf"(?P<sides>{DIMENSION})(?:{GAP}(?P<unit>{_UNIT}){_ENDS})?{END}", _dimension),
    form(
        "range of measures",
        DIGITS + "." + VULGAR,
        rf"(?P<low>{AMOUNT})(?:{GAP}(?P<lowunit>{_UNIT}))?{DASH}(?P<high>{AMOUNT})(?P<scale>{_SCALE}){GAP}(?P<unit>{_UNIT}){PER}{_ENDS}",
        _range,
    ),
    form(
        "measure",
        DIGITS + "." + VULGAR,
        rf"(?P<number>{AMOUNT})(?P<scale>{_SCALE})(?P<joint>[ \u00a0\u2009\u202f-]?)(?P<unit>{_UNIT}){PER}{_ENDS}",
        _measure,
    ),
)
