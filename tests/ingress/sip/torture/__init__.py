"""The messages of RFC 4475, byte for byte, and what a PoP makes of each: the table in README.md."""

import re
from pathlib import Path
from typing import NamedTuple

_HERE = Path(__file__).parent


class Torture(NamedTuple):
    """One message. `status`: of its final answer; None: there is none."""

    name: str
    message: bytes
    status: int | None


def tortures() -> list[Torture]:
    """All of them, in the RFC's order."""
    rows = re.findall(r"^\| `(\w+)` \| [\d.]+ \| (\d{3}|none) \|", (_HERE / "README.md").read_text(), re.MULTILINE)
    table = {name: None if status == "none" else int(status) for name, status in rows}
    _, *blocks = f"\n{(_HERE / 'messages.txt').read_text()}".removesuffix("\n").split("\n== ")
    said = {name: _bytes(text) for name, _, text in (block.partition("\n") for block in blocks)}
    assert said.keys() == table.keys(), said.keys() ^ table.keys()
    return [Torture(name, message, table[name]) for name, message in said.items()]


def _bytes(text: str) -> bytes:
    raw = text.replace("\n", "\r\n").encode()
    return re.sub(rb"<hex>([0-9A-F]+)</hex>", lambda found: bytes.fromhex(found[1].decode()), raw)


def answerable(message: bytes) -> bytes:
    """The message, whose answer comes back to the port that it is sent from (rport) and not where its Via says."""
    return re.sub(rb"(?im)^((?:via|v)[ \t]*:(?:[^\r]|\r\n[ \t])*)", rb"\1;rport", message, count=1)
