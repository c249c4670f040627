"""What is said to a request that sippy's parser does not understand, so that its sender learns of it. Pure."""

import re

_COPIED = {
    "via": "Via", "v": "Via", "from": "From", "f": "From", "to": "To", "t": "To", "call-id": "Call-ID", "i": "Call-ID",
    "cseq": "CSeq",
}  # fmt: skip
_START = re.compile(r"(\S+) .*\b(SIP/\d+\.\d+)\s*")
_TAG = ";tag=unreadable"
"""No dialog comes of it, so that it may be the same for all."""


def refusal(text: str) -> str | None:
    """A response: 400, or 505 for another version of SIP. None: `text` is no request, wants no answer (ACK), or lacks
    what an answer has to repeat."""
    head = text.replace("\r\n", "\n").partition("\n\n")[0]
    first, *lines = re.sub(r"\n[ \t]+", " ", head).split("\n")
    start = _START.fullmatch(first)
    if start is None or start[1] == "ACK" or start[1].startswith("SIP/"):
        return None
    copied = [(_COPIED[key], value.strip()) for key, value in map(_header, lines) if key in _COPIED]
    if not {"Via", "From", "To", "Call-ID", "CSeq"} <= {name for name, _ in copied}:
        return None
    status = "400 Bad Request" if start[2] == "SIP/2.0" else "505 Version Not Supported"
    headers = [f"{name}: {value}{_TAG if name == 'To' and 'tag' not in value else ''}" for name, value in copied]
    return "\r\n".join([f"SIP/2.0 {status}", *headers, "Server: voicepipe", "Content-Length: 0", "", ""])


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value
