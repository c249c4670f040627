"""Web, e-mail and IP addresses, and versions: said sign by sign where they have signs."""

import re

from voicepipe.languages.en.verbaliser.numbers import cardinal, digits
from voicepipe.languages.markup import IN_LINK
from voicepipe.languages.written_form import DASH, DIGITS, END, LETTERS, WrittenForm, form

DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|example|test|biz|io|dev|app|ai|co|me|tv|eu|de|uk|us|ca|au|nz|ie|fr|nl|es|it|ch|at|"
    "be|in|jp|br|online|shop|store|site|health|care|cloud|tech"
)
SPELLED = {
    ".": "dot",
    "/": "slash",
    "-": "dash",
    "_": "underscore",
    "@": "at",
    "+": "plus",
    "%": "percent",
    ":": "colon",
}
SPELLED |= {"~": "tilde", "&": "and", "=": "equals"}
PATH = rf"(?:[/?#](?:(?![<>\"])[{IN_LINK}])*(?![.,;:!?)\]*<>\"])[{IN_LINK}]|/(?![\w]))?"
"""Behind a host. What ends a sentence or closes a bracket is not of it."""
OCTET = "(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})"
_HOST = rf"{OCTET}(?:[.]{OCTET}){{3}}"


def spelled(text: str) -> str:
    """A link or an e-mail address without what nobody says: scheme, "www.", query and fragment."""
    bare = re.split("[?#]", re.sub(r"^(?:https?://)?(?:www\.)?", "", text))[0].rstrip("/")
    parts = re.findall("[0-9]+|[^0-9./_@+%:~&=-]+|.", bare)
    return " ".join(digits(part) if part[0] in DIGITS else SPELLED.get(part, part) for part in parts)


def _ip(found: re.Match[str]) -> str:
    hosts = (host for host in found.group("host", "last") if host)
    said = " to ".join(" dot ".join(digits(octet) for octet in host.split(".")) for host in hosts)
    if found["port"]:
        said += f" colon {digits(found['port'])}"
    return f"{said} slash {cardinal(int(found['prefix']))}" if found["prefix"] else said


def version(text: str) -> str:
    """3.11.7-rc1 -> three point eleven point seven rc one."""
    parts = re.findall("[0-9]+|[A-Za-z]+|[.]", text)
    return " ".join(
        "point" if part == "." else part if part.isalpha() else digits(part) if part[0] == "0" else cardinal(int(part))
        for part in parts
    )


_SUFFIX = r"(?:-[A-Za-z]{1,8}(?:[.]?[0-9]{1,4})?|(?:a|b|rc)[0-9]{1,4})?"

FORMS: tuple[WrittenForm, ...] = (
    form(
        "URL",
        LETTERS,
        rf"https?://[{IN_LINK}]*(?![.,;:!?)\]*])[{IN_LINK}]|www\.[\w.-]{{0,200}}\w{PATH}",
        lambda found: spelled(found.group()),
    ),
    form(
        "e-mail address",
        LETTERS + DIGITS + "_",
        r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}",
        lambda found: spelled(found.group()),
    ),
    form(
        "domain",
        LETTERS + DIGITS,
        rf"(?=[\w-]{{0,63}}[A-Za-z])(?:localhost|[\w-]{{1,63}}(?:\.[\w-]{{1,64}}){{0,5}}\.(?:{DOMAINS}|{DOMAINS.upper()}))\b(?![\w@-]|\.\w)(?::[0-9]{{2,5}})?{PATH}",
        lambda found: spelled(found.group()),
    ),
    form(
        "IP address",
        DIGITS,
        rf"(?P<host>{_HOST})(?:{DASH}(?P<last>{_HOST}))?(?::(?P<port>[0-9]{{1,5}}))?(?:/(?P<prefix>[0-9]{{1,2}}))?{END}",
        _ip,
    ),
    form(
        "version",
        "vV",
        r"(?P<word>[vV]ersion |[vV]er[.] ?|v|V(?=[0-9]+[.]))"
        rf"(?P<number>[0-9]{{1,4}}(?:[.][0-9]{{1,6}}){{0,5}}{_SUFFIX}){END}",
        lambda found: f"{'Version' if found['word'].startswith('Ver') else 'version'} {version(found['number'])}",
    ),
)
VERSIONS: tuple[WrittenForm, ...] = (
    form(
        "version",
        DIGITS,
        rf"(?![0-9]{{1,3}}(?:[.][0-9]{{3}}){{2,}})[0-9]{{1,4}}(?:[.][0-9]{{1,6}}){{2,5}}{_SUFFIX}{END}",
        lambda found: version(found.group()),
    ),
)
"""Versions: three numbers and more with points between, that are no date."""
