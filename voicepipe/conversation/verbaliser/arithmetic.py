"""Sums, products and comparisons."""

import re

from voicepipe.conversation.verbaliser.form import DIGITS, END, WrittenForm, constant, form
from voicepipe.conversation.verbaliser.numbers import NUMBER, cardinal, decimal

OPERATORS = {
    "+": "plus", "-": "minus", "−": "minus", "*": "times", "x": "times", "×": "times", "·": "times",
    "/": "divided by", "÷": "divided by", "^": "to the power of", "=": "equals",
}  # fmt: skip
_SUM = rf"{NUMBER}(?: ?[-+−*x×·/÷^] ?{NUMBER}){{1,12}} ?=(?: ?[-−]?{NUMBER})?"
_PRODUCT = rf"{NUMBER}(?: ?[*÷·+] ?{NUMBER}| ?\^ ?[-−]?{NUMBER}| ?[x×] ?{NUMBER}(?= ?[*÷^])){{1,12}}"
_TERM = re.compile(rf"{NUMBER}|[^\s0-9.]")


def _said(found: re.Match[str]) -> str:
    """2+2=4 -> two plus two equals four."""
    return " ".join(OPERATORS.get(term) or decimal(term) for term in _TERM.findall(found.group()))


FORMS: tuple[WrittenForm, ...] = (
    form("sum", DIGITS, f"{_SUM}{END}", _said),
    form("product", DIGITS, f"{_PRODUCT}{END}", _said),
    form(
        "power",
        DIGITS,
        r"(?P<base>[0-9]{1,9})(?P<power>[²³])(?!\w)",
        lambda found: f"{cardinal(int(found['base']))} {'squared' if found['power'] == '²' else 'cubed'}",
    ),
)
SIGNS: tuple[WrittenForm, ...] = (
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
