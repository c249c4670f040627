"""Without keys only programs on this machine may call, and no web page of another site may do it from its browser."""

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, HttpConfig, KeyOwner
from voicepipe.config.phone_config import PhoneKind, SipEndpointConfig, TelephonyConfig
from voicepipe.ingress.api_keys import brings_token
from voicepipe.ingress.wire_errors import error_body


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def check_exposure(config: Config) -> None:
    """Raises ConfigError: other machines could call, though neither a key nor a directory's token is needed."""
    if not config.fleet.keys:
        check_who_may_call(config.http, config.tenants)


def check_who_may_call(http: HttpConfig, tenants: Sequence[KeyOwner]) -> None:
    """Raises ConfigError: other machines could call, though no key is needed."""
    if not tenants and not is_loopback(http.host):
        raise ConfigError(
            f"http.host = {http.host!r} lets other machines call, and no tenant has a key: "
            "add a [[tenants]] table with name and key_env, or leave http.host (--host) at 127.0.0.1."
        )


def sip_host(sip: SipEndpointConfig, http: HttpConfig) -> str:
    """The address at which SIP listens: HTTP's, unless SIP has its own."""
    host = sip.host or http.host
    return "127.0.0.1" if host == "localhost" else host


def sip_contact(config: Config) -> str:
    """The address to which directories redirect telephones that call this PoP, as "203.0.113.5:5060"; empty: it is
    unknown."""
    sip, host = config.sip, sip_host(config.sip, config.http)
    if not sip.port or config.fleet.sip:
        return config.fleet.sip if sip.port else ""
    at = sip.public_address or ("" if host == "0.0.0.0" else host)
    return f"{at}:{sip.port}" if at else ""


def unreached(config: Config) -> str:
    """Why directories send no telephones here, though the PoP takes calls by SIP; empty: they do, or it takes none."""
    if not (config.bus.servers and config.sip.port) or sip_contact(config):
        return ""
    return (
        "fleet.sip: directories send no telephones here, since sip.host is all addresses of this host; say where "
        "telephones reach it, as 203.0.113.5:5060, or set sip.public_address"
    )


def phone_kinds(config: Config) -> Iterator[PhoneKind]:
    """The kinds of phone calls that a directory can send to this PoP."""
    if sip_contact(config):
        yield "sip"
    if config.twilio.auth_token:
        yield "twilio"
    if config.telnyx.public_key:
        yield "telnyx"


def check_phones(config: Config) -> None:
    """Raises ConfigError: others could call by SIP though no trunk or user is configured, it would listen on IPv6, or
    Twilio and Telnyx would send in the clear."""
    check_sip(config.sip, config.http)
    check_providers(config.telephony)


def check_providers(telephony: TelephonyConfig) -> None:
    """Raises ConfigError: Twilio and Telnyx would send in the clear."""
    public = urlsplit(telephony.public_url)
    if public.scheme == "http" and not is_loopback(public.hostname or ""):
        raise ConfigError(
            f"telephony.public_url = {telephony.public_url!r} would let calls and the tokens of their streams "
            "travel in the clear: give an address that begins with https://."
        )


def check_sip(sip: SipEndpointConfig, http: HttpConfig) -> None:
    """Raises ConfigError: others could call by SIP though no trunk or user is configured, or it would listen on
    IPv6."""
    if not sip.port:
        if sip.trunks or sip.users:
            raise ConfigError(
                "sip.port = 0 lets nobody call by SIP, not even the trunks and users that are named: set it to 5060, "
                "which is usual, or give --sip-port."
            )
        return
    host = sip_host(sip, http)
    if ":" in host:
        raise ConfigError(
            f"http.host = {host!r} is an IPv6 address, and SIP is spoken over IPv4 alone: set sip.host to one such as "
            "0.0.0.0."
        )
    if not sip.trunks and not sip.users and not is_loopback(host):
        raise ConfigError(
            f"sip.host = {host!r} lets other machines call, and nobody is named who may: add [[sip.trunks]] with "
            "their addresses or [[sip.users]] with passwords, or set sip.host to 127.0.0.1."
        )


PROXIED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
"""Headers by which a proxy says that it asks for another client."""
ELSEWHERE = "This server has no keys and serves pages and programs of its own machine alone: see http.origins."
BEHIND_A_PROXY = (
    "A proxy has passed this request on, and this server has no keys to tell who may call: add a [[tenants]] table "
    "with name and key_env, or ask without the proxy."
)


API = ("/v1/realtime", "/v1/models", "/v1/voices", "/v1/records", "/v1/costs")
"""Paths whose endpoints all check the caller's key."""


def asks_from_here(scope: Scope) -> bool:
    """Whether the client is on this machine: no proxy has forwarded its request, and it is no page whose name was
    rebound."""
    headers = Headers(scope=scope)
    return _is_here(scope) and _is_for_us(headers) and not any(name in headers for name in PROXIED)


def _is_for_us(headers: Headers) -> bool:
    """Whether `Host` means this machine."""
    try:
        return is_loopback(urlsplit(f"//{headers.get('host', '')}").hostname or "")
    except ValueError:  # "[" is no address.
        return False


class LocalOnly:
    """ASGI middleware for a server without keys: only clients on this machine are let in.

    `Host` must mean this machine, or a page whose name was rebound to 127.0.0.1 would pass for ours; `Origin`, which
    browsers always send on WebSockets and posts, must be our own or one of `origins`. No proxy may have forwarded the
    request: its client may be anybody, though many a proxy puts our own address into `Host`. Paths below `public` are
    open to everybody, or are checked there: requests of providers by their signature. With `tokens`, a request of the
    API (`API`) that brings a directory's token is let through as well; the token is checked where keys are. `log` gets
    each request that is refused, with its status and the reason. While there are keys (`has_keys`) all requests are let
    through: the endpoints check keys."""

    def __init__(
        self,
        app: ASGIApp,
        log: Callable[[HTTPConnection, int, str], None],
        origins: tuple[str, ...] = (),
        public: tuple[str, ...] = (),
        tokens: bool = False,
        has_keys: Callable[[], bool] = lambda: False,
    ) -> None:
        self._app = app
        self._log = log
        self._origins = origins
        self._public = public
        self._tokens = tokens
        self._has_keys = has_keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith(self._public) or self._has_keys():
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        if self._tokens and scope["path"].startswith(API) and brings_token(HTTPConnection(scope)):
            return await self._app(scope, receive, send)
        if any(name in headers for name in PROXIED):
            code, message = "proxy_not_allowed", BEHIND_A_PROXY
        elif not (_is_here(scope) and self._allows(headers)):
            code, message = "origin_not_allowed", ELSEWHERE
        else:
            return await self._app(scope, receive, send)
        self._log(HTTPConnection(scope), 403, message)
        await JSONResponse(error_body(code, message), 403)(scope, receive, send)

    def _allows(self, headers: Headers) -> bool:
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            ours = origin is None or not {"*", origin}.isdisjoint(self._origins) or urlsplit(origin).netloc == host
        except ValueError:  # "[" is no address.
            return False
        return ours and _is_for_us(headers)


def _is_here(scope: Scope) -> bool:
    """Whether the request comes from this machine. A server that others reach cannot trust the headers that they
    send."""
    client = scope.get("client")
    return client is None or is_loopback(client[0])
