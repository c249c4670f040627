"""Numbers as English words."""

import re
import unicodedata

from voicepipe.languages.en import words as english

SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
SCALE_WORDS = ("hundred", "thousand", "million", "billion", "trillion", "lakh", "crore")
SCALES_SHORT = {
    "k": "thousand",
    "m": "million",
    "mn": "million",
    "b": "billion",
    "bn": "billion",
    "t": "trillion",
    "tn": "trillion",
}
"""As they are written behind a number."""
TENS = {number: word for word, number in english.TENS.items()}
ORDINALS = {english.UNITS[number]: word for word, number in english.ORDINALS.items() if number < len(english.UNITS)}

WHOLE = (
    "(?:[0-9]{1,3}(?:,[0-9]{3}){1,9}|[0-9]{1,2}(?:,[0-9]{2}){1,4},[0-9]{3}|[0-9]{1,3}(?:[\u00a0\u2009\u202f][0-9]{3}){1,4}|[0-9]{1,3}(?:[.][0-9]{3}){2,4}|"
    "[1-9][0-9]{0,2}(?: 000){1,4}(?! ?[0-9])|[1-9](?: [0-9]{3}){2,3}(?! ?[0-9])|[0-9]{1,15})"
)
"""A whole number as written: 1234, 1,234 and, where nothing else can be meant, 1.234.567 or 10 000."""
NUMBER = f"(?:{WHOLE}(?:[.][0-9]{{1,30}})?|(?<![.\\w])[.][0-9]{{1,30}})"
"""A whole number or a decimal one."""
VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
FRACTION = f"(?:(?:[0-9]{{1,4}}[ -])?[0-9]{{1,2}}[/⁄](?:[2-9]|1[026]|32|64|100)(?![0-9])|[0-9]{{0,4}} ?[{VULGAR}])"
AMOUNT = f"(?:{FRACTION}|{NUMBER})"
DIGIT_GROUPS = re.compile("[0-9]{4}$|[0-9]{3}|[0-9]+")


def cardinal(number: int) -> str:
    """1234 -> "one thousand two hundred thirty four"; digit by digit from 10**15 on."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= 10**15:
        return digits(str(number))
    if number < 20:
        return english.UNITS[number]
    if number < 100:
        return TENS[number // 10 * 10] + (f" {english.UNITS[number % 10]}" if number % 10 else "")
    size, name = next((size, name) for size, name in SCALES if number >= size)
    rest = number % size
    return f"{cardinal(number // size)} {name}" + (f" {cardinal(rest)}" if rest else "")


def ordinal(number: int) -> str:
    """21 -> "twenty first"."""
    *head, last = cardinal(number).split()
    last = ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return " ".join([*head, last])


def plural(words: str) -> str:
    """nineteen eighty -> nineteen eighties."""
    return f"{words[:-1]}ies" if words.endswith("y") else f"{words}{'es' if words.endswith('x') else 's'}"


def digits(text: str) -> str:
    """Digit by digit."""
    return " ".join(english.UNITS[int(sign)] for sign in text if sign in "0123456789")


def grouped(text: str) -> str:
    """Digit by digit; from six digits on in groups of three, the last of up to four: 4165550192 -> 416, 555, 0192."""
    return ", ".join(digits(part) for part in ([text] if len(text) < 6 else DIGIT_GROUPS.findall(text)))


def year(number: int) -> str:
    """1987 -> "nineteen eighty seven", 2005 -> "two thousand five"."""
    high, low = divmod(number, 100)
    if high % 10 == 0 and low < 10:
        return cardinal(number)
    return f"{cardinal(high)} {'hundred' if low == 0 else f'oh {english.UNITS[low]}' if low < 10 else cardinal(low)}"


def decimal(text: str) -> str:
    """A number as written, "1,234.50", with what parts its thousands."""
    if text.count(".") > 1:
        text = text.replace(".", "")
    whole, _, fraction = re.sub("[, \u00a0\u2009\u202f]", "", text).partition(".")
    said = grouped(whole) if len(whole) > 1 and whole.startswith("0") else cardinal(int(whole or "0"))
    return f"{said} point {digits(fraction)}" if fraction else said


def amount(text: str) -> str:
    """A number as written, or a fraction: "4 1/2" -> "four and a half"."""
    return fraction(text) or decimal(text)


def fraction(text: str) -> str:
    """4 1/2 -> "four and a half", 3/4 -> "three quarters", 7/4 -> "seven over four"; "": it is none."""
    if text[-1] in VULGAR:
        whole, (over, under) = text[:-1].strip(), unicodedata.normalize("NFKC", text[-1]).split("⁄")
    elif found := re.fullmatch("(?:([0-9]+)[ -])?([0-9]+)[/⁄]([0-9]+)", text):
        whole, over, under = found[1] or "", found[2], found[3]
    else:
        return ""
    top, bottom = int(over), int(under)
    part = {2: "half", 4: "quarter"}.get(bottom) or ordinal(bottom)
    said = f"one {part}" if top == 1 else f"{cardinal(top)} {part}s"
    if not 0 < top < bottom:
        said = f"{cardinal(top)} over {cardinal(bottom)}"
    if not whole:
        return said
    return f"{cardinal(int(whole))} and {f'a {part}' if top == 1 and bottom in (2, 4) else said}"
