"""The messages of RFC 4475, as bytes, out of the RFC's notation for what is long or cannot be printed."""

import re
from pathlib import Path
from typing import NamedTuple


class Torture(NamedTuple):
    """One message, and the final answers that are right; None: it needs no answer, or cannot be given one."""

    name: str
    right: frozenset[int | None]
    message: bytes


def read(name: str) -> list[Torture]:
    """Those of one file: each begins with `== NAME CODE ...`."""
    text = (Path(__file__).parent / f"{name}.txt").read_text()
    found = []
    for block in text.split("\n== ")[1:]:
        title, _, message = block.partition("\n")
        known, *codes = title.split()
        right = frozenset(None if code == "-" else int(code) for code in codes)
        found.append(Torture(known, right, _bytes(message if message.endswith("\n\n") else f"{message}\n")))
    return found


def _bytes(text: str) -> bytes:
    text = re.sub(
        r"<allOneLine>\n(.*?)\n</allOneLine>", lambda found: found[1].replace("\n", ""), text, flags=re.DOTALL
    )
    text = re.sub(r"<repeat count=(\d+)>(.*?)</repeat>", lambda found: found[2] * int(found[1]), text)
    raw = text.replace("\n", "\r\n").encode()
    return re.sub(rb"<hex>([0-9A-F]+)</hex>", lambda found: bytes.fromhex(found[1].decode()), raw)


def answerable(message: bytes) -> bytes:
    """The message, whose answer comes back to the port that it is sent from (rport) and not where its Via says."""
    return re.sub(rb"(?im)^((?:via|v)[ \t]*:(?:[^\r]|\r\n[ \t])*)", rb"\1;rport", message, count=1)
