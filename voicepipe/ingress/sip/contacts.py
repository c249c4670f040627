"""Where a redirected SIP request is to go: its own address at another host. Pure."""

import re
from urllib.parse import quote

from voicepipe.ingress.sip.addresses import CALLED, SIP_PARTS, Address

CALL_PARAM = "vp-call"
"""A parameter of the address: the id of the call that a directory has placed. It lets nobody in. A PoP tells by it that
the call has come; where a carrier leaves it out, its directories wait a few seconds for that."""
_CALL = re.compile(r"call_[0-9a-f]{16}")
_OF_THE_WAY = frozenset({"maddr", "ttl", "transport", "lr", CALL_PARAM})
"""Parameters that say how the request came here (RFC 3261, 19.1.1), or are ours."""
_OF_A_USER = "%-_.!~*'()&=+$,;?/"
"""Characters that a user part may have (RFC 3261, 25.1), escapes among them."""


def contact(uri: str, host: str, call: str) -> str:
    """`uri` at `host` ("203.0.113.5:5060"), with its user part and its parameters, for the call with this id. A
    telephone number with its parameters is a user part (RFC 3261, 19.1.6).

    Raises ValueError: it is neither.
    """
    scheme, _, rest = uri.partition(":")
    if scheme.lower() == "tel":
        user = quote(rest, safe=_OF_A_USER)
        return f"sip:{user}@{host};user=phone;{CALL_PARAM}={call}"
    parts = SIP_PARTS.fullmatch(rest)
    if scheme.lower() not in CALLED or parts is None:
        raise ValueError(f"{uri[:80]!r} is no SIP URI and no telephone number")
    kept = [param for param in (parts["params"] or "").split(";") if param and _name(param) not in _OF_THE_WAY]
    user = f"{parts['user']}@" if parts["user"] else ""
    return f"sip:{user}{host}{''.join(f';{param}' for param in kept)};{CALL_PARAM}={call}"


def call_of(address: Address) -> str:
    """The id of the call for which a directory has made this address; empty: it has none."""
    said = address.uri_params.get(CALL_PARAM) or ""
    return said if _CALL.fullmatch(said) else ""


def _name(param: str) -> str:
    return param.partition("=")[0].strip().lower()
