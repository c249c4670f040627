"""Addresses in SIP messages: `sip:`, `sips:` and `tel:` in their parts, all others whole; and where a redirected
request is to go, its own address at another host. Pure.

An address is kept as its sender wrote it, since we send it back: a parameter that we do not know may matter to them.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from voicepipe.ingress.sip.header_text import Params, SipError, address_parts, parameters

CALLED = frozenset({"sip", "sips", "tel"})
"""URI schemes that can be called here."""
_UNFIT = re.compile(r"[^!-~]|[<>\"]")
"""Characters that no URI has, and that would turn a request of ours into another one (RFC 3261, 25.1)."""
_UNESCAPED = re.compile(r"[^\x00-\x7f]+|[ \t]+")
"""Characters in a user's name that some telephones do not escape."""
_USER = r"[^@]*(?:@[^@?;]*)*"
"""The user part and what comes before it. The last @ ends it: some telephone systems put a whole address there."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
SIP_PARTS = re.compile(
    rf"(?:(?P<user>{_USER})@)?"
    r"(?P<host>\[[^\[\]]*\]|[^\[\]:;?@]*)(?::(?P<port>[0-9]{0,9})(?::(?P=port))?)?"
    r"(?P<params>;[^?]*)?(?:\?.*)?"
)
"""The parts of a `sip:` URI, without the scheme. Some telephones write the port twice, or none behind its colon."""
_TO_HOST = re.compile(f"{_USER}@")
_SEPARATORS = str.maketrans("", "", "-.()")
_GLOBAL = re.compile(r"\+[().-]*[0-9][0-9().-]*")
_LOCAL = re.compile(r"(?=[^0-9*#]*[0-9*#])[0-9A-Fa-f*#().-]+")
"""A local number (RFC 3966, 3), with at least one digit."""
CALL_PARAM = "vp-call"
"""A parameter of the address: the id of the placement by which a directory has chosen this PoP. It admits nobody. The
PoP sees by it that the call has come; where a carrier leaves it out, its directories wait a few seconds for that."""
_PLACEMENT = re.compile(r"call_[0-9a-f]{16}")
_OF_THE_WAY = frozenset({"maddr", "ttl", "transport", "lr", CALL_PARAM})
"""Parameters that say how the request came here (RFC 3261, 19.1.1), or are ours."""
_OF_A_USER = "%-_.!~*'()&=+$,;?/"
"""Characters that a user part may have (RFC 3261, 25.1), with escapes."""


@dataclass(frozen=True, slots=True)
class Address:
    """`"Name" <sip:user@host:port;uri-params>;params`, or a URI alone."""

    uri: str
    """The URI as it came, except that blanks and letters beyond ASCII in a user's name are escaped, and that the scheme
    is `sip:` where none was given."""
    scheme: str
    """The scheme in lower case."""
    user: str
    """A telephone number without separators and parameters (RFC 3966, 5.1.1), or a user's name without escapes; of
    another scheme all that follows it."""
    host: str
    """Empty: the address names none. A `tel:` address never does."""
    port: int | None
    params: Params
    """The header's parameters, behind the URI: `tag` is one of them."""
    uri_params: Params = field(default_factory=dict)
    """The parameters of a `sip:` URI, behind its host."""
    user_params: Params = field(default_factory=dict)
    """The parameters of a telephone number: behind it in a `tel:` URI, and in the user part of a `sip:` one (RFC 3261,
    19.1.6)."""

    @classmethod
    def of(cls, text: str) -> "Address":
        """The address in a header's value. Raises SipError."""
        uri, params = address_parts(text)
        return cls.of_uri(uri, parameters(params))

    @classmethod
    def of_uri(cls, uri: str, params: Params | None = None) -> "Address":
        """The address of a URI alone. Raises SipError."""
        user = _TO_HOST.match(uri)
        text = _UNESCAPED.sub(lambda found: quote(found[0]), user[0]) + uri[user.end() :] if user else uri
        if ":" not in text and "@" in text:
            text = f"sip:{text}"
        found = _SCHEME.fullmatch(text)
        if found is None or _UNFIT.search(text) or not found[2]:
            raise SipError(f"{uri[:80]!r} is no address")
        scheme, rest = found[1].lower(), found[2]
        if scheme == "tel":
            number, _, more = rest.partition(";")
            return cls(text, scheme, _number(unquote(number)), "", None, params or {}, {}, parameters(more))
        if scheme in CALLED:
            return cls._of_sip(text, scheme, rest, params or {})
        return cls(text, scheme, rest, "", None, params or {})

    @classmethod
    def _of_sip(cls, text: str, scheme: str, rest: str, params: Params) -> "Address":
        parts = SIP_PARTS.fullmatch(rest)
        if parts is None:
            raise SipError(f"{text[:80]!r} is no SIP address")
        user, _, of_user = (parts["user"] or "").partition(":")[0].partition(";")
        user = unquote(user)
        uri_params = parameters(parts["params"] or "")
        if (uri_params.get("user") or "").lower() == "phone" or _GLOBAL.fullmatch(user):
            user = _number(user)
        port = int(parts["port"]) if parts["port"] else None
        return cls(text, scheme, user, parts["host"], port, params, uri_params, parameters(of_user))

    @property
    def loose(self) -> bool:
        """The address is a router's that has requests routed loosely (RFC 3261, 16.12.1.1)."""
        return "lr" in self.uri_params

    @property
    def domain(self) -> str:
        """The domain in which the user is known: the host, or for a number the domain in which it is valid (RFC 3966,
        5.1.5)."""
        context = self.user_params.get("phone-context") or ""
        return self.host or ("" if context.startswith("+") else context)


def _number(text: str) -> str:
    """A telephone number without visual separators; other text stays as it is."""
    return text.translate(_SEPARATORS) if _GLOBAL.fullmatch(text) or _LOCAL.fullmatch(text) else text


def contact(uri: str, host: str, placement_id: str) -> str:
    """`uri` at `host` ("203.0.113.5:5060"), with its user part and its parameters, for the call of this placement. A
    telephone number with its parameters is a user part (RFC 3261, 19.1.6).

    Raises ValueError: it is neither a `sip:` nor a `tel:` URI."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() == "tel":
        user = quote(rest, safe=_OF_A_USER)
        return f"sip:{user}@{host};user=phone;{CALL_PARAM}={placement_id}"
    parts = SIP_PARTS.fullmatch(rest)
    if scheme.lower() not in CALLED or parts is None:
        raise ValueError(f"{uri[:80]!r} is no SIP URI and no telephone number")
    kept = [param for param in (parts["params"] or "").split(";") if param and _name(param) not in _OF_THE_WAY]
    user = f"{parts['user']}@" if parts["user"] else ""
    return f"sip:{user}{host}{''.join(f';{param}' for param in kept)};{CALL_PARAM}={placement_id}"


def placement_of(address: Address) -> str:
    """The id of the placement for which a directory has made this address; empty: it has none."""
    said = address.uri_params.get(CALL_PARAM) or ""
    return said if _PLACEMENT.fullmatch(said) else ""


def _name(param: str) -> str:
    return param.partition("=")[0].strip().lower()
